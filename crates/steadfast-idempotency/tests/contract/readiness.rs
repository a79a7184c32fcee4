//! Who is readied, who is called, and who holds a reservation meanwhile.

use std::{
    future::Ready,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use steadfast_core::{Body, Refusal};
use steadfast_idempotency::{
    Idempotency, IdempotencyLayer, MemoryStore, OnFailure, Rejection, Scope, Timing,
};
use steadfast_testing::{ChunkedBody, ServiceProbe};
use tokio::time::{sleep, timeout};
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Layer as _, Service, ServiceExt as _, limit::ConcurrencyLimit};

use super::{Content, Pausing, Probe, created, keyless, layer, post, ready};

#[tokio::test(start_paused = true)]
async fn readiness_is_that_of_the_service_inside() {
    let probe = created().pending_first(1);
    let seen = probe.handle();
    seen.block();
    let mut service = layer().layer(probe);
    let mut waiting = task::spawn(ready(&mut service));
    assert_pending!(waiting.poll());
    assert_eq!(seen.live_reservations(), 0);
    seen.unblock();
    assert!(waiting.is_woken());
    assert_pending!(waiting.poll());
    assert!(waiting.is_woken());
    assert_ready_ok!(waiting.poll());
    drop(waiting);

    ready(&mut service).await.unwrap();
    assert_eq!(seen.live_reservations(), 1, "repeated polls reserve once");
    let clone = service.clone();
    assert_eq!(seen.live_reservations(), 1, "a clone starts without");
    drop((service, clone));
    seen.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn a_dead_service_inside_is_a_dead_service() {
    let probe: Probe = ServiceProbe::script([]).fail_ready(|| "dead");
    let mut service = layer().layer(probe);
    assert_eq!(ready(&mut service).await, Err("dead"));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_covered_goes_to_the_very_instance_that_was_readied() {
    for method in ["GET", "POST"] {
        let probe = created();
        let seen = probe.handle();
        let mut service = layer().layer(probe);
        ready(&mut service).await.unwrap();
        let future = service.call(keyless(method));
        assert_eq!((seen.live_reservations(), seen.calls()), (0, 1));
        assert_eq!(future.await.unwrap().status(), 201);
        assert_eq!(seen.unused_reservations(), 0);
        seen.assert_quiescent();
    }
}

#[tokio::test(start_paused = true)]
async fn a_covered_call_does_nothing_and_holds_nothing_until_it_is_polled() {
    let probe = created();
    let seen = probe.handle();
    let mut service = layer().layer(probe);
    ready(&mut service).await.unwrap();
    let body = ChunkedBody::new(["one"]);
    let meter = body.meter();
    let future = service.call(post(body));
    assert_eq!(meter.polls(), 0);
    assert_eq!((seen.live_reservations(), seen.calls()), (0, 0));
    drop(future);
    assert!(meter.is_dropped());
    seen.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn the_handler_is_readied_anew_and_only_when_the_key_is_claimed() {
    let probe = created().pending_first(3);
    let seen = probe.handle();
    let mut service = layer().layer(probe);
    ready(&mut service).await.unwrap();
    let response = service.call(post(ChunkedBody::new(["one"]))).await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!((seen.calls(), seen.unused_reservations()), (1, 1));
    seen.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn a_refusal_gives_its_reservation_back() {
    let nobody = Scope::tenant(|_: &http::request::Parts| Err(Refusal::unauthorized()));
    let unknown = IdempotencyLayer::new(Pausing(MemoryStore::new(1, 1)), nobody);
    let mut bad = keyless("POST");
    let key = http::HeaderValue::from_static("not a key");
    bad.headers_mut().insert("idempotency-key", key);
    for (layer, request, status) in [
        (layer(), bad, 400),
        (layer().require_key(), keyless("POST"), 400),
        (unknown, post(ChunkedBody::new(["one"])), 401),
    ] {
        let probe = created();
        let seen = probe.handle();
        let mut service = layer.layer(probe);
        ready(&mut service).await.unwrap();
        let refused = service.call(request);
        assert_eq!(seen.live_reservations(), 0);
        assert_eq!(refused.await.unwrap().status(), status);
        assert_eq!(seen.calls(), 0);
        // It takes another one for the next call.
        ready(&mut service).await.unwrap();
        assert_eq!(seen.live_reservations(), 1);
        drop(service);
        seen.assert_quiescent();
    }
}

/// Room for one call, around a probe that takes a second.
fn narrow(places: usize) -> (ConcurrencyLimit<Probe>, steadfast_testing::ProbeHandle) {
    let probe: Probe = ServiceProbe::new(|_request| async {
        sleep(Duration::from_secs(1)).await;
        Ok(Response::new(ChunkedBody::new(["done"])))
    });
    let seen = probe.handle();
    (ConcurrencyLimit::new(probe, places), seen)
}

/// Makes a call that the layer does not concern, and that only a reservation somebody holds can stop.
async fn get_through(service: &Idempotency<ConcurrencyLimit<Probe>, Pausing>) {
    let other = service.clone().oneshot(keyless("GET"));
    let other = timeout(Duration::from_secs(10), other).await;
    let other = other.expect("the place is not taken");
    assert_eq!(other.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn others_get_through_while_a_body_is_read() {
    let (inner, seen) = narrow(1);
    let mut service = layer().layer(inner);
    ready(&mut service).await.unwrap();
    let mut reading = task::spawn(service.call(post(ChunkedBody::new(["o"]).stall())));
    assert_pending!(reading.poll());
    get_through(&service).await;
    drop((reading, service));
    seen.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn others_get_through_while_the_store_is_asked() {
    let (inner, seen) = narrow(1);
    let mut service = layer().layer(inner);
    ready(&mut service).await.unwrap();
    let mut claiming = task::spawn(service.call(post(ChunkedBody::new(["one"]))));
    assert_pending!(claiming.poll());
    assert_eq!(seen.calls(), 0, "the store has not answered");
    get_through(&service).await;
    assert_eq!(claiming.await.unwrap().status(), 200);
    drop(service);
    seen.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn others_get_through_while_a_duplicate_waits() {
    let timing = Timing::default().wait_for(Duration::from_secs(30)).unwrap();
    let (inner, seen) = narrow(2);
    let service = layer().timing(timing).layer(inner);
    let call = || service.clone().oneshot(post(ChunkedBody::new(["one"])));
    let (first, waiting) = (tokio::spawn(call()), tokio::spawn(call()));
    sleep(Duration::from_millis(100)).await;
    // One place is the first call's. If the waiter held the other, this would have to wait for both.
    let mut other = service.clone();
    let mut readied = task::spawn(ready(&mut other));
    assert_ready_ok!(readied.poll());
    drop(readied);
    drop(other);
    for call in [first, waiting] {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(seen.calls(), 1);
    drop(service);
    seen.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_kept_while_its_handler_waits_for_a_place() {
    let probe = created();
    let seen = probe.handle();
    let mut service = layer().layer(probe);
    let mut duplicate = service.clone();
    for service in [&mut service, &mut duplicate] {
        ready(service).await.unwrap();
    }
    seen.block();
    let queued = tokio::spawn(service.call(post(ChunkedBody::new(["one"]))));

    // Ten leases later.
    sleep(Duration::from_secs(300)).await;
    let answer = duplicate.call(post(ChunkedBody::new(["one"])));
    let answer = timeout(Duration::from_secs(10), answer).await;
    let answer = answer.expect("the key is not taken over");
    let rejection = answer.unwrap().extensions().get().copied();
    assert_eq!(rejection, Some(Rejection::InProgress));

    seen.unblock();
    assert_eq!(queued.await.unwrap().unwrap().status(), 201);
    drop((service, duplicate));
    seen.assert_quiescent();
}

/// Ready once; its clones are dead.
struct Dying {
    alive: bool,
}

impl Clone for Dying {
    fn clone(&self) -> Self {
        Self { alive: false }
    }
}

impl Service<Request<Body<Content>>> for Dying {
    type Response = Response<Content>;
    type Error = &'static str;
    type Future = Ready<Result<Response<Content>, &'static str>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(if self.alive { Ok(()) } else { Err("dead") })
    }

    fn call(&mut self, _request: Request<Body<Content>>) -> Self::Future {
        panic!("called though it was not ready")
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_dies_before_it_is_called_frees_the_key_and_says_why() {
    for on_failure in [OnFailure::Release, OnFailure::Hold] {
        let layer = layer().on_failure(on_failure);
        let mut service = layer.layer(Dying { alive: true });
        ready(&mut service).await.unwrap();
        let died = service.call(post(ChunkedBody::new(["one"]))).await;
        assert_eq!(died.unwrap_err(), "dead");

        let again = layer
            .layer(created())
            .oneshot(post(ChunkedBody::new(["one"])));
        assert_eq!(again.await.unwrap().status(), 201);
    }
}
