//! The mark of a replayed response.

use http::{HeaderName, HeaderValue};

/// The name of the field that marks a replayed response, `idempotent-replayed`.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Says whether the value of [`IDEMPOTENT_REPLAYED`] marks a replay.
///
/// Servers write `1`, `true` or the RFC 9651 Boolean `?1`. Everything else is
/// not a replay.
///
/// # Examples
///
/// ```
/// use http::HeaderValue;
/// use steadfast_headers::is_replayed;
///
/// assert!(is_replayed(&HeaderValue::from_static("1")));
/// assert!(!is_replayed(&HeaderValue::from_static("?0")));
/// ```
#[must_use]
pub fn is_replayed(value: &HeaderValue) -> bool {
    matches!(value.as_bytes().trim_ascii(), b"1" | b"true" | b"?1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i08_each_spelling_of_a_replay_is_recognised_and_nothing_else() {
        for mark in ["1", "true", "?1", " 1\t"] {
            assert!(is_replayed(&HeaderValue::from_static(mark)), "{mark:?}");
        }
        for other in ["", "0", "?0", "false", "11", "1, 1", "?1;a", "yes", "TRUE"] {
            assert!(!is_replayed(&HeaderValue::from_static(other)), "{other:?}");
        }
    }
}
