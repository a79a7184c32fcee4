//! The server's half: nothing unsigned reaches the service.

mod config;
mod flow;
mod future;
mod layer;
mod patience;
mod rejection;
mod service;
mod tee;

pub use self::{
    future::ResponseFuture as VerifyResponseFuture, layer::SignatureVerifyLayer,
    rejection::Rejection, service::VerifySignature,
};
