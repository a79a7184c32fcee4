use std::{fmt, sync::Arc, time::SystemTime};

use bytes::Bytes;
use http::{Uri, request::Parts};
use steadfast_core::facts::MessageId;

use crate::{Candidate, SigningKey, Window};

/// How requests are signed: what a sender presents, and what is signed.
///
/// [`HmacScheme`](crate::HmacScheme) describes nearly all formats in use. Implement this trait for one that it does not.
pub trait Scheme: fmt::Debug + Send + Sync + 'static {
    /// The name, `stripe` for one.
    fn name(&self) -> &str;

    /// Reads what the sender presented, and lays out what it has to be a signature of. `uri` is the one the client sent,
    /// whatever a router made of it.
    ///
    /// Nothing is checked yet: everything in it is a claim.
    ///
    /// # Errors
    ///
    /// If something is missing, stands there twice or is malformed.
    fn present(&self, head: &Parts, uri: &Uri) -> Result<Presented, Reason>;

    /// Signs a request: sets the scheme's headers, and replaces what stands there of an earlier attempt (R12).
    ///
    /// # Errors
    ///
    /// If the request or the key cannot be signed with. The headers may then be set in part.
    fn sign(
        &self,
        head: &mut Parts,
        body: &Bytes,
        key: &SigningKey,
        stamp: &Stamp,
    ) -> Result<Signed, SignError>;
}

impl<T: Scheme + ?Sized> Scheme for Arc<T> {
    fn name(&self) -> &str {
        T::name(self)
    }

    fn present(&self, head: &Parts, uri: &Uri) -> Result<Presented, Reason> {
        T::present(self, head, uri)
    }

    fn sign(
        &self,
        head: &mut Parts,
        body: &Bytes,
        key: &SigningKey,
        stamp: &Stamp,
    ) -> Result<Signed, SignError> {
        T::sign(self, head, body, key, stamp)
    }
}

/// Why a request is not taken for a signed one. For logs: the sender is told none of it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// It was signed in the future, as far as this clock can tell.
    Early,
    /// Something that was presented is not of its form, or stands there twice.
    Malformed,
    /// Something that has to be presented is not there.
    Missing,
    /// No signature is that of the content by an active secret of the key.
    Mismatch,
    /// It was signed too long ago.
    Stale,
    /// There is no such key.
    UnknownKey,
}

impl Reason {
    /// The reason as it appears in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Malformed => "malformed",
            Self::Mismatch => "mismatch",
            Self::Missing => "missing",
            Self::Stale => "stale",
            Self::UnknownKey => "unknown_key",
        }
    }
}

/// What a sender presented: signatures, what they have to be of, and when and by which key they claim to be made.
pub struct Presented {
    pub(crate) candidates: Candidates,
    pub(crate) content: Content,
    pub(crate) key_id: Option<Box<str>>,
    pub(crate) window: Option<Window>,
    pub(crate) id: Option<MessageId>,
    pub(crate) body_digest: Option<BodyDigest>,
}

impl Presented {
    /// Signatures of `content`, by the only key, at no known time.
    #[must_use]
    pub const fn new(candidates: Candidates, content: Content) -> Self {
        Self {
            candidates,
            content,
            key_id: None,
            window: None,
            id: None,
            body_digest: None,
        }
    }

    /// Adds the id of the key. Default: [`DEFAULT_KEY_ID`](crate::DEFAULT_KEY_ID).
    #[must_use]
    pub fn key_id(mut self, key_id: impl Into<Box<str>>) -> Self {
        self.key_id = Some(key_id.into());
        self
    }

    /// Adds when it was signed, and how far that may be from now. Default: it does not age.
    #[must_use]
    pub const fn window(mut self, window: Window) -> Self {
        self.window = Some(window);
        self
    }

    /// Adds the id of the message. Default: none.
    #[must_use]
    pub fn message_id(mut self, id: MessageId) -> Self {
        self.id = Some(id);
        self
    }

    /// Adds a digest of the body that the content names: it is computed again and compared. Default: none.
    #[must_use]
    pub const fn body_digest(mut self, digest: BodyDigest) -> Self {
        self.body_digest = Some(digest);
        self
    }
}

