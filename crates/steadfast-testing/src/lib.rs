//! What steadfast's own tests and examples stand on: a proxy that breaks HTTP exchanges on purpose, a service that
//! notices every breach of Tower's contract, bodies that end the way a test needs, and what every store has to do.
//!
//! The crate is not published. Its items come in five groups:
//!
//! | to test | use |
//! |---|---|
//! | a client and a server over a network that loses, cuts, delays and repeats | [`FaultProxy`], [`Faults`], [`Fault`], [`FaultStats`] |
//! | a layer's use of the service inside it | [`ServiceProbe`], [`ProbeHandle`], [`assert_service_contract`], [`assert_error`] |
//! | what is left behind when a future is dropped | [`drop_at_every_await`], [`poll_times`] |
//! | a layer's handling of bodies | [`ChunkedBody`], [`BodyMeter`] |
//! | a store | [`conformance`], [`idempotency_store!`], [`replay_store!`] |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod body;
pub mod conformance;
mod probe;
mod proxy;

pub use self::{
    body::{ChunkedBody, meter::BodyMeter},
    probe::{
        contract::{assert_error, assert_service_contract},
        drops::{drop_at_every_await, poll_times},
        future::ProbeFuture,
        handle::ProbeHandle,
        service::ServiceProbe,
    },
    proxy::{
        FaultProxy,
        faults::{Fault, Faults},
        stats::FaultStats,
    },
};
