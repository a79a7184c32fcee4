//! HTTP message signatures.

mod component;
mod digest;
mod scheme;
#[cfg(test)]
mod tests;

pub use self::scheme::{MessageSignatureError, MessageSignatures};
