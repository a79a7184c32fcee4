use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::Full;
use steadfast::{
    idempotency::IdempotencyKeyLayer,
    retry::{Budget, RateLimitAwareRetryLayer},
};
use tower::{Service, ServiceBuilder, retry, service_fn};

use crate::{
    Case, Scenario,
    Target::{OverBare, Times},
    case::Calls,
    message::{handle, key, post, post_with_key, request},
};

const GROUP: &str = "client";

/// Calls through the layers to a service in the same process, and through tower's own `Retry`.
pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario("bare-get", || bare(get)),
    scenario("bare-post", || bare(keyed)),
    scenario("key", keys).over("bare-post"),
    scenario("retry-get", || retrying(get))
        .over("bare-get")
        .beside("tower-retry-get")
        .within(&[OverBare(500.0), Times(2.2, "tower-retry-get")]),
    scenario("retry-post", || retrying(keyed))
        .over("bare-post")
        .beside("tower-retry-post")
        .within(&[OverBare(500.0), Times(2.2, "tower-retry-post")]),
    scenario("retry-once", retrying_once)
        .over("bare-post")
        .beside("tower-retry-once"),
    scenario("tower-retry-get", || tower(get)).over("bare-get"),
    scenario("tower-retry-post", || tower(keyed)).over("bare-post"),
    scenario("tower-retry-once", tower_once).over("bare-post"),
];

const fn scenario(name: &'static str, case: fn() -> Box<dyn Case>) -> Scenario {
    Scenario::new(GROUP, name, case)
}

fn get() -> Request<Full<Bytes>> {
    request(Method::GET, Full::default())
}

fn keyed() -> Request<Full<Bytes>> {
    post_with_key(key(0))
}

fn bare(request: fn() -> Request<Full<Bytes>>) -> Box<dyn Case> {
    Box::new(Calls::new(|| service_fn(handle::<_, Full<Bytes>>), request))
}

/// The layer makes the key.
fn keys() -> Box<dyn Case> {
    let stack = || {
        ServiceBuilder::new()
            .layer(IdempotencyKeyLayer::new())
            .service(service_fn(handle::<_, Full<Bytes>>))
    };
    Box::new(Calls::new(stack, post::<Full<Bytes>>))
}

fn retrying(request: fn() -> Request<Full<Bytes>>) -> Box<dyn Case> {
    let stack = || {
        ServiceBuilder::new()
            .layer(RateLimitAwareRetryLayer::new())
            .service(service_fn(handle::<_, Full<Bytes>>))
    };
    Box::new(Calls::new(stack, request))
}

fn retrying_once() -> Box<dyn Case> {
    let stack = || {
        ServiceBuilder::new()
            // Each call costs a retry here, which no budget of a working client allows.
            .layer(RateLimitAwareRetryLayer::new().budget(Budget::unlimited()))
            .service(refusing_every_other())
    };
    Box::new(Calls::new(stack, keyed))
}

fn tower(request: fn() -> Request<Full<Bytes>>) -> Box<dyn Case> {
    let stack = || {
        ServiceBuilder::new()
            .retry(Cloning)
            .service(service_fn(handle::<_, Full<Bytes>>))
    };
    Box::new(Calls::new(stack, request))
}

fn tower_once() -> Box<dyn Case> {
    let stack = || {
        ServiceBuilder::new()
            .retry(Cloning)
            .service(refusing_every_other())
    };
    Box::new(Calls::new(stack, keyed))
}

/// What tower's documentation shows: the request is kept as a clone, and repeated while the answer is a 503.
#[derive(Clone, Copy, Debug)]
struct Cloning;

type Sent = Request<Full<Bytes>>;
type Answered = Result<Response<Full<Bytes>>, Infallible>;

impl retry::Policy<Sent, Response<Full<Bytes>>, Infallible> for Cloning {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Sent, answered: &mut Answered) -> Option<Ready<()>> {
        let is_refused = answered
            .as_ref()
            .is_ok_and(|response| response.status() == StatusCode::SERVICE_UNAVAILABLE);
        is_refused.then(|| ready(()))
    }

    fn clone_request(&mut self, request: &Sent) -> Option<Sent> {
        Some(request.clone())
    }
}

/// A service that turns away the first attempt of each call.
fn refusing_every_other<B>()
-> impl Service<Request<B>, Response = Response<Full<Bytes>>, Error = Infallible> + Clone
where
    B: Body<Data = Bytes>,
{
    let attempts = Arc::new(AtomicUsize::new(0));
    service_fn(move |request| {
        let is_first = attempts.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        async move {
            if is_first {
                Ok(unavailable())
            } else {
                handle(request).await
            }
        }
    })
}

fn unavailable() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("0"));
    response
}
