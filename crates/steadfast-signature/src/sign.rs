//! The client's half: each attempt is signed afresh.

mod config;
mod flow;
mod future;
mod layer;
mod recent;
mod rejection;
mod service;

pub use self::{
    future::ResponseFuture as SignResponseFuture, layer::SignRequestLayer,
    rejection::SignRejection, service::SignRequest,
};
