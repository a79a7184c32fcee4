use std::{fmt, time::SystemTime};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::Clock;

/// Who signed a request, what exactly, and until when it is fresh (S05). In the request's extensions, put there by the
/// layer that verified it.
///
/// The content is kept as the bytes that were signed, shared with the body: its digest is computed when somebody asks.
#[derive(Clone)]
pub struct Verified {
    /// The scheme, and behind it the id of the key: one allocation for both.
    names: Box<str>,
    scheme_len: usize,
    content: SignedContent,
    freshness: Option<Freshness>,
    id: Option<MessageId>,
}

impl Verified {
    /// Signed in `scheme` with the key `key_id`, over `content`.
    #[must_use]
    pub fn new(scheme: impl AsRef<str>, key_id: impl AsRef<str>, content: SignedContent) -> Self {
        let (scheme, key_id) = (scheme.as_ref(), key_id.as_ref());
        let mut names = String::with_capacity(scheme.len() + key_id.len());
        names.push_str(scheme);
        names.push_str(key_id);
        Self {
            names: names.into_boxed_str(),
            scheme_len: scheme.len(),
            content,
            freshness: None,
            id: None,
        }
    }

    /// Adds the timestamp that was signed, and how it was judged. Default: the scheme signs none.
    #[must_use]
    pub fn fresh(mut self, freshness: Freshness) -> Self {
        self.freshness = Some(freshness);
        self
    }

    /// Adds the id of the message. Default: it has none.
    #[must_use]
    pub fn with_id(mut self, id: MessageId) -> Self {
        self.id = Some(id);
        self
    }

    /// The name of the scheme, `stripe` for one.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.names[..self.scheme_len]
    }

    /// The id of the key that verified the signature, the same for all secrets of the key.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.names[self.scheme_len..]
    }

    /// What was signed.
    #[must_use]
    pub const fn content(&self) -> &SignedContent {
        &self.content
    }

    /// The timestamp that was signed, and how it was judged.
    #[must_use]
    pub const fn freshness(&self) -> Option<&Freshness> {
        self.freshness.as_ref()
    }

    /// The id of the message.
    #[must_use]
    pub const fn message_id(&self) -> Option<&MessageId> {
        self.id.as_ref()
    }
}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified")
            .field("scheme", &self.scheme())
            .field("key_id", &self.key_id())
            .field("freshness", &self.freshness)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The bytes that a signature covers, and the body, which it covers itself or by its digest.
#[derive(Clone, Default)]
pub struct SignedContent {
    before: Bytes,
    body: Bytes,
    after: Bytes,
    covers_body: bool,
}

impl SignedContent {
    /// The body and nothing else.
    #[must_use]
    pub fn body_alone(body: Bytes) -> Self {
        Self::around(Bytes::new(), body, Bytes::new())
    }

    /// The body between other bytes.
    #[must_use]
    pub const fn around(before: Bytes, body: Bytes, after: Bytes) -> Self {
        Self {
            before,
            body,
            after,
            covers_body: true,
        }
    }

    /// Bytes that name the body, or leave it out: the body was not signed as it is.
    #[must_use]
    pub const fn apart_from(signed: Bytes, body: Bytes) -> Self {
        Self {
            before: signed,
            body,
            after: Bytes::new(),
            covers_body: false,
        }
    }

    /// All that was signed, in pieces: joined in this order, they are what the signature covers.
    #[must_use]
    pub fn signed(&self) -> [&[u8]; 3] {
        let body: &[u8] = if self.covers_body { &self.body } else { &[] };
        [&self.before, body, &self.after]
    }

    /// The SHA-256 digest of all that was signed. Computed at each call.
    ///
    /// No other spelling of a signature, and no second signature over the same content, changes it.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        for piece in self.signed() {
            hasher.update(piece);
        }
        hasher.finalize().into()
    }

    /// The SHA-256 digest of the body. Computed at each call.
    #[must_use]
    pub fn body_digest(&self) -> [u8; 32] {
        Sha256::digest(&self.body).into()
    }

    /// The body as it was received.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }
}

impl fmt::Debug for SignedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedContent")
            .field("body_len", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// When something was signed and until when that counts, on the clock that judged it.
#[derive(Clone, Debug)]
pub struct Freshness {
    signed_at: SystemTime,
    until: SystemTime,
    clock: Clock,
}

impl Freshness {
    /// Signed at `signed_at`, fresh up to and including `until` on `clock`.
    #[must_use]
    pub const fn new(signed_at: SystemTime, until: SystemTime, clock: Clock) -> Self {
        Self {
            signed_at,
            until,
            clock,
        }
    }

    /// The timestamp that was signed.
    #[must_use]
    pub const fn signed_at(&self) -> SystemTime {
        self.signed_at
    }

    /// The last moment at which the signature is accepted.
    #[must_use]
    pub const fn until(&self) -> SystemTime {
        self.until
    }

    /// The clock that judges it.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }
}

/// The id of a message, which stays the same when the message is sent again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MessageId {
    id: Bytes,
    signed: bool,
}

impl MessageId {
    /// An id that the signature covers.
    #[must_use]
    pub const fn signed(id: Bytes) -> Self {
        Self { id, signed: true }
    }

    /// An id that anybody on the way could have set.
    #[must_use]
    pub const fn unsigned(id: Bytes) -> Self {
        Self { id, signed: false }
    }

    /// The id as it was received.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        &self.id
    }

    /// Whether the signature covers it.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.signed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g01_a_digest_is_of_what_was_signed() {
        let body = Bytes::from_static(b"two");
        let digest = |content: SignedContent| content.digest();
        let whole: [u8; 32] = Sha256::digest(b"onetwothree").into();
        let around = SignedContent::around("one".into(), body.clone(), "three".into());
        assert_eq!(digest(around), whole);
        let named: [u8; 32] = Sha256::digest(b"one").into();
        assert_eq!(
            digest(SignedContent::apart_from("one".into(), body.clone())),
            named
        );
        let alone = SignedContent::body_alone(body);
        assert_eq!(alone.digest(), alone.body_digest());
    }

    #[test]
    fn debug_output_shows_no_body_and_nothing_signed() {
        let content = SignedContent::around("before".into(), "secret".into(), "after".into());
        let shown = format!("{:?}", Verified::new("stripe", "key", content.clone()));
        for hidden in ["before", "secret", "after\""] {
            assert!(!shown.contains(hidden), "{shown}");
            assert!(!format!("{content:?}").contains(hidden));
        }
    }
}
