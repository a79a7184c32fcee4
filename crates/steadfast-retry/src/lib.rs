//! Repeats the calls of an HTTP client that may be repeated, and no earlier than the server asks.
//!
//! [`RateLimitAwareRetryLayer`] goes around any Tower client. A call is sent again when three questions are answered
//! with yes: may it be, is its outcome one that a repeat may cure, and does nothing stand against it. Whatever happens,
//! the caller gets the real last response or error, and a report of what was done.
//!
//! Use it once in a client, and nowhere else on the way: where a proxy, an SDK and a job queue each send three times,
//! the server sees 27 requests. Do not use it to get around a limit (see [below](#keys-are-not-rotated)), or instead of
//! a throttle: this layer reacts to a 429, a throttle avoids it.
//!
//! # Examples
//!
//! ```
//! use std::{convert::Infallible, sync::atomic::{AtomicU32, Ordering}};
//!
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use steadfast_core::{ReplayBody, facts::RetryReport};
//! use steadfast_retry::RateLimitAwareRetryLayer;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In place of an HTTP client: a server that is throttled once.
//! static REQUESTS: AtomicU32 = AtomicU32::new(0);
//! let client = tower::service_fn(async |_request: Request<ReplayBody<Full<Bytes>>>| {
//!     let response = match REQUESTS.fetch_add(1, Ordering::Relaxed) {
//!         0 => Response::builder().status(429).header("retry-after", "0"),
//!         _ => Response::builder().status(200),
//!     };
//!     Ok::<_, Infallible>(response.body(Full::<Bytes>::default()).expect("valid parts"))
//! });
//!
//! let client = ServiceBuilder::new()
//!     .layer(RateLimitAwareRetryLayer::new())
//!     .service(client);
//!
//! let request = Request::get("https://api.example/v1/emails").body(Full::default())?;
//! let response = client.oneshot(request).await?;
//!
//! let report = response.extensions().get::<RetryReport>().ok_or("every response has one")?;
//! assert_eq!(response.status(), 200);
//! assert_eq!((report.attempts, report.stopped), (2, None));
//! # Ok(())
//! # }
//! ```
//!
//! Set for one API, with bounds in time and an operator who wants to know:
//!
//! ```
//! use std::time::Duration;
//!
//! use http::Method;
//! use steadfast_core::{Operations, RoutePattern, facts::OperationClass};
//! use steadfast_retry::{Profile, RateLimitAwareRetryLayer};
//!
//! let cancel = RoutePattern::parse("/v1/emails/*/cancel")?;
//! let layer = RateLimitAwareRetryLayer::with_profile(Profile::openemail())
//!     .attempt_timeout(Duration::from_secs(5))
//!     .deadline(Duration::from_secs(30))
//!     .operations(Operations::new().route(Method::POST, cancel, OperationClass::NaturallyIdempotent))
//!     .on_give_up(|call| eprintln!("{} {}: {}", call.method, call.host, call.reason.as_str()));
//! # let _ = layer;
//! # Ok::<(), steadfast_core::RoutePatternError>(())
//! ```
//!
//! # What may be repeated
//!
//! In this order (R01):
//!
//! 1. An [`OperationClass`](steadfast_core::facts::OperationClass) in the request's extensions decides. `NotRepeatable`
//!    beats any key, also from the table: there it overrules `RepeatableWithKey`, which rests on a key.
//! 2. Else the table of [`operations`](RateLimitAwareRetryLayer::operations) decides, where it has the route.
//! 3. Else a valid `Idempotency-Key` makes the call repeatable, whatever its method, with the same key in every request.
//!    It has to be on the request: an `IdempotencyKey` in the extensions counts where a header carries it.
//! 4. Else a safe method (RFC 9110, section 9.2.1) does.
//! 5. Everything else is sent once, PUT and DELETE too: that a method is idempotent for the server does not say what a
//!    second answer means to the caller.
//!
//! The body has to be at hand, too. It is kept while the first request streams it, up to
//! [`replay_cap`](RateLimitAwareRetryLayer::replay_cap); a longer one is sent to its end, and once.
//!
//! A call that is not repeatable passes through the layer all the same, so that its end is reported.
//!
//! # What is repeated, and when
//!
//! [`Profile`] has the table. A time in `Retry-After` is waited for, to the millisecond and never less, whatever the
//! status; `0` means now. It counts from the receipt of the response's head, a date on the server's own clock. An invalid
//! value counts as none. Where the server names no time, [`Backoff`] says how long; its exponent counts every retry of the
//! call, also those after a named wait.
//!
//! Then the guards are asked, and the first that objects ends the call and is its
//! [`Stopped`](steadfast_core::facts::Stopped): repeatable → attempts → cap → deadline → budget. Only then the wait
//! begins.
//!
//! # Order in a stack
//!
//! From the outside in:
//!
//! 1. trace and request id;
//! 2. the layer that mints idempotency keys: one call, one key, however often it is sent;
//! 3. **this layer**;
//! 4. the throttle: each request is paced, and its refusal ([`Throttled`](steadfast_core::facts::Throttled)) ends the
//!    call;
//! 5. tower's timeout, if not [`attempt_timeout`](RateLimitAwareRetryLayer::attempt_timeout): outside of this layer it would
//!    bound the call;
//! 6. the signer: each request has a timestamp and a signature of its own (R12);
//! 7. the client. reqwest retries by itself: switch that off (`steadfast_core::reqwest` does).
//!
//! # Defaults
//!
//! | what | default |
//! |---|---|
//! | retries after the first request | 2 |
//! | own wait | half a second doubling to 8 s, drawn from the upper half |
//! | longest wait a server may ask for | 60 s |
//! | jitter on a wait that the server names | none; it only ever adds |
//! | attempt timeout, deadline | none |
//! | responses | stream; an attempt is answered with the head |
//! | request body kept | 1 MiB |
//! | oldest key that is sent again | 23 h |
//! | budget | 500 tokens per origin; a retry costs 14, after a 429 with a time 5; a success returns 1 |
//! | give-up events of one origin and reason | one in 60 s |
//! | discarded response read to its end | up to 64 KiB, for up to 1 s, within the wait |
//!
//! # Failure modes
//!
//! * **The server asks for more than the cap.** No wait: the response is returned at once, with `stopped` `over_cap` and
//!   `retry_after` readable. Longer than `u32::MAX` seconds reads as that.
//! * **The attempts, the budget or the deadline are used up.** The last response or error is returned as it came.
//! * **An attempt times out.** It may have had its effect, so it is repeated only where the call may be. The last one's
//!   answer is a 504 problem (RFC 9457) with [`Rejection::AttemptTimeout`] in its extensions; past the deadline of the
//!   call it is [`Rejection::Deadline`].
//! * **A response breaks off or hangs.** Unless responses are [buffered](RateLimitAwareRetryLayer::buffer_response),
//!   that is the caller's to see: the attempt was answered. Buffered, it is a network failure.
//! * **The request's own body fails.** The call ends with the client's error.
//! * **A 401**, in a profile that repeats it: once a call, at once and outside of the limit of attempts, where the
//!   response tells that a signer is inside.
//! * **The client dies between two requests** (an error of readiness): that error is returned; the report has no
//!   `stopped`.
//! * **The clock is wrong.** A date in `Retry-After` is measured against the response's own `Date`; a key from the future is
//!   new.
//!
//! # Keys are not rotated
//!
//! Nothing here changes an API key, a token or an idempotency key between two requests of a call (R14). A second API key
//! multiplies a quota that the server gave once, which it answers by revoking both. And an idempotency key that changes
//! turns a repeat into a second order. The one thing that may differ from request to request is what the layers inside add:
//! a signature, a timestamp.
//!
//! # Telemetry
//!
//! Events of `tracing`, none of them with a path, a query, a user or a header:
//!
//! | event | level | fields |
//! |---|---|---|
//! | `call will be repeated` | `INFO` | `method`, `host`, `status`, `attempts`, `cause` (`status`, `body`, `timeout`, `connect` or `network`), `wait_ms` |
//! | `call given up` | `WARN` | `method`, `host`, `status`, `attempts`, `reason`, `retry_after_ms`, `calls` |
//! | `call given up, event coalesced` | `INFO` | the same without `calls` |
//!
//! So every 429 leaves a line (R09). The warning goes to [`on_give_up`](RateLimitAwareRetryLayer::on_give_up) as well.
//! A caller reads [`RetryReport`](steadfast_core::facts::RetryReport) from the response; who wants it also after an error,
//! after a cancel, or while the call runs, puts a [`CallReport`](steadfast_core::facts::CallReport) into the request's
//! extensions and keeps a clone.
//!
//! # Features
//!
//! * `hyper-util` (default): [`KnownErrors`] tells the failed connects of hyper-util's legacy client apart.
//! * `reqwest`: [`KnownErrors`] knows reqwest's errors, and `steadfast_core::reqwest` is there.
//!
//! # Minimum supported Rust version
//!
//! 1.89.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod alarm;
mod attempt;
mod backoff;
mod budget;
mod classify;
mod config;
mod decision;
mod ending;
mod future;
mod give_up;
mod layer;
mod license;
mod origin;
mod outcome;
mod pause;
mod policy;
mod profile;
mod rejection;
mod report;
mod service;
mod watch;

pub use self::{
    backoff::Backoff,
    budget::Budget,
    classify::{ClassifyError, ErrorClass, KnownErrors},
    future::ResponseFuture,
    give_up::GiveUp,
    layer::RateLimitAwareRetryLayer,
    outcome::{Repeat, Trigger},
    profile::Profile,
    rejection::Rejection,
    service::RateLimitAwareRetry,
};
