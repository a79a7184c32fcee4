use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, request::Parts};
use sha2::{Digest as _, Sha256};
use steadfast_core::facts::MessageId;

use super::{
    builder::HmacSchemeBuilder,
    fields::{id, is_id, only},
    format::SignatureFormat,
    segment::Segment,
};
use crate::{
    Algorithm, Encoding, KeyCodec, KeyError, Reason, Scheme, Secret, SignError, SigningKey, Stamp,
    TimeUnit, Tolerance, Window,
    scheme::{Content, Presented, Signed},
};

/// A scheme that is a recipe: which headers carry what, and which pieces are signed in which order (S01–S04).
///
/// The same value signs and verifies. The formats in use are ready-made; [`builder`](Self::builder) makes others, and
/// refuses those in which two different requests are signed as the same bytes.
///
/// ```
/// use http::HeaderName;
/// use steadfast_signature::{HmacScheme, Segment, SignatureFormat, TimeUnit};
///
/// # fn main() -> Result<(), steadfast_signature::SchemeError> {
/// let scheme = HmacScheme::builder("acme")
///     .signature(HeaderName::from_static("acme-signature"), SignatureFormat::bare())
///     .timestamp_header(HeaderName::from_static("acme-timestamp"), TimeUnit::Seconds)
///     .message([Segment::Timestamp, Segment::text("."), Segment::Body])
///     .build()?;
/// # let _ = scheme;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HmacScheme {
    pub(super) name: Cow<'static, str>,
    pub(super) fields: Fields,
    pub(super) also: Option<Fields>,
    pub(super) format: SignatureFormat,
    pub(super) unit: Option<TimeUnit>,
    pub(super) tolerance: Tolerance,
    pub(super) key_id: Option<HeaderName>,
    pub(super) nonce: Option<HeaderName>,
    pub(super) message: Box<[Segment]>,
    pub(super) algorithm: Algorithm,
    pub(super) encoding: Encoding,
    pub(super) key_codec: KeyCodec,
}

/// The headers that senders write under more than one set of names.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    pub(super) signature: HeaderName,
    pub(super) timestamp: Option<HeaderName>,
    pub(super) id: Option<HeaderName>,
}

/// What stands in the place of the segments that are sent.
#[derive(Clone, Copy, Default)]
struct Values<'a> {
    timestamp: Option<&'a str>,
    id: Option<&'a str>,
    key_id: Option<&'a str>,
    nonce: Option<&'a str>,
}

impl HmacScheme {
    /// Begins a recipe of this name.
    pub fn builder(name: impl Into<Cow<'static, str>>) -> HmacSchemeBuilder {
        HmacSchemeBuilder::new(name.into())
    }

    /// Sets how far a timestamp may be from now. Default: what the sender documents, and never unlimited.
    #[must_use]
    pub const fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Sets which header carries the id of the message, where the scheme does not sign it. Default: the sender's, where
    /// it has one.
    #[must_use]
    pub fn unsigned_id_header(mut self, header: HeaderName) -> Self {
        if !self.signs_id() {
            self.fields.id = Some(header);
        }
        self
    }

    /// How the text of a secret becomes a key.
    #[must_use]
    pub const fn key_codec(&self) -> KeyCodec {
        self.key_codec
    }

    /// Reads the text of a secret as this scheme's senders show it: of Ed25519 the public key.
    ///
    /// # Errors
    ///
    /// If it is empty or not of the form it should have.
    pub fn secret(&self, text: &str) -> Result<Secret, KeyError> {
        #[cfg(feature = "ed25519")]
        if self.algorithm == Algorithm::Ed25519 {
            return Secret::parse_ed25519_public(self.key_codec, text);
        }
        Secret::parse(self.key_codec, text)
    }

    /// The name of the header that carries the signature.
    #[must_use]
    pub const fn signature_header(&self) -> &HeaderName {
        &self.fields.signature
    }

