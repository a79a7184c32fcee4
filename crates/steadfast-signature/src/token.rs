use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Uri, request::Parts};

use crate::{
    Candidate, Presented, Reason, Scheme, SignError, SigningKey, Stamp,
    algorithm::Algorithm,
    recipe::only,
    scheme::{Candidates, Content, Signed},
};

/// No signature at all: the secret itself stands in a header, as Telegram and GitLab have it.
///
/// It proves that the sender knows the secret, and nothing about the request: whoever sees one request can send any
/// other. Replays are told by the body alone.
#[derive(Clone, Debug)]
pub struct SecretToken {
    name: Cow<'static, str>,
    header: HeaderName,
}

impl SecretToken {
    /// The secret stands in `header`.
    pub fn new(name: impl Into<Cow<'static, str>>, header: HeaderName) -> Self {
        Self {
            name: name.into(),
            header,
        }
    }

    /// Telegram: `X-Telegram-Bot-Api-Secret-Token`.
    #[must_use]
    pub fn telegram() -> Self {
        let header = HeaderName::from_static("x-telegram-bot-api-secret-token");
        Self::new("telegram", header)
    }

    /// GitLab: `X-Gitlab-Token`.
    #[must_use]
    pub fn gitlab() -> Self {
        Self::new("gitlab", HeaderName::from_static("x-gitlab-token"))
    }
}

impl Scheme for SecretToken {
    fn name(&self) -> &str {
        &self.name
    }

    fn present(&self, head: &Parts, _uri: &Uri) -> Result<Presented, Reason> {
        let token = only(&head.headers, &self.header)?;
        let candidates = Candidates::one(Candidate::token(token.as_bytes()));
        // The body is what tells one message from another.
        let content = Content::body(Bytes::new(), Bytes::new());
        Ok(Presented::new(candidates, content))
    }

    fn sign(
        &self,
        head: &mut Parts,
        _body: &Bytes,
        key: &SigningKey,
        _stamp: &Stamp,
    ) -> Result<Signed, SignError> {
        let token = key.secret().token().ok_or(SignError::WrongKey)?;
        let mut value = HeaderValue::from_bytes(token).map_err(|_| SignError::Unsignable)?;
        if value.to_str().is_err() {
            return Err(SignError::Unsignable);
        }
        value.set_sensitive(true);
        head.headers.insert(self.header.clone(), value);
        let running = key.secret().begin(Algorithm::Token);
        let signature = running.ok_or(SignError::WrongKey)?.finish();
        Ok(Signed::new(signature, None))
    }
}
