//! The client's half: one key a logical call.

mod future;
mod layer;
mod rejection;
mod service;

pub use self::{
    future::ResponseFuture as KeyResponseFuture,
    layer::{IdempotencyKeyLayer, KeyKind},
    rejection::KeyRejection,
    service::SetIdempotencyKey,
};
