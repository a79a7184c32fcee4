//! The key itself: made or taken over, then only copied.

use std::fmt;

use http::{HeaderName, HeaderValue};
use ulid::Ulid;
use uuid::Uuid;

use crate::{KeyError, KeyRules};

/// The usual name of the field that carries the key, `idempotency-key`.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The key of one logical call: 1 to 255 bytes of visible ASCII without `"`,
/// `\` and `,`.
///
/// A value of this type has passed some [`KeyRules`], or was made here. It is
/// compared byte for byte, case included, and cloning it never copies the bytes.
///
/// Whoever knows a key may be able to read the stored response, so `Debug` does
/// not show it, there is no `Display`, and header values made from it are
/// [sensitive](HeaderValue::set_sensitive).
///
/// # Examples
///
/// ```
/// use http::Request;
/// use steadfast_headers::{IDEMPOTENCY_KEY, IdempotencyKey, KeyRules};
///
/// let minted = IdempotencyKey::uuid_v4();
/// let own = IdempotencyKey::new("invoice:inv_4192", &KeyRules::LOOSE)?;
/// assert_ne!(minted, own);
///
/// let request = Request::post("/invoices")
///     .header(IDEMPOTENCY_KEY, own.to_header_value())
///     .body(())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// The raw header value, sensitive, with exactly the bytes that `KeyRules` admit.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct IdempotencyKey(HeaderValue);

impl IdempotencyKey {
    /// Takes over a key that the caller chose, such as the number of an invoice.
    ///
    /// `key` is the key as such, not a field value: it is not trimmed and not
    /// unquoted, and the [`KeyForm`](crate::KeyForm) of `rules` does not matter.
    ///
    /// # Errors
    ///
    /// [`KeyError::Empty`], [`KeyError::TooLong`] or [`KeyError::BadByte`] when
    /// `rules` do not admit the key.
    pub fn new(key: impl AsRef<[u8]>, rules: &KeyRules) -> Result<Self, KeyError> {
        let key = key.as_ref();
        rules.check(key)?;
        Ok(Self::from_checked(key))
    }

    /// Makes a random key, a UUID of version 4 (36 bytes, lower case).
    ///
    /// Its 122 random bits come from a generator that the operating system
    /// seeds. Call it once for each logical call, not for each attempt.
    #[must_use]
    pub fn uuid_v4() -> Self {
        let mut buffer = Uuid::encode_buffer();
        let text = Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
        Self::from_checked(text.as_bytes())
    }

    /// Makes a random key that sorts by the time it was made, a ULID (26 bytes,
    /// upper case).
    ///
    /// Its 80 random bits are drawn afresh for each key from a generator that
    /// the operating system seeds: nothing is counted up from the key before, so
    /// two processes cannot walk into each other's keys. The time in front of
    /// them is for sorting only, no guarantee rests on it.
    #[must_use]
    pub fn ulid() -> Self {
        let mut buffer = [0; ulid::ULID_LEN];
        Self::from_checked(Ulid::generate().array_to_str(&mut buffer).as_bytes())
    }

    /// The key's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The key's text.
    #[must_use]
    #[expect(
        clippy::missing_panics_doc,
        reason = "a key is ASCII by construction, so this never panics"
    )]
    pub fn as_str(&self) -> &str {
        self.0.to_str().expect("a key is visible ASCII")
    }

    /// The field value as nearly every API expects it: the bare key.
    #[must_use]
    pub fn to_header_value(&self) -> HeaderValue {
        self.0.clone()
    }

    /// The field value as an RFC 9651 String: the key in double quotes.
    ///
    /// Both spellings are parsed to the same key.
    #[must_use]
    pub fn to_quoted_header_value(&self) -> HeaderValue {
        // No escapes: neither of the two bytes that need one can be in a key.
        let quoted = [b"\"", self.as_bytes(), b"\""].concat();
        sensitive(&quoted)
    }

    /// The bytes must have passed [`KeyRules::check`], or be sure to pass it.
    pub(crate) fn from_checked(key: &[u8]) -> Self {
        Self(sensitive(key))
    }

    /// The same of a key found in `line`, whose bytes it shares where it is all
    /// of them.
    pub(crate) fn from_line(line: &HeaderValue, key: &[u8]) -> Self {
        if key.len() < line.len() {
            return Self::from_checked(key);
        }
        let mut value = line.clone();
        value.set_sensitive(true);
        Self(value)
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey(..)")
    }
}

