use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Uri, request::Parts};
use sfv::{
    BareItem, FieldType as _, InnerList, Integer, Item, Key, List, ListEntry, Parameters, StringRef,
};

use super::{
    component::{Component, Head},
    digest::{self, CONTENT_DIGEST, dictionary},
};
use crate::{
    Algorithm, Candidate, Presented, Reason, Scheme, SignError, SigningKey, Stamp, Tolerance,
    Window,
    scheme::{Candidates, Content, Signed},
};

const SIGNATURE: HeaderName = HeaderName::from_static("signature");
const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");

/// HTTP message signatures (RFC 9421), HMAC-SHA-256 or Ed25519, over the head and the `Content-Digest` (RFC 9530), which
/// is computed again from the body.
///
/// | setting | default |
/// |---|---|
/// | covered | `@method`, `@authority`, `@path`, `@query`, `content-digest`: no fewer |
/// | label | `sig1` when signing; when verifying, the only signature there is |
/// | tolerance | 300 s back, 300 s ahead of `created`, which has to be there; `expires` holds too |
/// | key id | `keyid`, or the only key |
///
/// Deviations: components with parameters, `@target-uri`, `@scheme`, `@query-param` and `@status` are not known, and a
/// signature that covers one is refused. A list of signatures is read only by its label.
#[derive(Clone, Debug)]
pub struct MessageSignatures {
    algorithm: Algorithm,
    label: Option<Key>,
    covered: Vec<Component>,
    tolerance: Tolerance,
}

/// Why a setting of [`MessageSignatures`] is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageSignatureError {
    /// A component is not known, or stands there twice.
    #[error("the component is not known, or stands there twice")]
    Component,
    /// A label is not of its form: lower-case letters, digits, `_`, `-`, `.`, `*`.
    #[error("the label is not of its form")]
    Label,
}

impl MessageSignatures {
    fn new(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            label: None,
            covered: vec![
                Component::Method,
                Component::Authority,
                Component::Path,
                Component::Query,
                Component::Field(CONTENT_DIGEST),
            ],
            tolerance: Tolerance::both(Duration::from_secs(300)),
        }
    }

    /// `hmac-sha256`.
    #[must_use]
    pub fn hmac_sha256() -> Self {
        Self::new(Algorithm::HmacSha256)
    }

    /// `ed25519`.
    #[cfg(feature = "ed25519")]
    #[must_use]
    pub fn ed25519() -> Self {
        Self::new(Algorithm::Ed25519)
    }

    /// Covers further components: names of fields, or `@request-target`. Requests that do not cover them are refused.
    ///
    /// # Errors
    ///
    /// If one is not known, or covered already.
    pub fn also_covered<'a>(
        mut self,
        components: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, MessageSignatureError> {
        for component in components {
            match Component::parse(component) {
                Some(component) if !self.covered.contains(&component) => {
                    self.covered.push(component);
                }
                _ => return Err(MessageSignatureError::Component),
            }
        }
        Ok(self)
    }

    /// Sets the label of the signature. Default: `sig1` when signing; when verifying, the only signature there is.
    ///
    /// # Errors
    ///
    /// If it is no label.
    pub fn label(mut self, label: impl Into<String>) -> Result<Self, MessageSignatureError> {
        let label = Key::from_string(label.into());
        self.label = Some(label.map_err(|_| MessageSignatureError::Label)?);
        Ok(self)
    }

    /// Sets how far `created` may be from now. Default: 300 s in both directions.
    #[must_use]
    pub const fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    const fn algorithm_name(&self) -> &'static str {
        match self.algorithm {
            #[cfg(feature = "ed25519")]
            Algorithm::Ed25519 => "ed25519",
            _ => "hmac-sha256",
        }
    }

    #[cfg(test)]
    pub(super) fn window_of(&self, input: &InnerList) -> Result<Window, Reason> {
        self.window(&input.params)
    }

    /// The window that `created` and `expires` leave.
    fn window(&self, params: &Parameters) -> Result<Window, Reason> {
        let created = time(params, "created")?.ok_or(Reason::Missing)?;
        let mut tolerance = self.tolerance;
        if let Some(expires) = time(params, "expires")? {
            let lifetime = expires.duration_since(created);
            tolerance.past = tolerance.past.min(lifetime.map_err(|_| Reason::Malformed)?);
        }
        Ok(Window::new(created, tolerance))
    }
}

