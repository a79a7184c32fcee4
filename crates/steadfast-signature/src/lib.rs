//! Signed requests and webhooks: verified before anything sees them, signed afresh with each attempt.
//!
//! [`SignatureVerifyLayer`] lets only requests through that somebody with the secret signed: it hashes the body as it
//! arrives, compares in constant time, and hands on the very bytes it verified. [`SignRequestLayer`] is the other side.
//! Both are driven by a [`Scheme`], and one value of it signs and verifies: [`HmacScheme`] has the formats in use
//! ready-made (Standard Webhooks, Stripe, GitHub, Slack, Shopify, signed API requests and twenty others) and builds
//! further ones; [`SecretToken`] compares a token; the trait is open for what is left.
//!
//! Use it wherever requests come from somebody who shares a secret with you. A signature says who sent a request and
//! that it is whole; it does not say that it comes for the first time. For that put a replay guard inside: it reads the
//! [`Verified`](steadfast_core::facts::Verified) that this layer leaves in the request's extensions.
//!
//! # On the server
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::{BodyExt as _, Full};
//! use steadfast_core::{Body, BoxError, facts::Verified};
//! use steadfast_signature::{HmacScheme, KeyRing, SignatureVerifyLayer};
//! use tower::{ServiceBuilder, ServiceExt as _};
//!
//! async fn hook(request: Request<Body<Full<Bytes>>>) -> Result<Response<Full<Bytes>>, BoxError> {
//!     assert!(request.extensions().get::<Verified>().is_some());
//!     let body = request.into_body().collect().await?.to_bytes();
//!     Ok(Response::new(body.into()))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let scheme = HmacScheme::github();
//! let keys = KeyRing::single(scheme.secret("It's a Secret to Everybody")?);
//! let service = ServiceBuilder::new()
//!     .layer(SignatureVerifyLayer::new(scheme, keys))
//!     .service_fn(hook);
//!
//! let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
//! let request = |body| Request::post("/hook").header("x-hub-signature-256", signature).body(Full::from(body));
//! let response = service.clone().oneshot(request("Hello, World!")?).await?;
//! assert_eq!(response.into_body().collect().await?.to_bytes(), "Hello, World!");
//! assert_eq!(service.oneshot(request("Hello, world!")?).await?.status(), 401);
//! # Ok(())
//! # }
//! ```
//!
//! Signed API requests, with keys from a database, and a handshake that nobody signs:
//!
//! ```
//! use steadfast_signature::{CachedKeys, FindKey, HmacScheme, Secrets, SignatureVerifyLayer};
//!
//! #[derive(Clone)]
//! struct Table;
//!
//! impl FindKey for Table {
//!     type Error = std::io::Error;
//!
//!     async fn find(&self, key_id: &str) -> Result<Option<Secrets>, Self::Error> {
//!         // SELECT secret FROM api_keys WHERE id = $1 AND revoked_at IS NULL
//!         # let _ = key_id;
//!         Ok(None)
//!     }
//! }
//!
//! let keys = CachedKeys::new(Table, 10_000);
//! let layer = SignatureVerifyLayer::new(HmacScheme::payments(), keys)
//!     .max_body(64 * 1024)
//!     .skip_when(|head| head.method == http::Method::GET && head.uri.path() == "/v1/ping");
//! # let _ = layer;
//! ```
//!
//! # On the client
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::{Empty, Full};
//! use steadfast_core::{Body, BoxError};
//! use steadfast_signature::{HmacScheme, SignRequestLayer, SigningKey};
//! use tower::{ServiceBuilder, ServiceExt as _};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let scheme = HmacScheme::payments();
//! let key = SigningKey::new("key_live_1", scheme.secret("the secret of key_live_1")?);
//! let client = ServiceBuilder::new()
//!     .layer(SignRequestLayer::new(scheme, key))
//!     .service_fn(|request: Request<Body<Full<Bytes>>>| async move {
//!         assert_eq!(request.headers()["x-key-id"], "key_live_1");
//!         assert!(request.headers().contains_key("x-signature"));
//!         Ok::<_, BoxError>(Response::new(Empty::<Bytes>::new()))
//!     });
//! client.oneshot(Request::post("/v1/orders").body(Full::from("{}"))?).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Order in a stack
//!
//! Server, outside in: trace, limit by IP, [`SignatureVerifyLayer`], replay guard, limit by key, request decompression,
//! idempotency, handler. It has to stand outside of decompression, since signatures are over the bytes on the wire, and
//! outside of everything that costs more than a hash. Behind a proxy that rewrites paths, and under routers other than
//! axum's, schemes that sign the path need [`SignatureVerifyLayer::original_uri`]. A scheme that signs its own public
//! URL is told it, and asks no forwarding header.
//!
//! Client, outside in: idempotency key, retry, throttle, timeout of each attempt, [`SignRequestLayer`], client. Inside
//! retry each attempt gets a timestamp, a nonce and a signature of its own; outside, a retry would look like a replay,
//! or be stale.
//!
//! # Failure modes
//!
//! | what happens | answer of [`SignatureVerifyLayer`] |
//! |---|---|
//! | the signature is missing, malformed, wrong, stale or early; there is no such key | 401, the same for each |
//! | the body is longer than the cap | 413 |
//! | the body breaks off | 400 |
//! | the body takes too long | 408; 401 as soon as its timestamp is stale |
//! | the keys cannot be looked up | 503 and `Retry-After` |
//!
//! | what happens | answer of [`SignRequestLayer`], and nothing is sent |
//! |---|---|
//! | the body is longer than the cap | 413 |
//! | the body breaks off; what has to be signed is missing | 400 |
//! | there is no key | 503 and `Retry-After` |
//!
//! Clocks that differ by more than a scheme's tolerance end in 401. A timestamp ahead of the clock is bounded in every
//! scheme, also where the sender's own library does not bound it.
//!
//! # Telemetry
//!
//! `tracing` events, one for each outcome: at `debug` for refusals, with the reason; at `warn` with the field `event`
//! for `keys_unavailable`, `signing_key_unavailable` and `short_secret`. The typed reason of an answer is a
//! [`Rejection`] (client: [`SignRejection`]) in its extensions. No secret and no signature is ever shown.
//!
//! # Features
//!
//! * `axum` (default): paths are verified as the client sent them, also under nested routers.
//! * `ed25519`: Ed25519 beside HMAC, for Discord, `v1a` of Standard Webhooks, and HTTP message signatures.
//! * `http-signatures`: HTTP message signatures (RFC 9421) with `Content-Digest` (RFC 9530).
//!
//! # Minimum supported Rust version
//!
//! 1.89.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod algorithm;
mod check;
mod encoding;
mod key;
#[cfg(feature = "http-signatures")]
mod message;
mod recipe;
mod scheme;
mod sign;
mod timestamp;
mod token;
mod verify;

#[cfg(feature = "http-signatures")]
pub use self::message::{MessageSignatureError, MessageSignatures};
pub use self::{
    algorithm::{Algorithm, Candidate},
    check::verify,
    encoding::Encoding,
    key::{
        CachedKeys, DEFAULT_KEY_ID, FindKey, KeyCodec, KeyError, KeyRing, RefreshingKeys, Secret,
        Secrets, SigningKey, SigningKeys,
    },
    recipe::{HmacScheme, HmacSchemeBuilder, SchemeError, Segment, SignatureFormat},
    scheme::{
        BodyDigest, Candidates, Content, Presented, Reason, Scheme, SignError, Signed, Stamp,
    },
    sign::{SignRejection, SignRequest, SignRequestLayer, SignResponseFuture},
    timestamp::{TimeUnit, Tolerance, Window},
    token::SecretToken,
    verify::{Rejection, SignatureVerifyLayer, VerifyResponseFuture, VerifySignature},
};
