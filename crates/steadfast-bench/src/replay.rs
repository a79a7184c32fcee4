use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Method, Request};
use sha2::{Digest as _, Sha256};
use steadfast::{
    core::{
        Clock,
        facts::{Freshness, SignedContent, Verified},
    },
    replay::{Digest, Life, MemoryStore, Once, Recorded, ReplayGuardLayer, Store as _},
};
use tower::{ServiceBuilder, service_fn};

use crate::{
    Case, Scenario,
    Target::{NoAllocation, OverBare},
    case::Calls,
    message::{CONTENT, handle, request},
};

const GROUP: &str = "replay";

/// Signed requests, each of them new, beside as many live entries as a busy server has.
pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario("bare-post", || {
        Box::new(Calls::new(|| service_fn(handle::<Body, Body>), signed()))
    }),
    scenario("one-shot-1000", || one_shot(1_000))
        .over("bare-post")
        .within(CHECK),
    scenario("one-shot-1000000", || one_shot(LIVE))
        .over("bare-post")
        .within(CHECK)
        .bulk(),
    scenario("bare-get", || {
        Box::new(Calls::new(|| service_fn(handle::<Body, Body>), get))
    }),
    scenario("skipped-get", || Box::new(Calls::new(|| stack(0), get)))
        .over("bare-get")
        .within(&[OverBare(50.0), NoAllocation]),
];

const CHECK: &[crate::Target] = &[OverBare(250.0)];

/// How many live entries count as many.
pub(crate) const LIVE: usize = 1_000_000;

/// How many calls a store takes beyond what it is filled with.
const MORE: usize = 200_000;

const fn scenario(name: &'static str, case: fn() -> Box<dyn Case>) -> Scenario {
    Scenario::new(GROUP, name, case)
}

fn get() -> Request<Body> {
    request(Method::GET, Body::empty())
}

fn one_shot(live: usize) -> Box<dyn Case> {
    Box::new(Calls::new(move || stack(live), signed()).endurance(MORE))
}

fn stack(
    live: usize,
) -> impl tower::Service<
    Request<Body>,
    Response = http::Response<steadfast::core::Body<Body>>,
    Error = std::convert::Infallible,
> {
    let layer =
        ReplayGuardLayer::one_shot(filled(live)).skip_when(|head| head.method == Method::GET);
    ServiceBuilder::new()
        .layer(layer)
        .service(service_fn(handle::<Body, Body>))
}

/// A store with so many live entries.
pub(crate) fn filled(live: usize) -> MemoryStore {
    let store = MemoryStore::new(live + 2 * MORE);
    let now = Clock::system().now();
    for number in 0..live {
        let digest: [u8; 32] = Sha256::digest(number.to_be_bytes()).into();
        let once = Once {
            digest: Digest::new(digest),
            owner: Digest::new([0; 32]),
            life: Life::Until {
                now,
                until: now + HOUR,
                keep: HOUR,
            },
        };
        let recorded = store.record(once).now_or_never();
        assert!(matches!(recorded, Some(Ok(Recorded::New))), "{recorded:?}");
    }
    store
}

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Requests as the layer that verified them hands them on, no two with the same nonce.
fn signed() -> impl FnMut() -> Request<Body> {
    let mut nonce = 0_u64;
    let clock = Clock::system();
    let now = clock.now();
    move || {
        nonce += 1;
        let mut request = request(Method::POST, Body::from(Bytes::from_static(CONTENT)));
        let signed = format!(
            "v1\nkey_live_1\n1700000000000\n{nonce:016x}\nPOST\n/v1/orders\n\
             7f60183872b30e67a9df62c0685cb0fc85816abd08a1a18a1df4a1f33796e6fc"
        );
        let content = SignedContent::apart_from(signed.into(), Bytes::from_static(CONTENT));
        let freshness = Freshness::new(now, now + HOUR, clock.clone());
        let verified = Verified::new("payments", "key_live_1", content).fresh(freshness);
        request.extensions_mut().insert(verified);
        request
    }
}
