//! One idempotency key per logical call, and at most one effect per key.
//!
//! A client that sends a POST and loses the connection cannot know whether the server acted. With a key on the call it
//! may simply send it again: [`IdempotencyKeyLayer`] gives each logical call one key, and [`IdempotencyLayer`] on the
//! server runs the handler once for each key and answers repeats with the stored response, marked
//! `Idempotent-Replayed: 1`.
//!
//! Use the server layer on endpoints whose effect must not be doubled: orders, payments, messages. Handlers that only
//! set a named state do not need it. The effect is once per key **while the claim lives**: a process that is killed in
//! the middle of a handler leaves its claim to the lease, and after that the next call runs the handler again. Whatever
//! the dead process had done by then is not undone by this crate.
//!
//! # On the server
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response, header::HeaderValue};
//! use http_body_util::{BodyExt as _, Full};
//! use steadfast_core::{Body, BoxError};
//! use steadfast_idempotency::{IdempotencyLayer, MemoryStore, Scope};
//! use tower::{ServiceBuilder, ServiceExt as _};
//!
//! async fn order(_: Request<Body<Full<Bytes>>>) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
//!     Ok(Response::new(Full::from("created")))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let store = MemoryStore::new(100_000, 64 * 1024 * 1024);
//! let service = ServiceBuilder::new()
//!     .layer(IdempotencyLayer::new(store, Scope::global()))
//!     .service_fn(order);
//!
//! let request = || Request::post("/orders").header("idempotency-key", "o-1").body(Full::from("tea"));
//! let first = service.clone().oneshot(request()?).await?;
//! assert!(!first.headers().contains_key("idempotent-replayed"));
//! let again = service.clone().oneshot(request()?).await?;
//! assert_eq!(again.headers()["idempotent-replayed"], HeaderValue::from_static("1"));
//! assert_eq!(again.into_body().collect().await?.to_bytes(), "created");
//!
//! let other = Request::post("/orders").header("idempotency-key", "o-1").body(Full::from("coffee"))?;
//! assert_eq!(service.oneshot(other).await?.status(), 422);
//! # Ok(())
//! # }
//! ```
//!
//! Configured for an API with tenants, where the key is required, answers are kept for a week and a failed run blocks
//! the key:
//!
//! ```
//! use std::time::Duration;
//!
//! use http::request::Parts;
//! use steadfast_core::{Key, Refusal, facts::Verified};
//! use steadfast_idempotency::{IdempotencyLayer, MemoryStore, OnFailure, Scope, Timing};
//!
//! fn tenant(parts: &Parts) -> Result<Key, Refusal> {
//!     let verified = parts.extensions.get::<Verified>().ok_or_else(Refusal::unauthorized)?;
//!     Ok(Key::from(verified.key_id().to_owned()))
//! }
//!
//! let week = Duration::from_secs(7 * 24 * 60 * 60);
//! let layer = IdempotencyLayer::new(MemoryStore::new(1_000_000, 1 << 30), Scope::tenant(tenant))
//!     .require_key()
//!     .on_failure(OnFailure::Hold)
//!     .timing(Timing::new(Duration::from_secs(30), week)?.wait_for(Duration::from_secs(5))?);
//! # let _ = layer;
//! # Ok::<(), steadfast_idempotency::TimingError>(())
//! ```
//!
//! # On the client
//!
//! ```
//! use http::{Request, Response};
//! use http_body_util::Empty;
//! use bytes::Bytes;
//! use steadfast_core::BoxError;
//! use steadfast_headers::{IdempotencyKey, KeyRules};
//! use steadfast_idempotency::IdempotencyKeyLayer;
//! use tower::{ServiceBuilder, ServiceExt as _};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let client = ServiceBuilder::new()
//!     .layer(IdempotencyKeyLayer::new())
//!     .service_fn(|request: Request<Empty<Bytes>>| async move {
//!         let key = request.headers()["idempotency-key"].clone();
//!         Ok::<_, BoxError>(Response::builder().header("x-sent", key).body(Empty::<Bytes>::new())?)
//!     });
//!
//! // A key of the caller's own survives the process: a job that starts again replays instead of repeating.
//! let mut request = Request::post("/invoices").body(Empty::new())?;
//! request.extensions_mut().insert(IdempotencyKey::new("invoice:inv_4192", &KeyRules::LOOSE)?);
//! let response = client.oneshot(request).await?;
//! assert_eq!(response.headers()["x-sent"], "invoice:inv_4192");
//! # Ok(())
//! # }
//! ```
//!
//! # Order in a stack
//!
//! Server, outside in: trace and request id, CORS, rate limit, **authentication**, body limit and decompression,
//! [`IdempotencyLayer`], timeout, handler. Inside authentication, so that a revoked caller gets 401 and never a replay;
//! inside the rate limit, so that a 429 is never recorded; response compression outside, so that each replay is
//! compressed for its own recipient. Expose `Idempotent-Replayed` through CORS if browsers are to see it.
//!
//! A timeout **outside** the layer answers the client and leaves the handler running, which then stores its answer. A
//! timeout inside ends the handler, which [`OnFailure`] takes for a failed run.
//!
//! Client, outside in: [`IdempotencyKeyLayer`], retry, throttle, timeout, signature, client. Inside retry each attempt
//! would get a key of its own, and each attempt could have an effect of its own.
//!
//! # Failure modes
//!
//! | what happens | what the client sees | what becomes of the key |
//! |---|---|---|
//! | no key where one is required; a bad or doubled key | 400 | nothing is stored |
//! | a duplicate while the call runs | 409 and `Retry-After`, or the answer within the configured wait | |
//! | the key with another request | 422 (or 400) | unchanged |
//! | the handler fails | its own answer | free, or blocked under [`OnFailure::Hold`] |
//! | the client disconnects | | the call goes on, its answer is stored |
//! | the answer is too large, a stream, or breaks off | that answer | done: repeats get 409, never a second run |
//! | the store does not answer before the run | 503 and `Retry-After` | nothing ran |
//! | the store does not take the answer | the handler's answer | claimed; saving is tried again while the lease is renewed |
//! | the store is full | 503 for new keys, answers for known ones | |
//! | the process is killed | a broken connection, then 409 | free when the lease is over |
//!
//! An answer is read to its end, up to the largest that is stored, before its head is passed on. Handlers that stream
//! without one of the known content types (`text/event-stream`, `multipart/x-mixed-replace`) put [`DoNotStore`] into
//! the response's extensions, or their clients wait for the whole stream.
//!
//! # Telemetry
//!
//! `tracing` events, one for each outcome: at `debug` for refusals and replays; at `warn` with the field `event` for
//! `store_unavailable`, `save_failed`, `lease_lost` and `record_unreadable`. Keys appear hashed with a seed of the
//! process. The typed reason of a refusal is a [`Rejection`] (client: [`KeyRejection`]) in the response's extensions; a
//! replay has [`Replayed`](steadfast_core::facts::Replayed) there.
//!
//! # Features
//!
//! * `axum` (default): paths are taken as the client sent them, also under nested routers. Without it, nested routers
//!   that share a store need [`Scope::original_uri`].
//!
//! # Minimum supported Rust version
//!
//! 1.89.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod client;
mod server;
mod store;

pub use self::{
    client::{IdempotencyKeyLayer, KeyKind, KeyRejection, KeyResponseFuture, SetIdempotencyKey},
    server::{
        Disposition, DoNotStore, Drain, Drained, Idempotency, IdempotencyLayer, Lease, OnFailure,
        Rejection, ResponseFuture, ReuseStatus, Scope, StoredHeaders, Timing, TimingError,
    },
    store::{
        BoxStore, BoxStoreError, Claim, Claimed, Fingerprint, MemoryStore, MemoryStoreError,
        Record, RecordId, Settled, Store, Token, Tombstone, TombstoneReason, Won,
    },
};
