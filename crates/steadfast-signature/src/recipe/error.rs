/// Why a recipe is no scheme.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemeError {
    /// Two different requests could be signed as the same bytes: a value of no fixed length is followed by something it
    /// might contain itself.
    #[error("a value is followed by something that it might contain")]
    Ambiguous,
    /// The body is not signed.
    #[error("the body is not signed")]
    BodyUnsigned,
    /// A text between values is empty, or a label of a signature is.
    #[error("a text or a label is empty")]
    Empty,
    /// No header carries the signature.
    #[error("no header carries the signature")]
    NoSignature,
    /// The nonce is not signed: anybody could change it.
    #[error("the nonce is not signed")]
    NonceUnsigned,
    /// The body is signed twice.
    #[error("the body is signed twice")]
    RepeatedBody,
    /// One header is named for two purposes.
    #[error("one header is named for two purposes")]
    SharedHeader,
    /// The timestamp is not signed: anybody could change it.
    #[error("the timestamp is not signed")]
    TimestampUnsigned,
    /// A value is signed, and no header carries it.
    #[error("a value is signed that no header carries")]
    Unnamed,
}
