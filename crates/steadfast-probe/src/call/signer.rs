use std::{convert::Infallible, sync::Arc};

use steadfast::signature::{KeyError, Scheme, SignRequestLayer, SigningKey};

use crate::scheme::{SQUARE, Side, SignatureScheme};

pub(super) type SignLayer = SignRequestLayer<Arc<dyn Scheme>, SigningKey>;

/// The value of `--sign`, or why it is none.
#[derive(Clone, Debug)]
pub(super) struct Signer(Result<(Arc<dyn Scheme>, SigningKey), SignerError>);

/// Why nothing can be signed. Never shows what stood there.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum SignerError {
    #[error("not of the form SCHEME:KEYID:SECRET")]
    Form,
    #[error("there is no such scheme")]
    UnknownScheme,
    #[error("square signs the URL it is registered under, which no call knows")]
    Square,
    #[error("the key's id is empty")]
    NoId,
    #[error("{0}")]
    Secret(KeyError),
}

impl Signer {
    /// Never fails at once: the parser of flags would show the secret.
    #[expect(clippy::unnecessary_wraps, reason = "it is a parser that never fails")]
    pub(super) fn parse(text: &str) -> Result<Self, Infallible> {
        Ok(Self(parse(text)))
    }

    /// The layer, which signs bodies up to `max_body`.
    pub(super) fn layer(self, max_body: usize) -> Result<SignLayer, SignerError> {
        let (scheme, key) = self.0?;
        Ok(SignRequestLayer::new(scheme, key).max_body(max_body))
    }
}

fn parse(text: &str) -> Result<(Arc<dyn Scheme>, SigningKey), SignerError> {
    let mut parts = text.splitn(3, ':');
    let (Some(name), Some(id), Some(secret)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(SignerError::Form);
    };
    if name == SQUARE {
        return Err(SignerError::Square);
    }
    let scheme = SignatureScheme::named(name, "").ok_or(SignerError::UnknownScheme)?;
    if id.is_empty() {
        return Err(SignerError::NoId);
    }
    let secret = scheme.secret(secret, Side::Sign);
    let key = SigningKey::new(id, secret.map_err(SignerError::Secret)?);
    Ok((scheme.into_scheme(), key))
}
