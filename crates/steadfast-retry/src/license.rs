use std::time::{Duration, SystemTime};

use http::{HeaderMap, Request};
use steadfast_core::{
    Clock, Operations,
    facts::{KeyCreated, OperationClass},
};
use steadfast_headers::{IDEMPOTENCY_KEY, IdempotencyKey, KeyRules};

/// What allows a second request of a call, if anything does (R01).
#[derive(Clone, Copy, Debug)]
pub(crate) struct License {
    class: OperationClass,
    has_key: bool,
    created: Option<SystemTime>,
}

impl License {
    /// The request's own word counts first, then the table of operations, then the key, then the method.
    ///
    /// Of the request's own words, `RepeatableWithKey` rests on a key: a layer that mints keys says it of every call. No
    /// key beats a table that forbids a repeat.
    pub(crate) fn of<B>(request: &Request<B>, has_key: bool, operations: &Operations) -> Self {
        let said = request.extensions().get::<OperationClass>().copied();
        let listed = operations.class_of(request.method(), request.uri().path());
        let declared = match (said, listed) {
            (Some(OperationClass::RepeatableWithKey), Some(OperationClass::NotRepeatable)) => {
                listed
            }
            (said, listed) => said.or(listed),
        };
        let class = match declared {
            // A key that was not sent allows nothing.
            Some(OperationClass::RepeatableWithKey) if !has_key => OperationClass::NotRepeatable,
            Some(class) => class,
            None if has_key => OperationClass::RepeatableWithKey,
            // Not PUT and DELETE: a DELETE repeated after a lost answer reports an error for work that succeeded.
            None if request.method().is_safe() => OperationClass::Safe,
            None => OperationClass::NotRepeatable,
        };
        let created = match class {
            OperationClass::RepeatableWithKey => request.extensions().get::<KeyCreated>(),
            _ => None,
        };
        Self {
            class,
            has_key,
            created: created.map(|created| created.0),
        }
    }

    pub(crate) const fn is_repeatable(self) -> bool {
        self.class.is_repeatable()
    }

    /// Whether the server may answer that the first request of this key still runs.
    pub(crate) const fn is_keyed(self) -> bool {
        self.has_key && !matches!(self.class, OperationClass::Safe)
    }

