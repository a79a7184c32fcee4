//! Tower layers that keep both sides of an HTTP API's reliability contract.
//!
//! One key per logical call licenses the retry; the retry obeys the server; the server claims the key before it runs.
//! So a lost answer, a racing duplicate or an impatient client ends in one effect.
//!
//! | feature | layer | side |
//! |---|---|---|
//! | `idempotency` (default) | [`IdempotencyKeyLayer`](idempotency::IdempotencyKeyLayer) | client |
//! | `idempotency` (default) | [`IdempotencyLayer`](idempotency::IdempotencyLayer) | server |
//! | `retry` (default) | [`RateLimitAwareRetryLayer`](retry::RateLimitAwareRetryLayer) | client |
//! | `signature` | [`SignatureVerifyLayer`](signature::SignatureVerifyLayer) | server |
//! | `signature` | [`SignRequestLayer`](signature::SignRequestLayer) | client |
//! | `replay` | [`ReplayGuardLayer`](replay::ReplayGuardLayer) | server |
//! | `reqwest` | [`ReqwestService`](core::reqwest::ReqwestService) | client |
//!
//! Features `axum` and `hyper-util` (both default) fit the layers to these two; `ed25519` and `http-signatures` add these
//! to `signature`; `full` is all of them.
//!
//! # Order of layers
//!
//! Client, outside in: trace and request id, `IdempotencyKeyLayer`, `RateLimitAwareRetryLayer`, the attempt's timeout,
//! `SignRequestLayer`, the client. The key outside the retry: one call, one key, however often it is sent. The signature
//! inside: each attempt has its own, and none is taken for a replay of the one before.
//!
//! Server, outside in: trace and request id, rate limit, authentication (`SignatureVerifyLayer` for one),
//! `ReplayGuardLayer`, body limit and decompression, `IdempotencyLayer`, timeout, handler. Signatures outside decompression: they are of the bytes on the
//! wire.
//!
//! # A server
//!
//! ```
//! use axum::{Router, routing::post};
//! use steadfast::idempotency::{IdempotencyLayer, MemoryStore, Scope};
//!
//! let store = MemoryStore::new(100_000, 64 * 1024 * 1024);
//! let app: Router = Router::new()
//!     .route("/orders", post(|| async { "created" }))
//!     .layer(IdempotencyLayer::new(store, Scope::global()));
//! # let _ = app;
//! ```
//!
//! # A client
//!
//! ```
//! # #[cfg(feature = "reqwest")]
//! # async fn send() -> Result<(), steadfast::core::BoxError> {
//! use bytes::Bytes;
//! use http_body_util::Full;
//! use steadfast::{
//!     core::reqwest::ReqwestService, idempotency::IdempotencyKeyLayer, retry::RateLimitAwareRetryLayer,
//! };
//! use tower::{ServiceBuilder, ServiceExt as _};
//!
//! let client = ServiceBuilder::new()
//!     .layer(IdempotencyKeyLayer::new())
//!     .layer(RateLimitAwareRetryLayer::new())
//!     .service(ReqwestService::new(reqwest::Client::builder())?);
//!
//! let order = http::Request::post("http://127.0.0.1:3000/orders").body(Full::<Bytes>::from("tea"))?;
//! let response = client.oneshot(order).await?;
//! # let _ = response;
//! # Ok(())
//! # }
//! ```
//!
//! # Minimum supported Rust version
//!
//! 1.89.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod problems;

pub use steadfast_core as core;
pub use steadfast_headers as headers;
#[cfg(feature = "idempotency")]
pub use steadfast_idempotency as idempotency;
#[cfg(feature = "replay")]
pub use steadfast_replay as replay;
#[cfg(feature = "retry")]
pub use steadfast_retry as retry;
#[cfg(feature = "signature")]
pub use steadfast_signature as signature;