fn sensitive(bytes: &[u8]) -> HeaderValue {
    let mut value = HeaderValue::from_bytes(bytes).expect("visible ASCII is a header value");
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn i01_a_minted_key_is_a_lower_case_uuid_v4() {
        let key = IdempotencyKey::uuid_v4();
        let parsed = Uuid::parse_str(key.as_str()).unwrap();

        assert_eq!(parsed.get_version_num(), 4);
        assert_eq!(parsed.hyphenated().to_string(), key.as_str());
        assert!(IdempotencyKey::new(key.as_bytes(), &KeyRules::DEFAULT).is_ok());
    }

    #[test]
    fn i01_a_ulid_is_made_on_request() {
        let key = IdempotencyKey::ulid();

        assert_eq!(key.as_bytes().len(), 26);
        assert!(Ulid::from_string(key.as_str()).is_ok());
        assert!(IdempotencyKey::new(key.as_bytes(), &KeyRules::DEFAULT).is_ok());
    }

    #[test]
    fn i02_keys_are_never_made_twice() {
        let uuids: HashSet<_> = (0..1000).map(|_| IdempotencyKey::uuid_v4()).collect();
        let ulids: HashSet<_> = (0..1000).map(|_| IdempotencyKey::ulid()).collect();

        assert_eq!((uuids.len(), ulids.len()), (1000, 1000));
    }

    #[test]
    fn i04_neighbouring_ulids_are_not_counted_up() {
        let random: Vec<_> = (0..100)
            .map(|_| Ulid::from_string(IdempotencyKey::ulid().as_str()).unwrap())
            .map(|ulid| ulid.random())
            .collect();

        // A shared-monotonic generator differs by one within a millisecond.
        assert!(
            random
                .windows(2)
                .all(|pair| pair[0].abs_diff(pair[1]) > 1 << 16)
        );
    }

    #[test]
    fn i03_the_callers_own_key_is_kept_byte_for_byte() {
        let key = IdempotencyKey::new("invoice:inv_4192", &KeyRules::LOOSE).unwrap();

        assert_eq!(key.as_str(), "invoice:inv_4192");
        assert_eq!(key.to_header_value(), "invoice:inv_4192");
        assert_eq!(key.to_quoted_header_value(), "\"invoice:inv_4192\"");
        assert_ne!(
            key,
            IdempotencyKey::new("Invoice:inv_4192", &KeyRules::LOOSE).unwrap()
        );
    }

    #[test]
    fn i03_the_callers_own_key_is_neither_trimmed_nor_unquoted() {
        for key in [" a", "a ", "\"a\""] {
            let refused = IdempotencyKey::new(key, &KeyRules::LOOSE);
            assert_eq!(refused, Err(KeyError::BadByte), "{key:?}");
        }
    }

    #[test]
    fn debug_output_never_shows_a_key() {
        let key = IdempotencyKey::new("invoice-4192", &KeyRules::DEFAULT).unwrap();

        let shown = format!(
            "{key:?} {:?} {:?}",
            key.to_header_value(),
            key.to_quoted_header_value()
        );
        assert_eq!(shown, "IdempotencyKey(..) Sensitive Sensitive");
    }

    #[test]
    fn a_key_fits_into_request_extensions() {
        fn assert_extension<T: Clone + Send + Sync + 'static>() {}
        assert_extension::<IdempotencyKey>();
    }
}
