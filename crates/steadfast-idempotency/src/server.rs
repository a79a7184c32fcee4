//! The server's half: at most one effect a key.

mod claim;
mod config;
mod disposition;
mod drain;
mod flow;
mod future;
mod handler;
mod identity;
mod layer;
mod lease;
mod owner;
mod record;
mod rejection;
mod renewal;
mod replay;
mod run;
mod save;
mod scope;
mod service;
mod timing;

pub use self::{
    disposition::{Disposition, DoNotStore, OnFailure},
    drain::{Drain, Drained},
    future::ResponseFuture,
    layer::{IdempotencyLayer, ReuseStatus},
    lease::Lease,
    record::StoredHeaders,
    rejection::Rejection,
    scope::Scope,
    service::Idempotency,
    timing::{Timing, TimingError},
};
