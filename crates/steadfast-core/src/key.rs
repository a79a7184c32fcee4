use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{Response, request::Parts};

use crate::{MakeRejection, Problem, ProblemJson};

/// Whom a request counts against: a tenant, an API key id, a client address.
///
/// Its bytes appear in no log and not in `Debug`.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key(Bytes);

impl Key {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&'static str> for Key {
    fn from(key: &'static str) -> Self {
        Self(Bytes::from_static(key.as_bytes()))
    }
}

impl From<String> for Key {
    fn from(key: String) -> Self {
        Self(key.into())
    }
}

impl From<Bytes> for Key {
    fn from(key: Bytes) -> Self {
        Self(key)
    }
}

impl From<&[u8]> for Key {
    fn from(key: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(key))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Names the party a request counts against, or refuses the request.
///
/// Read the key from what an authenticating layer has verified and put into the extensions, never from a header that a
/// client can write at will.
///
/// ```
/// use http::request::Parts;
/// use steadfast_core::{Key, KeyFrom, Refusal, facts::Verified};
///
/// fn tenant(parts: &Parts) -> Result<Key, Refusal> {
///     match parts.extensions.get::<Verified>() {
///         Some(verified) => Ok(Key::from(verified.key_id().to_owned())),
///         None => Err(Refusal::unauthorized()),
///     }
/// }
/// # fn takes(_: impl KeyFrom) {}
/// # takes(tenant);
/// ```
pub trait KeyFrom: Send + Sync + 'static {
    /// The key of this request.
    ///
    /// # Errors
    ///
    /// The response to answer with instead, when the request names nobody it may count against.
    fn key_from(&self, parts: &Parts) -> Result<Key, Refusal>;
}

impl<F> KeyFrom for F
where
    F: Fn(&Parts) -> Result<Key, Refusal> + Send + Sync + 'static,
{
    fn key_from(&self, parts: &Parts) -> Result<Key, Refusal> {
        self(parts)
    }
}

impl KeyFrom for Arc<dyn KeyFrom> {
    fn key_from(&self, parts: &Parts) -> Result<Key, Refusal> {
        (**self).key_from(parts)
    }
}

/// The answer of a [`KeyFrom`] that refuses.
#[derive(Debug)]
pub struct Refusal(Box<Response<Bytes>>);

impl Refusal {
    /// 401 with a problem body. Add `WWW-Authenticate` by building a response of your own.
    #[must_use]
    pub fn unauthorized() -> Self {
        let problem = Problem::new(
            http::StatusCode::UNAUTHORIZED,
            "unauthorized",
            "The request carries no valid credentials",
        );
        ProblemJson::default().make_rejection(&problem).into()
    }

    /// The response.
    #[must_use]
    pub fn into_response(self) -> Response<Bytes> {
        *self.0
    }
}

impl From<Response<Bytes>> for Refusal {
    fn from(response: Response<Bytes>) -> Self {
        Self(Box::new(response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_not_show_its_bytes() {
        assert_eq!(format!("{:?}", Key::from("sk_live_1")), "Key(..)");
    }

    #[test]
    fn a_refusal_is_a_problem() {
        let response = Refusal::unauthorized().into_response();
        assert_eq!(response.status(), 401);
        assert_eq!(
            response.headers()["content-type"],
            "application/problem+json"
        );
    }
}
