/// Why a secret or a key was refused. Never shows what stood there.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The secret is empty, or all zeros, which is the same to HMAC: everybody has it.
    #[error("the secret is empty")]
    Empty,
    /// The secret is not what its codec says it is.
    #[error("the secret is not of the form it should have")]
    Undecodable,
    /// The decoded secret has too few bytes for its form.
    #[error("the secret is too short for its form")]
    TooShort,
    /// A key has no secret.
    #[error("the key has no secret")]
    NoSecret,
    /// A key has more secrets than [`Secrets::MAX`](crate::Secrets::MAX).
    #[error("the key has too many secrets")]
    TooManySecrets,
    /// A key has no id.
    #[error("the key's id is empty")]
    NoId,
    /// Two keys have one id.
    #[error("two keys have the same id")]
    RepeatedId,
}
