//! What two or more steadfast layers need, and nothing else.
//!
//! Users of the layers meet five things from here: [`Body`], the one opaque body type that the layers hand on and
//! answer with; [`Clock`], the source of wall time; [`KeyFrom`], which names the party a request counts against;
//! [`MakeRejection`], which writes the answers the layers give themselves; and the [`facts`] that travel in request and
//! response extensions. Authors of layers find [`read_capped`], [`is_stream`], [`ReplayBody`], [`Detach`] and [`original_uri`] beside
//! them.
//!
//! # Features
//!
//! * `axum` (default): [`original_uri`] reads axum's `OriginalUri`, so that nested routers do not hide the path.
//! * `reqwest`: [`reqwest::ReqwestService`], a `tower::Service` around `reqwest::Client`.
//!
//! # Minimum supported Rust version
//!
//! 1.89.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod body;
mod capped;
mod clock;
mod detach;
pub mod facts;
mod key;
mod operations;
mod original;
mod problem;
mod replay;
#[cfg(feature = "reqwest")]
pub mod reqwest;
mod stream;

pub use self::{
    body::Body,
    capped::{Capped, ReadCapped, read_capped},
    clock::Clock,
    detach::{Arm, Detach},
    key::{Key, KeyFrom, Refusal},
    operations::{Operations, RoutePattern, RoutePatternError},
    original::{OriginalUriFn, original_uri},
    problem::{ErrorEnvelope, MakeRejection, Problem, ProblemJson},
    replay::ReplayBody,
    stream::is_stream,
};

/// The error type of middleware that cannot name its inner error, as everywhere in the Tower ecosystem.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