impl Scheme for MessageSignatures {
    fn name(&self) -> &'static str {
        "http_signatures"
    }

    fn present(&self, head: &Parts, uri: &Uri) -> Result<Presented, Reason> {
        let inputs = dictionary(&head.headers, &SIGNATURE_INPUT)?;
        let signatures = dictionary(&head.headers, &SIGNATURE)?;
        let label = match &self.label {
            Some(label) => label,
            None if inputs.len() == 1 => inputs.keys().next().ok_or(Reason::Missing)?,
            None => return Err(Reason::Malformed),
        };
        let input = match inputs.get(label) {
            Some(ListEntry::InnerList(input)) => input,
            Some(ListEntry::Item(_)) => return Err(Reason::Malformed),
            None => return Err(Reason::Missing),
        };
        let signature = match signatures.get(label) {
            Some(ListEntry::Item(item)) => item.bare_item.as_byte_sequence(),
            Some(ListEntry::InnerList(_)) => None,
            None => return Err(Reason::Missing),
        };
        let candidate = Candidate::new(self.algorithm, signature.ok_or(Reason::Malformed)?);

        if string(&input.params, "alg")?.is_some_and(|alg| alg != self.algorithm_name()) {
            return Err(Reason::Malformed);
        }
        let covered = covered(input)?;
        if !self
            .covered
            .iter()
            .all(|component| covered.contains(component))
        {
            return Err(Reason::Missing);
        }
        let head = Head {
            method: &head.method,
            uri,
            headers: &head.headers,
        };
        let base = base(&covered, input, head)?;
        let candidates = Candidates::one(candidate.ok_or(Reason::Malformed)?);
        let presented = Presented::new(candidates, Content::head(base.into()))
            .window(self.window(&input.params)?)
            .body_digest(digest::named(head.headers)?);
        Ok(match string(&input.params, "keyid")? {
            Some(key_id) => presented.key_id(key_id),
            None => presented,
        })
    }

    fn sign(
        &self,
        head: &mut Parts,
        body: &Bytes,
        key: &SigningKey,
        stamp: &Stamp,
    ) -> Result<Signed, SignError> {
        let unsignable = |_| SignError::Unsignable;
        let digest = HeaderValue::try_from(digest::of(body)).map_err(|_| SignError::Unsignable)?;
        head.headers.insert(CONTENT_DIGEST, digest);

        let text = |text: &str| {
            StringRef::from_str(text)
                .map(BareItem::from)
                .map_err(unsignable)
        };
        let mut input = InnerList::default();
        for component in &self.covered {
            input.items.push(Item::new(text(component.identifier())?));
        }
        let created = stamp
            .at()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let created = i64::try_from(created.as_secs()).map_err(|_| SignError::Unsignable)?;
        let created = Integer::try_from(created).map_err(|_| SignError::Unsignable)?;
        for (name, value) in [
            ("created", created.into()),
            ("nonce", text(stamp.nonce())?),
            ("keyid", text(key.id())?),
            ("alg", text(self.algorithm_name())?),
        ] {
            let name = Key::from_string(name.to_owned());
            input
                .params
                .insert(name.map_err(|_| SignError::Unsignable)?, value);
        }
        let parts = Head {
            method: &head.method,
            uri: &head.uri,
            headers: &head.headers,
        };
        let base = base(&self.covered, &input, parts).map_err(|reason| match reason {
            Reason::Missing => SignError::MissingHeader,
            _ => SignError::Unsignable,
        })?;
        let signature = Content::head(base.into())
            .signature(self.algorithm, key.secret(), body)
            .ok_or(SignError::WrongKey)?;

        let label = self.label.as_ref().map_or("sig1", |label| label.as_str());
        let input = serialized(&input).ok_or(SignError::Unsignable)?;
        let text = crate::Encoding::Base64.encode(signature.signature());
        for (name, value) in [
            (SIGNATURE_INPUT, format!("{label}={input}")),
            (SIGNATURE, format!("{label}=:{text}:")),
        ] {
            let value = HeaderValue::try_from(value).map_err(|_| SignError::Unsignable)?;
            head.headers.insert(name, value);
        }
        Ok(Signed::new(signature, None))
    }
}

/// The components that are covered, each known and there once.
fn covered(input: &InnerList) -> Result<Vec<Component>, Reason> {
    let mut covered = Vec::with_capacity(input.items.len());
    for item in &input.items {
        let identifier = item.bare_item.as_string().ok_or(Reason::Malformed)?;
        let component = Component::parse(identifier.as_str()).ok_or(Reason::Malformed)?;
        if !item.params.is_empty() || covered.contains(&component) {
            return Err(Reason::Malformed);
        }
        covered.push(component);
    }
    Ok(covered)
}

/// The signature base (RFC 9421 §2.5).
pub(super) fn base(
    covered: &[Component],
    input: &InnerList,
    head: Head<'_>,
) -> Result<String, Reason> {
    let mut base = String::with_capacity(512);
    for component in covered {
        component.write(head, &mut base)?;
    }
    base.push_str("\"@signature-params\": ");
    base.push_str(&serialized(input).ok_or(Reason::Malformed)?);
    Ok(base)
}

fn serialized(input: &InnerList) -> Option<String> {
    List::from([ListEntry::InnerList(input.clone())]).serialize()
}

fn string<'a>(params: &'a Parameters, name: &str) -> Result<Option<&'a str>, Reason> {
    let Some(value) = params.get(name) else {
        return Ok(None);
    };
    let value = value.as_string().ok_or(Reason::Malformed)?;
    Ok(Some(value.as_str()))
}

fn time(params: &Parameters, name: &str) -> Result<Option<SystemTime>, Reason> {
    let Some(value) = params.get(name) else {
        return Ok(None);
    };
    let seconds: i64 = value.as_integer().ok_or(Reason::Malformed)?.into();
    let seconds = u64::try_from(seconds).map_err(|_| Reason::Malformed)?;
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    time.map(Some).ok_or(Reason::Malformed)
}