    /// The name of the header that carries the id of a message, and whether it is signed.
    #[must_use]
    pub fn id_header(&self) -> Option<(&HeaderName, bool)> {
        let header = self.fields.id.as_ref()?;
        Some((header, self.signs_id()))
    }

    pub(super) fn signs_id(&self) -> bool {
        self.message.contains(&Segment::Id)
    }

    /// The set of headers this message uses.
    fn fields_in(&self, headers: &HeaderMap) -> &Fields {
        match &self.also {
            Some(also) if !headers.contains_key(&self.fields.signature) => also,
            _ => &self.fields,
        }
    }

    /// Lays out what is signed. `None` if a value might be taken for more than itself.
    fn content(
        &self,
        values: Values<'_>,
        method: &Method,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Content, Reason> {
        // Most messages fit that have anything before the body.
        let before = match self.message.first() {
            None | Some(Segment::Body | Segment::BodySha256) => Vec::new(),
            Some(_) => Vec::with_capacity(192),
        };
        let mut parts = [before, Vec::new()];
        let mut side = 0;
        let mut hashed = false;
        for (at, segment) in self.message.iter().enumerate() {
            let delimiter = match self.message.get(at + 1) {
                Some(Segment::Text(text)) => text.bytes().next(),
                _ => None,
            };
            let part = &mut parts[side];
            let header;
            let value = match segment {
                Segment::Body | Segment::BodySha256 => {
                    hashed = *segment == Segment::BodySha256;
                    side = 1;
                    continue;
                }
                Segment::Text(text) => {
                    part.extend_from_slice(text.as_bytes());
                    continue;
                }
                Segment::Path => {
                    push_path(part, uri.path());
                    continue;
                }
                Segment::PathAndQuery => {
                    push_path(part, uri.path_and_query().map_or("/", |path| path.as_str()));
                    continue;
                }
                Segment::Method => Some(method.as_str()),
                Segment::Header(name) => {
                    header = only(headers, name)?;
                    Some(header)
                }
                Segment::Id => values.id,
                Segment::KeyId => values.key_id,
                Segment::Nonce => values.nonce,
                Segment::Timestamp => values.timestamp,
            };
            let value = value.ok_or(Reason::Missing)?.as_bytes();
            if delimiter.is_some_and(|delimiter| value.contains(&delimiter)) {
                return Err(Reason::Malformed);
            }
            part.extend_from_slice(value);
        }
        let [before, after] = parts.map(Bytes::from);
        Ok(if hashed {
            Content::body_sha256(before, after)
        } else {
            Content::body(before, after)
        })
    }
}

/// A client that asks for `?query` alone sends `/?query`.
fn push_path(part: &mut Vec<u8>, path: &str) {
    if path.is_empty() || path.starts_with('?') {
        part.push(b'/');
    }
    part.extend_from_slice(path.as_bytes());
}

impl Scheme for HmacScheme {
    fn name(&self) -> &str {
        &self.name
    }

    fn present(&self, head: &Parts, uri: &Uri) -> Result<Presented, Reason> {
        let headers = &head.headers;
        let fields = self.fields_in(headers);
        let signature = only(headers, &fields.signature)?;
        let parsed = self
            .format
            .parse(signature, self.algorithm, self.encoding)?;
        let of_header = |name: &Option<HeaderName>| match name {
            Some(name) => id(headers, name),
            None => Ok(None),
        };
        let values = Values {
            timestamp: match parsed.timestamp {
                None => of_header(&fields.timestamp)?,
                timestamp => timestamp,
            },
            id: of_header(&fields.id)?,
            key_id: of_header(&self.key_id)?,
            nonce: of_header(&self.nonce)?,
        };
        if self.key_id.is_some() && values.key_id.is_none() {
            return Err(Reason::Missing);
        }
        let window = match (self.unit, values.timestamp) {
            (None, _) => None,
            (Some(_), None) => return Err(Reason::Missing),
            (Some(unit), Some(text)) => {
                let signed_at = unit.read(text.as_bytes()).ok_or(Reason::Malformed)?;
                Some(Window::new(signed_at, self.tolerance))
            }
        };
        let content = self.content(values, &head.method, headers, uri)?;
        let id = values.id.map(|id| {
            let id = Bytes::copy_from_slice(id.as_bytes());
            match self.signs_id() {
                true => MessageId::signed(id),
                false => MessageId::unsigned(id),
            }
        });
        Ok(Presented {
            candidates: parsed.candidates,
            content,
            key_id: values.key_id.map(Box::from),
            window,
            id,
            body_digest: None,
        })
    }

