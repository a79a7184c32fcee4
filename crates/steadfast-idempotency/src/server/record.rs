use std::sync::Arc;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header, response};

use crate::store::Record;

/// The first byte of every record. A record with another one is not read, and not overwritten.
const VERSION: u8 = 1;

/// How many headers a replay has that are not stored. A map that grows for them costs more than all the rest of it.
const MARKS: usize = 2;

/// Which response headers are stored and replayed.
#[derive(Clone, Debug, Default)]
pub struct StoredHeaders(Selection);

#[derive(Clone, Debug, Default)]
enum Selection {
    #[default]
    AllButDenied,
    Only(Arc<[HeaderName]>),
}

impl StoredHeaders {
    /// All headers, in order and with repetitions, except those that belong to one exchange or one recipient. The
    /// default.
    ///
    /// Left out are: cookies, challenges and authentication results; `Connection`, what it names, and the other
    /// hop-by-hop headers; `Content-Length`, which is computed anew; `Date`, `Age`, `Via`, `Server-Timing`,
    /// `Retry-After`; rate-limit headers; request and trace ids; `Alt-Svc`, `Strict-Transport-Security`; CORS headers.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only these headers, without those that are never stored.
    pub fn only(names: impl IntoIterator<Item = HeaderName>) -> Self {
        Self(Selection::Only(names.into_iter().collect()))
    }

    fn stores(&self, name: &HeaderName, headers: &HeaderMap) -> bool {
        let selected = match &self.0 {
            Selection::AllButDenied => true,
            Selection::Only(names) => names.contains(name),
        };
        selected && !is_denied(name.as_str()) && !is_named_by_connection(name, headers)
    }
}

fn is_denied(name: &str) -> bool {
    const PREFIXES: [&str; 4] = ["access-control-", "proxy-", "ratelimit", "x-ratelimit-"];
    matches!(
        name,
        "age"
            | "alt-svc"
            | "authentication-info"
            | "connection"
            | "content-length"
            | "date"
            | "keep-alive"
            | "retry-after"
            | "server-timing"
            | "set-cookie"
            | "set-cookie2"
            | "strict-transport-security"
            | "te"
            | "traceparent"
            | "tracestate"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "via"
            | "www-authenticate"
            | "x-request-id"
    ) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn is_named_by_connection(name: &HeaderName, headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|option| option.trim().eq_ignore_ascii_case(name.as_str()))
}

/// Writes the answer down: status, headers in order with their exact bytes, body.
///
/// ```text
/// version u8 · status u16 · number of headers u16 · (name length u16 · name · value length u32 · value)* · body
/// ```
///
/// `None` when a number does not fit, which no server's header limits let happen.
pub(super) fn encode(
    head: &response::Parts,
    body: &Bytes,
    headers: &StoredHeaders,
) -> Option<Record> {
    let stored = || {
        head.headers
            .iter()
            .filter(|(name, _)| headers.stores(name, &head.headers))
    };
    let size: usize = stored()
        .map(|(name, value)| name.as_str().len() + value.len() + 6)
        .sum();
    let mut record = BytesMut::with_capacity(5 + size + body.len());
    record.put_u8(VERSION);
    record.put_u16(head.status.as_u16());
    record.put_u16(stored().count().try_into().ok()?);
    for (name, value) in stored() {
        record.put_u16(name.as_str().len().try_into().ok()?);
        record.put_slice(name.as_str().as_bytes());
        record.put_u32(value.len().try_into().ok()?);
        record.put_slice(value.as_bytes());
    }
    record.put_slice(body);
    Some(record.freeze().into())
}

/// Reads an answer back; its body shares the record's bytes. `None` for anything that this version did not write.
pub(super) fn decode(record: &Record) -> Option<Response<Bytes>> {
    let mut rest = record.as_bytes().clone();
    if rest.try_get_u8().ok()? != VERSION {
        return None;
    }
    let status = StatusCode::from_u16(rest.try_get_u16().ok()?).ok()?;
    let count = usize::from(rest.try_get_u16().ok()?);
    // Each header takes at least seven bytes: a count that cannot be true reserves nothing. Nor does one of more values
    // than a map has room for names: they may all be of one name.
    let room = count.min(rest.len() / 7) + MARKS;
    let mut headers = HeaderMap::try_with_capacity(room).unwrap_or_default();
    for _ in 0..count {
        let len = usize::from(rest.try_get_u16().ok()?);
        let name = HeaderName::from_bytes(rest.get(..len)?).ok()?;
        rest.advance(len);
        let len = usize::try_from(rest.try_get_u32().ok()?).ok()?;
        let value = HeaderValue::from_maybe_shared(take(&mut rest, len)?).ok()?;
        headers.try_append(name, value).ok()?;
    }
    let mut response = Response::new(rest);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Some(response)
}

