use std::{borrow::Cow, time::Duration};

use http::HeaderName;

use super::{
    error::SchemeError,
    format::SignatureFormat,
    scheme::{Fields, HmacScheme},
    segment::{Segment, check_unambiguous},
};
use crate::{Algorithm, Encoding, KeyCodec, TimeUnit, Tolerance};

/// Puts an [`HmacScheme`] together.
///
/// | setting | default |
/// |---|---|
/// | algorithm | HMAC-SHA256 |
/// | encoding | lower-case hex |
/// | secrets | taken as they are |
/// | tolerance | 300 s back, 300 s ahead |
/// | timestamp, id, key id, nonce | none |
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct HmacSchemeBuilder {
    scheme: HmacScheme,
    signature: Option<(HeaderName, SignatureFormat)>,
    timestamp_header: Option<HeaderName>,
    undelimited: bool,
}

impl HmacSchemeBuilder {
    pub(super) fn new(name: Cow<'static, str>) -> Self {
        Self {
            scheme: HmacScheme::empty(name),
            signature: None,
            timestamp_header: None,
            undelimited: false,
        }
    }

    /// Sets which header carries the signature, and how.
    pub fn signature(mut self, header: HeaderName, format: SignatureFormat) -> Self {
        self.signature = Some((header, format));
        self
    }

    /// Sets which header carries the timestamp. Default: none.
    pub fn timestamp_header(mut self, header: HeaderName, unit: TimeUnit) -> Self {
        self.timestamp_header = Some(header);
        self.scheme.unit = Some(unit);
        self
    }

    /// Sets what the timestamp counts that stands beside the signature: see [`SignatureFormat::timestamp`].
    pub fn timestamp_unit(mut self, unit: TimeUnit) -> Self {
        self.scheme.unit = Some(unit);
        self
    }

    /// Sets how far a timestamp may be from now. Default: 300 s in both directions.
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.scheme.tolerance = tolerance;
        self
    }

    /// Sets which header carries the id of the message. It is signed if the message says so. Default: none.
    pub fn id_header(mut self, header: HeaderName) -> Self {
        self.scheme.fields.id = Some(header);
        self
    }

    /// Sets which header carries the id of the key. Default: none.
    pub fn key_id_header(mut self, header: HeaderName) -> Self {
        self.scheme.key_id = Some(header);
        self
    }

    /// Sets which header carries a number that is used once. It has to be signed. Default: none.
    pub fn nonce_header(mut self, header: HeaderName) -> Self {
        self.scheme.nonce = Some(header);
        self
    }

    /// Sets what is signed.
    pub fn message(mut self, message: impl IntoIterator<Item = Segment>) -> Self {
        self.scheme.message = message.into_iter().collect();
        self
    }

    /// Sets the algorithm. Default: HMAC-SHA256.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.scheme.algorithm = algorithm;
        self
    }

    /// Sets how a signature is spelled. Default: lower-case hex.
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.scheme.encoding = encoding;
        self
    }

    /// Sets how the text of a secret becomes a key. Default: it is the key.
    pub fn key_codec(mut self, codec: KeyCodec) -> Self {
        self.scheme.key_codec = codec;
        self
    }

    /// Reads a second set of headers where the first has no signature: some senders write the same under two names. One
    /// message is read from one set. Default: one set.
    pub fn also_headers(
        mut self,
        signature: HeaderName,
        timestamp: Option<HeaderName>,
        id: Option<HeaderName>,
    ) -> Self {
        self.scheme.also = Some(Fields {
            signature,
            timestamp,
            id,
        });
        self
    }

    /// Builds also what is ambiguous, as some senders have it: two different requests may be signed as the same bytes,
    /// and one signature is good for both. Default: [`SchemeError::Ambiguous`].
    pub fn insecure_undelimited(mut self) -> Self {
        self.undelimited = true;
        self
    }

    /// Builds the scheme.
    ///
    /// # Errors
    ///
    /// If something is missing, if something is left unsigned that has to be signed, or if two different requests would
    /// be signed as the same bytes.
    pub fn build(self) -> Result<HmacScheme, SchemeError> {
        let mut scheme = self.scheme;
        let (header, format) = self.signature.ok_or(SchemeError::NoSignature)?;
        format.check()?;
        scheme.fields.signature = header;
        scheme.fields.timestamp = self.timestamp_header;
        scheme.format = format;
        scheme.check()?;
        if !self.undelimited {
            check_unambiguous(&scheme.message, scheme.unit)?;
        }
        Ok(scheme)
    }
}

impl HmacScheme {
    pub(super) fn empty(name: Cow<'static, str>) -> Self {
        Self {
            name,
            fields: Fields {
                signature: http::header::AUTHORIZATION,
                timestamp: None,
                id: None,
            },
            also: None,
            format: SignatureFormat::bare(),
            unit: None,
            tolerance: Tolerance::both(Duration::from_secs(300)),
            key_id: None,
            nonce: None,
            message: Box::default(),
            algorithm: Algorithm::HmacSha256,
            encoding: Encoding::Hex,
            key_codec: KeyCodec::Raw,
        }
    }

    fn check(&self) -> Result<(), SchemeError> {
        let signs = |segment: &Segment| self.message.contains(segment);
        let bodies = self
            .message
            .iter()
            .filter(|segment| matches!(segment, Segment::Body | Segment::BodySha256));
        match bodies.count() {
            0 => return Err(SchemeError::BodyUnsigned),
            1 => {}
            _ => return Err(SchemeError::RepeatedBody),
        }
        if self.message.contains(&Segment::text("")) {
            return Err(SchemeError::Empty);
        }
        let carries_time = self.fields.timestamp.is_some() || self.format.has_timestamp();
        match (carries_time, signs(&Segment::Timestamp)) {
            (true, false) => return Err(SchemeError::TimestampUnsigned),
            (false, true) => return Err(SchemeError::Unnamed),
            (true, true) if self.unit.is_none() => return Err(SchemeError::Unnamed),
            _ => {}
        }
        match (self.nonce.is_some(), signs(&Segment::Nonce)) {
            (true, false) => return Err(SchemeError::NonceUnsigned),
            (false, true) => return Err(SchemeError::Unnamed),
            _ => {}
        }
        let unnamed = (signs(&Segment::Id) && self.fields.id.is_none())
            || (signs(&Segment::KeyId) && self.key_id.is_none());
        if unnamed {
            return Err(SchemeError::Unnamed);
        }
        let named = [
            Some(&self.fields.signature),
            self.fields.timestamp.as_ref(),
            self.fields.id.as_ref(),
            self.key_id.as_ref(),
            self.nonce.as_ref(),
        ];
        let named: Vec<_> = named.into_iter().flatten().collect();
        for (at, header) in named.iter().enumerate() {
            if named[at + 1..].contains(header) {
                return Err(SchemeError::SharedHeader);
            }
        }
        Ok(())
    }
}
