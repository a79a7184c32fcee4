//! Secrets, who has which, and where they come from.

mod cached;
mod codec;
mod error;
mod find;
mod ring;
mod secret;
mod secrets;
mod signing;

pub use self::{
    cached::CachedKeys,
    codec::KeyCodec,
    error::KeyError,
    find::FindKey,
    ring::{DEFAULT_KEY_ID, KeyRing},
    secret::Secret,
    secrets::Secrets,
    signing::{RefreshingKeys, SigningKey, SigningKeys},
};
