//! A signed request is good once, and an event is processed once.
//!
//! [`ReplayGuardLayer`] reads [`Verified`](steadfast_core::facts::Verified), which the layer that verifies signatures puts
//! into a request's extensions. A request without it is refused with 401, unless
//! [`skip_when`](ReplayGuardLayer::skip_when) lets it through.
//!
//! * [`one_shot`](ReplayGuardLayer::one_shot): clients sign each request afresh. What is sent twice was captured. It is
//!   remembered by what was signed, not by how the signature is spelled, from before the handler runs until its
//!   timestamp is past the tolerance.
//! * [`events`](ReplayGuardLayer::events): senders repeat a delivery until it is acknowledged. The event is claimed,
//!   processed and remembered on 2xx; on anything else it is left to the redelivery.
//!
//! ```
//! use steadfast_replay::{MemoryStore, ReplayGuardLayer};
//!
//! let requests = ReplayGuardLayer::one_shot(MemoryStore::new(100_000));
//! let events = ReplayGuardLayer::events(MemoryStore::new(1_000_000)).trust_unsigned_ids();
//! # let _ = (requests, events);
//! ```
//!
//! # Order in a stack
//!
//! Inside the layer that verifies, so that only what is genuine is remembered; outside idempotency and decompression.
//!
//! # Defaults
//!
//! | | default |
//! |---|---|
//! | one-shot | remembered to the end of the tolerance; a scheme without a timestamp is refused |
//! | event | known by its signed id; without one by the id or the body, whichever was seen, per scheme and decoded path |
//! | lease, retention | 30 s renewed every 10 s, 72 h |
//! | step of the store | 2 s |
//! | duplicate | 200 with `Event-Duplicate: 1` |
//!
//! Events are for senders of webhooks, who sign a body. Schemes of API requests sign method and path as well, and give no
//! id: with them two requests of the same body are one event. Their place is the one-shot mode.
//!
//! # Failure modes
//!
//! | what happens | what the sender sees | what becomes of the entry |
//! |---|---|---|
//! | the request was used before | 401 `Request signature has already been used` | unchanged |
//! | the event is in work | 409 and `Retry-After` | unchanged |
//! | the handler fails or panics | its own answer; 401 when a one-shot request is sent again | one-shot: kept; event: free |
//! | the sender disconnects | | event: the handler goes on and is committed |
//! | the store is full, or does not answer | 503 and `Retry-After` | nothing ran |
//! | the key is over its quota | 429 and `Retry-After` | nothing ran |
//! | a processed event is not committed | the handler's answer | claimed: the commit is tried again while the lease is renewed |
//! | the body of a 2xx breaks off | what was sent of it | event: done, since it was processed |
//! | the process is killed | a broken connection, then 409 | event: free when its lease is over |
//!
//! A duplicate marks nothing as seen: who replays one captured delivery under many ids fills no store with them.
//!
//! # Telemetry
//!
//! `tracing` events: at `debug` for refusals, duplicates and releases; at `warn` with the field `event` for
//! `store_unavailable`, `save_failed`, `release_failed` and `lease_lost`. The typed reason of a refusal is a
//! [`Rejection`] in the response's extensions; a duplicate has [`Duplicate`] there.
//!
//! # Minimum supported Rust version
//!
//! 1.89.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod drain;
mod flow;
mod future;
mod handler;
mod identity;
mod layer;
mod lease;
mod rejection;
mod renewal;
mod service;
mod step;
mod store;

pub use self::{
    drain::{Drain, Drained},
    flow::Duplicate,
    future::{EventFuture, OneShotFuture},
    layer::{Events, OneShot, ReplayGuardLayer},
    lease::Lease,
    rejection::Rejection,
    service::ReplayGuard,
    store::{
        BoxStore, BoxStoreError, Claim, Claimed, Digest, EventId, Life, MemoryStore,
        MemoryStoreError, Once, Recorded, Settled, Store, Token,
    },
};
