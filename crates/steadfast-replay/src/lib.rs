//! A signed request is good once, and an event is processed once.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod drain;
mod flow;
mod future;
mod handler;
mod identity;
mod layer;
mod rejection;
mod service;
mod step;
mod store;

pub use self::{
    drain::{Drain, Drained},
    flow::{Duplicate, Lease},
    future::{EventFuture, OneShotFuture},
    layer::{Events, OneShot, ReplayGuardLayer},
    rejection::Rejection,
    service::ReplayGuard,
    store::{
        BoxStore, BoxStoreError, Claim, Claimed, Digest, EventId, Life, MemoryStore,
        MemoryStoreError, Once, Recorded, Settled, Store, Token,
    },
};