fn take(bytes: &mut Bytes, len: usize) -> Option<Bytes> {
    (len <= bytes.len()).then(|| bytes.split_to(len))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(status: u16, headers: &[(&str, &[u8])]) -> response::Parts {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        for (name, value) in headers {
            response.headers_mut().append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value).unwrap(),
            );
        }
        response.into_parts().0
    }

    fn replayed(head: &response::Parts, headers: &StoredHeaders) -> Response<Bytes> {
        let record = encode(head, &Bytes::from_static(b"body"), headers).unwrap();
        decode(&record).unwrap()
    }

    #[test]
    fn i08_status_headers_in_order_and_raw_bytes_come_back() {
        let head = head(
            201,
            &[
                ("location", b"/o/1"),
                ("link", b"</a>; rel=a"),
                ("link", b"</b>; rel=b"),
                ("content-disposition", b"attachment; filename=\"a,b\""),
                ("x-bytes", b"caf\xe9"),
                ("content-encoding", b"gzip"),
            ],
        );
        let response = replayed(&head, &StoredHeaders::all());
        assert_eq!(response.status(), 201);
        assert_eq!(response.headers(), &head.headers);
        assert_eq!(response.body(), "body");
    }

    #[test]
    fn i08_what_belongs_to_one_exchange_is_not_stored() {
        let head = head(
            200,
            &[
                ("set-cookie", b"a=1"),
                ("connection", b"close, X-Hop"),
                ("x-hop", b"1"),
                ("content-length", b"4"),
                ("date", b"now"),
                ("x-ratelimit-remaining", b"1"),
                ("ratelimit", b"\"a\";r=1"),
                ("access-control-allow-origin", b"*"),
                ("proxy-authenticate", b"Basic"),
                ("x-request-id", b"1"),
                ("etag", b"\"1\""),
            ],
        );
        let response = replayed(&head, &StoredHeaders::all());
        let names: Vec<_> = response.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["etag"]);
    }

    #[test]
    fn an_allow_list_never_lets_a_cookie_through() {
        let head = head(
            200,
            &[("etag", b"1"), ("x-a", b"1"), ("set-cookie", b"a=1")],
        );
        let only = StoredHeaders::only([header::ETAG, header::SET_COOKIE]);
        let response = replayed(&head, &only);
        let names: Vec<_> = response.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["etag"]);
    }

    #[test]
    fn a_newer_record_is_not_read() {
        let record = encode(&head(200, &[]), &Bytes::new(), &StoredHeaders::all()).unwrap();
        let mut newer = record.as_bytes().to_vec();
        newer[0] = VERSION + 1;
        assert!(decode(&Bytes::from(newer).into()).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            drop(decode(&Bytes::from(bytes).into()));
        }

        #[test]
        fn no_bytes_behind_a_good_version_panic(mut bytes: Vec<u8>) {
            bytes.insert(0, VERSION);
            drop(decode(&Bytes::from(bytes).into()));
        }

        #[test]
        fn a_cut_record_is_refused_or_shorter(cut in 0_usize..60) {
            let head = head(200, &[("etag", b"1"), ("location", b"/orders/1")]);
            let record = encode(&head, &Bytes::from_static(b"body"), &StoredHeaders::all()).unwrap();
            let whole = record.as_bytes();
            let cut = whole.slice(..cut.min(whole.len()));
            let heads = whole.len() - 4;
            prop_assert_eq!(decode(&cut.clone().into()).is_some(), cut.len() >= heads);
        }

        #[test]
        fn i08_any_answer_comes_back(
            status in 100_u16..1000,
            values in prop::collection::vec("[ -~]{0,20}", 0..10),
            body: Vec<u8>,
        ) {
            let mut head = head(status, &[]);
            for value in &values {
                let value = HeaderValue::from_str(value).unwrap();
                head.headers.append("x-value", value);
            }
            let body = Bytes::from(body);
            let record = encode(&head, &body, &StoredHeaders::all()).unwrap();
            let response = decode(&record).unwrap();
            prop_assert_eq!(response.status(), head.status);
            prop_assert_eq!(response.headers(), &head.headers);
            prop_assert_eq!(response.body(), &body);
        }
    }
}