    fn sign(
        &self,
        head: &mut Parts,
        body: &Bytes,
        key: &SigningKey,
        stamp: &Stamp,
    ) -> Result<Signed, SignError> {
        let (label, algorithm) = self
            .format
            .signing(self.algorithm, key.secret())
            .ok_or(SignError::WrongKey)?;
        let timestamp = self.unit.map(|unit| unit.write(stamp.at()));
        let id = match &self.fields.id {
            Some(name) if self.signs_id() => {
                let id = id(&head.headers, name).map_err(|_| SignError::Unsignable)?;
                Some(id.ok_or(SignError::MissingId)?)
            }
            _ => None,
        };
        let values = Values {
            timestamp: timestamp.as_deref(),
            id,
            key_id: self.key_id.is_some().then(|| key.id()),
            nonce: self.nonce.is_some().then(|| stamp.nonce()),
        };
        if ![values.key_id, values.nonce]
            .into_iter()
            .flatten()
            .all(is_id)
        {
            return Err(SignError::Unsignable);
        }
        let content = self
            .content(values, &head.method, &head.headers, &head.uri)
            .map_err(|reason| match reason {
                Reason::Missing => SignError::MissingHeader,
                _ => SignError::Unsignable,
            })?;
        let signature = content
            .signature(algorithm, key.secret(), body)
            .ok_or(SignError::WrongKey)?;
        let text = self.encoding.encode(signature.signature());
        let text = self.format.write(label, &text, timestamp.as_deref());

        let headers = &mut head.headers;
        // Of an earlier attempt, or of somebody who signed under the other names.
        if let Some(also) = &self.also {
            let also = [Some(&also.signature), also.timestamp.as_ref()];
            for name in also.into_iter().flatten() {
                headers.remove(name);
            }
        }
        set(headers, &self.fields.signature, &text)?;
        let sent = [
            (&self.fields.timestamp, timestamp.as_deref()),
            (&self.key_id, Some(key.id())),
            (&self.nonce, Some(stamp.nonce())),
        ];
        for (name, value) in sent {
            if let (Some(name), Some(value)) = (name, value) {
                set(headers, name, value)?;
            }
        }
        let next = self.unit.filter(|_| self.nonce.is_none());
        Ok(Signed::new(
            signature,
            next.map(|unit| unit.next(stamp.at())),
        ))
    }
}

impl Content {
    /// The signature of all of it.
    pub(crate) fn signature(
        &self,
        algorithm: Algorithm,
        secret: &Secret,
        body: &[u8],
    ) -> Option<crate::Candidate> {
        use crate::scheme::Covers;
        #[cfg(feature = "ed25519")]
        if algorithm == Algorithm::Ed25519 {
            let signature = secret.sign_ed25519(&self.whole(body))?;
            return crate::Candidate::new(algorithm, &signature);
        }
        let mut running = secret.begin(algorithm)?;
        running.update(&self.before);
        match self.covers {
            Covers::Body => running.update(body),
            Covers::BodySha256Hex => {
                running.update(base16ct::lower::encode_string(&Sha256::digest(body)).as_bytes());
            }
            Covers::Nothing => {}
        }
        running.update(&self.after);
        Some(running.finish())
    }
}

fn set(headers: &mut HeaderMap, name: &HeaderName, value: &str) -> Result<(), SignError> {
    let value = HeaderValue::from_str(value).map_err(|_| SignError::Unsignable)?;
    headers.insert(name.clone(), value);
    Ok(())
}
