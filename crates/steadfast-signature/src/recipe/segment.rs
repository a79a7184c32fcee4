use std::borrow::Cow;

use http::HeaderName;

use super::error::SchemeError;
use crate::TimeUnit;

/// A piece of what is signed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Segment {
    /// The body, byte by byte.
    Body,
    /// The lower-case hex of the body's SHA-256.
    BodySha256,
    /// The value of a header, which must be there once.
    Header(HeaderName),
    /// The id of the message, as it was sent.
    Id,
    /// The id of the key, as it was sent.
    KeyId,
    /// The method.
    Method,
    /// The nonce, as it was sent.
    Nonce,
    /// The path without the query.
    Path,
    /// The path, and the query behind `?` where there is one.
    PathAndQuery,
    /// The same bytes in each message: a delimiter, a version, the public URL of an endpoint.
    Text(Cow<'static, str>),
    /// The timestamp, as it was sent.
    Timestamp,
}

impl Segment {
    /// The same bytes in each message.
    #[must_use]
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Whether it could be told where this segment ends when `next` follows it.
    fn ends_before(&self, next: Option<&Self>, unit: Option<TimeUnit>) -> bool {
        let Some(next) = next else {
            return true;
        };
        let delimiter = match next {
            Self::Text(text) => text.bytes().next(),
            _ => None,
        };
        match self {
            Self::BodySha256 | Self::Text(_) => true,
            Self::Body => false,
            // Values with a delimiter inside are refused when they are read.
            Self::Header(_) | Self::Id | Self::KeyId | Self::Nonce => delimiter.is_some(),
            Self::Method => delimiter.is_some_and(|byte| !is_token(byte)),
            Self::Path | Self::PathAndQuery => delimiter.is_some_and(|byte| byte <= b' '),
            Self::Timestamp if unit == Some(TimeUnit::Rfc3339) => {
                delimiter.is_some_and(|byte| !byte.is_ascii_digit() && !b"TZ:.+-".contains(&byte))
            }
            Self::Timestamp => delimiter.is_some_and(|byte| !byte.is_ascii_digit()),
        }
    }
}

/// What a method is made of (RFC 9110 §5.6.2).
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Whether different values always make different bytes.
pub(super) fn check_unambiguous(
    message: &[Segment],
    unit: Option<TimeUnit>,
) -> Result<(), SchemeError> {
    for (at, segment) in message.iter().enumerate() {
        if !segment.ends_before(message.get(at + 1), unit) {
            return Err(SchemeError::Ambiguous);
        }
    }
    Ok(())
}