impl fmt::Debug for Presented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presented")
            .field("key_id", &self.key_id)
            .field("window", &self.window)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// One to sixteen presented signatures.
#[derive(Clone, Debug)]
pub struct Candidates {
    first: Candidate,
    more: Vec<Candidate>,
}

impl Candidates {
    /// The most signatures of one message. A sender in the middle of a rotation needs two.
    pub const MAX: usize = 16;

    /// The only signature.
    #[must_use]
    pub const fn one(candidate: Candidate) -> Self {
        Self {
            first: candidate,
            more: Vec::new(),
        }
    }

    /// Adds a signature.
    ///
    /// # Errors
    ///
    /// [`Reason::Malformed`] if there are 16 already.
    pub fn push(&mut self, candidate: Candidate) -> Result<(), Reason> {
        if self.len() == Self::MAX {
            return Err(Reason::Malformed);
        }
        self.more.push(candidate);
        Ok(())
    }

    pub(crate) const fn len(&self) -> usize {
        1 + self.more.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Candidate> {
        std::iter::once(&self.first).chain(&self.more)
    }
}

/// What is signed: bytes from the head of a request, and its body in one way or another.
#[derive(Clone)]
pub struct Content {
    pub(crate) before: Bytes,
    pub(crate) covers: Covers,
    pub(crate) after: Bytes,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Covers {
    Body,
    BodySha256Hex,
    Nothing,
}

impl Content {
    /// The body between bytes of the head.
    #[must_use]
    pub const fn body(before: Bytes, after: Bytes) -> Self {
        Self {
            before,
            covers: Covers::Body,
            after,
        }
    }

    /// The lower-case hex of the body's SHA-256 between bytes of the head.
    #[must_use]
    pub const fn body_sha256(before: Bytes, after: Bytes) -> Self {
        Self {
            before,
            covers: Covers::BodySha256Hex,
            after,
        }
    }

    /// Bytes of the head alone.
    #[must_use]
    pub const fn head(signed: Bytes) -> Self {
        Self {
            before: signed,
            covers: Covers::Nothing,
            after: Bytes::new(),
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("covers", &self.covers)
            .finish_non_exhaustive()
    }
}

/// A digest that the body must have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum BodyDigest {
    /// SHA-256.
    Sha256([u8; 32]),
    /// SHA-512.
    Sha512([u8; 64]),
}

/// What makes one signature differ from the next: the time, and a number used once.
#[derive(Clone, Debug)]
pub struct Stamp {
    at: SystemTime,
    nonce: Box<str>,
}

impl Stamp {
    /// `nonce` must be new for each attempt, and made of visible ASCII.
    #[must_use]
    pub fn new(at: SystemTime, nonce: impl Into<Box<str>>) -> Self {
        Self {
            at,
            nonce: nonce.into(),
        }
    }

    /// Now, as far as the caller knows, with a random nonce.
    #[must_use]
    pub fn random(at: SystemTime) -> Self {
        Self::new(at, uuid::Uuid::new_v4().simple().to_string())
    }

    /// The time to sign.
    #[must_use]
    pub const fn at(&self) -> SystemTime {
        self.at
    }

    /// The number used once.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }
}

/// That a request was signed, and when the next signature of the same request would differ.
#[derive(Clone)]
pub struct Signed {
    pub(crate) signature: Candidate,
    pub(crate) next: Option<SystemTime>,
}

impl Signed {
    /// The same request is signed differently from `next` on, and the same before. `None` where it always differs, and
    /// where it never does.
    #[must_use]
    pub const fn new(signature: Candidate, next: Option<SystemTime>) -> Self {
        Self { signature, next }
    }
}

impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signed")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// Why a request cannot be signed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The scheme signs the id of the message, and the request has none. One made up here would be another one with each
    /// attempt.
    #[error("the message has no id to sign")]
    MissingId,
    /// A header that the scheme signs is missing.
    #[error("a header that is signed is missing")]
    MissingHeader,
    /// What is signed cannot stand between the delimiters of the scheme, or in a header.
    #[error("a value cannot be signed in this scheme")]
    Unsignable,
    /// The key is none for the scheme's algorithm: a public key, for one.
    #[error("the key cannot sign in this scheme")]
    WrongKey,
}
