use std::convert::Infallible;

use axum::body::Body;
use http::{Method, Request, Response};
use tower::{Service, ServiceBuilder, service_fn};

use crate::{
    Case, Scenario,
    Target::{NoAllocation, OverBare, Times},
    case::Calls,
    message::{Keys, handle, key, post, post_with_key, request},
};

mod peer;
mod store;

const GROUP: &str = "server";

/// The layer's calls, and those of the nearest crate that does the same.
pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario("bare-get", || bare(get)),
    scenario("bare-post", || bare(post)),
    scenario("bare-post-with-key", || bare(with_key)),
    scenario("pass-through-get", || ours(10, get))
        .over("bare-get")
        .within(PASS_THROUGH),
    scenario("pass-through-post", || ours(10, post))
        .over("bare-post")
        .beside("axum-idempotent-pass-through")
        .within(PASS_THROUGH),
    scenario("fresh-10", || fresh(10))
        .over("bare-post-with-key")
        .beside("axum-idempotent-fresh-10")
        .within(FRESH),
    scenario("fresh-1000", || fresh(1_000))
        .over("bare-post-with-key")
        .within(FRESH),
    scenario("fresh-10000", || fresh(10_000))
        .over("bare-post-with-key")
        .beside("axum-idempotent-fresh-10000")
        .within(FRESH),
    scenario("fresh-100000", || fresh(100_000))
        .over("bare-post-with-key")
        .within(&[OverBare(3_000.0), Times(1.5, "fresh-10")]),
    scenario("replay", || ours(1_000, with_key))
        .over("bare-post-with-key")
        .beside("axum-idempotent-replay")
        .within(&[OverBare(1_200.0)]),
    scenario("axum-idempotent-sessions", || peer::sessions(with_key)).over("bare-post-with-key"),
    scenario("axum-idempotent-pass-through", || peer::calls(10, post)).over("bare-post"),
    scenario("axum-idempotent-fresh-10", || peer::fresh(10)).over("bare-post-with-key"),
    scenario("axum-idempotent-fresh-10000", || peer::fresh(10_000)).over("bare-post-with-key"),
    scenario("axum-idempotent-replay", || peer::calls(1_000, with_key)).over("bare-post-with-key"),
];

const PASS_THROUGH: &[crate::Target] = &[OverBare(50.0), NoAllocation];
const FRESH: &[crate::Target] = &[OverBare(3_000.0)];

const fn scenario(name: &'static str, case: fn() -> Box<dyn Case>) -> Scenario {
    Scenario::new(GROUP, name, case)
}

fn get() -> Request<Body> {
    request(Method::GET, Body::empty())
}

fn with_key() -> Request<Body> {
    post_with_key(key(0))
}

fn bare(request: fn() -> Request<Body>) -> Box<dyn Case> {
    Box::new(Calls::new(|| service_fn(handle::<Body, Body>), request))
}

/// Calls to the layer over a store with so many live keys, without new ones.
fn ours(live: usize, request: fn() -> Request<Body>) -> Box<dyn Case> {
    Box::new(Calls::new(move || stack(live), request))
}

/// Calls with a new key each.
fn fresh(live: usize) -> Box<dyn Case> {
    let mut keys = Keys::default();
    let calls = Calls::new(move || stack(live), move || post_with_key(keys.next()));
    Box::new(calls.endurance(growth(live)))
}

/// How many keys a store may take up before it is filled anew, so that their number stays what it is said to be.
fn growth(live: usize) -> usize {
    (live / 10).max(32)
}

fn stack(live: usize) -> impl LayeredService {
    ServiceBuilder::new()
        .layer(store::layer(live))
        .service(service_fn(handle::<steadfast::core::Body<Body>, Body>))
}

/// What the layer makes of the handler.
trait LayeredService:
    Service<Request<Body>, Response = Response<steadfast::core::Body<Body>>, Error = Infallible>
{
}

impl<S> LayeredService for S where
    S: Service<Request<Body>, Response = Response<steadfast::core::Body<Body>>, Error = Infallible>
{
}