    /// How much longer the key may be used without asking the caller (I05), where the key is what allows a repeat and its
    /// age is known.
    ///
    /// # Errors
    ///
    /// When it is too old already.
    pub(crate) fn key_left(
        self,
        max_age: Duration,
        clock: &Clock,
    ) -> Result<Option<Duration>, TooOld> {
        let Some(created) = self.created else {
            return Ok(None);
        };
        // A key from the future is a new one.
        let age = clock.now().duration_since(created).unwrap_or_default();
        max_age.checked_sub(age).map(Some).ok_or(TooOld)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TooOld;

/// The key the server will see: exactly one valid header. The extension alone counts where some other header carries its
/// value, for APIs that use a name of their own.
pub(crate) fn key_of<B>(request: &Request<B>) -> Option<IdempotencyKey> {
    let given = request.extensions().get::<IdempotencyKey>();
    let mut lines = request.headers().get_all(&IDEMPOTENCY_KEY).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => match given {
            Some(given) if line.as_bytes() == given.as_bytes() => Some(given.clone()),
            _ => KeyRules::LOOSE.parse_line(line).ok(),
        },
        (None, _) => given.filter(|key| is_sent(key, request.headers())).cloned(),
        (Some(_), Some(_)) => None,
    }
}

fn is_sent(key: &IdempotencyKey, headers: &HeaderMap) -> bool {
    let quoted = key.to_quoted_header_value();
    headers
        .values()
        .any(|value| value.as_bytes() == key.as_bytes() || *value == quoted)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, Method};
    use steadfast_core::RoutePattern;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn request(method: Method) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = "https://api.example/v1/emails/1/cancel".parse().unwrap();
        request
    }

    fn keyed(method: Method, key: &str) -> Request<()> {
        let mut request = request(method);
        request
            .headers_mut()
            .append(IDEMPOTENCY_KEY, key.parse().unwrap());
        request
    }

    fn license(request: &Request<()>) -> License {
        under(request, &Operations::new())
    }

    fn under(request: &Request<()>, operations: &Operations) -> License {
        License::of(request, key_of(request).is_some(), operations)
    }

    fn table(class: OperationClass) -> Operations {
        let cancel = RoutePattern::parse("/v1/emails/*/cancel").unwrap();
        Operations::new().route(Method::POST, cancel, class)
    }

    #[test]
    fn r01_reads_are_repeated_and_writes_are_not() {
        for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
            assert!(license(&request(method)).is_repeatable());
        }
        let custom = Method::from_bytes(b"PURGE").unwrap();
        for method in [
            Method::POST,
            Method::PATCH,
            Method::PUT,
            Method::DELETE,
            Method::CONNECT,
            custom,
        ] {
            assert!(!license(&request(method)).is_repeatable());
        }
    }

    #[test]
    fn r01_a_key_on_any_method_allows_a_repeat() {
        for method in [Method::POST, Method::PATCH, Method::PUT, Method::DELETE] {
            for key in ["k-1", "\"k-1\"", "invoice:inv_4192"] {
                let license = license(&keyed(method.clone(), key));
                assert!(license.is_repeatable() && license.is_keyed());
            }
        }
    }

    #[test]
    fn r01_a_key_that_no_server_accepts_allows_nothing() {
        for key in ["", " ", "\"a", "a,b", "a b"] {
            assert!(
                !license(&keyed(Method::POST, key)).is_repeatable(),
                "{key:?}"
            );
        }
        let mut doubled = keyed(Method::POST, "a");
        doubled
            .headers_mut()
            .append(IDEMPOTENCY_KEY, "a".parse().unwrap());
        assert!(!license(&doubled).is_repeatable());
    }

    #[test]
    fn r01_a_key_that_is_not_sent_allows_nothing() {
        let key = IdempotencyKey::new("k-1", &KeyRules::LOOSE).unwrap();
        let mut request = request(Method::POST);
        request.extensions_mut().insert(key.clone());
        assert!(!license(&request).is_repeatable());
        request
            .extensions_mut()
            .insert(OperationClass::RepeatableWithKey);
        assert!(!license(&request).is_repeatable());

        let own_name = HeaderName::from_static("x-request-key");
        for value in [key.to_header_value(), key.to_quoted_header_value()] {
            request.headers_mut().insert(own_name.clone(), value);
            assert!(license(&request).is_repeatable());
        }
    }

    #[test]
    fn c3_not_repeatable_beats_any_key() {
        let mut request = keyed(Method::POST, "k-1");
        let by_table = under(&request, &table(OperationClass::NotRepeatable));
        assert!(!by_table.is_repeatable());
        request
            .extensions_mut()
            .insert(OperationClass::NotRepeatable);
        assert!(!license(&request).is_repeatable());
    }

    #[test]
    fn r01_a_route_is_declared_repeatable() {
        let license = under(
            &request(Method::POST),
            &table(OperationClass::NaturallyIdempotent),
        );
        assert!(license.is_repeatable());
        assert!(!license.is_keyed());
        let put = under(
            &request(Method::PUT),
            &table(OperationClass::NaturallyIdempotent),
        );
        assert!(!put.is_repeatable());
    }

    #[test]
    fn r01_the_request_itself_beats_the_table() {
        let mut request = request(Method::POST);
        request
            .extensions_mut()
            .insert(OperationClass::NaturallyIdempotent);
        let license = under(&request, &table(OperationClass::NotRepeatable));
        assert!(license.is_repeatable());
    }

    #[test]
    fn i05_a_key_has_its_age() {
        let created = SystemTime::UNIX_EPOCH + HOUR * 100;
        let mut request = keyed(Method::POST, "k-1");
        request.extensions_mut().insert(KeyCreated(created));
        let left = |age: Duration| {
            license(&request).key_left(HOUR * 23, &Clock::from_fn(move || created + age))
        };
        assert_eq!(left(Duration::ZERO), Ok(Some(HOUR * 23)));
        assert_eq!(left(HOUR * 23), Ok(Some(Duration::ZERO)));
        assert_eq!(left(HOUR * 23 + Duration::from_nanos(1)), Err(TooOld));
        let ahead = license(&request).key_left(HOUR * 23, &Clock::from_fn(move || created - HOUR));
        assert_eq!(ahead, Ok(Some(HOUR * 23)));
    }

    #[test]
    fn i05_the_age_counts_only_where_the_key_is_what_allows_a_repeat() {
        let mut request = keyed(Method::POST, "k-1");
        request
            .extensions_mut()
            .insert(KeyCreated(SystemTime::UNIX_EPOCH));
        request
            .extensions_mut()
            .insert(OperationClass::NaturallyIdempotent);
        let now = Clock::from_fn(|| SystemTime::UNIX_EPOCH + HOUR * 1_000);
        assert_eq!(license(&request).key_left(HOUR * 23, &now), Ok(None));
        assert_eq!(
            license(&keyed(Method::POST, "k-1")).key_left(HOUR * 23, &now),
            Ok(None)
        );
    }
}
