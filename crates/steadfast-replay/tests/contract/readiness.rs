//! Who is readied, who is called, and who holds a reservation meanwhile.

use std::{
    future::Ready,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use steadfast_replay::Rejection;
use steadfast_testing::{ChunkedBody, ProbeHandle, ServiceProbe};
use tokio::time::{sleep, timeout};
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Layer as _, Service, ServiceExt as _, limit::ConcurrencyLimit};

use super::{Content, Probe, created, events, one_shot, plain, post, ready, store};

fn delivery() -> Request<Content> {
    post(ChunkedBody::new(["one"]))
}

/// Says the same of both modes.
macro_rules! both {
    ($($(#[$attribute:meta])* async fn $name:ident($layer:ident) $body:block)*) => {
        mod one_shot_mode { use super::*; $(
            $(#[$attribute])* #[tokio::test(start_paused = true)]
            async fn $name() { let $layer = one_shot(store()); $body }
        )* }
        mod events_mode { use super::*; $(
            $(#[$attribute])* #[tokio::test(start_paused = true)]
            async fn $name() { let $layer = events(store()); $body }
        )* }
    };
}

both! {
    async fn readiness_is_that_of_the_service_inside(layer) {
        let probe = created().pending_first(1);
        let seen = probe.handle();
        seen.block();
        let mut service = layer.layer(probe);
        let mut waiting = task::spawn(ready(&mut service));
        assert_pending!(waiting.poll());
        assert_eq!(seen.live_reservations(), 0);
        seen.unblock();
        assert!(waiting.is_woken());
        assert_pending!(waiting.poll());
        assert_ready_ok!(waiting.poll());
        drop(waiting);
        ready(&mut service).await.unwrap();
        assert_eq!(seen.live_reservations(), 1, "repeated polls reserve once");
        let clone = service.clone();
        assert_eq!(seen.live_reservations(), 1, "a clone starts without");
        drop((service, clone));
        seen.assert_quiescent();
    }

    async fn a_dead_service_inside_is_a_dead_service(layer) {
        let probe: Probe = ServiceProbe::script([]).fail_ready(|| "dead");
        assert_eq!(ready(&mut layer.layer(probe)).await, Err("dead"));
    }

    async fn what_is_skipped_goes_to_the_very_instance_that_was_readied(layer) {
        let probe = created();
        let seen = probe.handle();
        let mut service = layer.layer(probe);
        ready(&mut service).await.unwrap();
        let future = service.call(plain("GET"));
        assert_eq!((seen.live_reservations(), seen.calls()), (0, 1));
        assert_eq!(future.await.unwrap().status(), 201);
        assert_eq!(seen.unused_reservations(), 0);
        seen.assert_quiescent();
    }

    async fn the_reservation_is_given_back_and_the_handler_readied_anew(layer) {
        let probe = created().pending_first(3);
        let seen = probe.handle();
        let mut service = layer.layer(probe);
        ready(&mut service).await.unwrap();
        let call = service.call(delivery());
        assert_eq!((seen.live_reservations(), seen.calls()), (0, 0));
        assert_eq!(call.await.unwrap().status(), 201);
        assert_eq!((seen.calls(), seen.unused_reservations()), (1, 1));
        seen.assert_quiescent();
    }

    async fn a_refusal_gives_its_reservation_back(layer) {
        let probe = created();
        let seen = probe.handle();
        let mut service = layer.layer(probe);
        ready(&mut service).await.unwrap();
        let refused = service.call(plain("POST"));
        assert_eq!(seen.live_reservations(), 0);
        assert_eq!(refused.await.unwrap().status(), 401);
        ready(&mut service).await.unwrap();
        assert_eq!((seen.live_reservations(), seen.calls()), (1, 0));
        drop(service);
        seen.assert_quiescent();
    }

    async fn others_get_through_while_the_store_is_asked(layer) {
        let (inner, seen) = narrow();
        let mut service = layer.layer(inner);
        ready(&mut service).await.unwrap();
        let mut asking = task::spawn(service.call(delivery()));
        assert_pending!(asking.poll());
        assert_eq!(seen.calls(), 0, "the store has not answered");
        let other = timeout(Duration::from_secs(10), service.clone().oneshot(plain("GET"))).await;
        assert_eq!(other.expect("the place is not taken").unwrap().status(), 200);
        assert_eq!(asking.await.unwrap().status(), 200);
        drop(service);
        seen.assert_quiescent();
    }

    async fn a_duplicate_takes_no_place(layer) {
        let (inner, seen) = narrow();
        let service = layer.layer(inner);
        let mut duplicate = service.clone();
        ready(&mut duplicate).await.unwrap();
        let first = tokio::spawn(service.clone().oneshot(delivery()));
        // The place is the duplicate's until it is called.
        let again = duplicate.call(delivery());
        sleep(Duration::from_millis(100)).await;
        let status = again.await.unwrap().status().as_u16();
        assert!([401, 409].contains(&status), "{status}");
        assert_eq!(first.await.unwrap().unwrap().status(), 200);
        assert_eq!(seen.calls(), 1);
        drop((service, duplicate));
        seen.assert_quiescent();
    }

    async fn a_service_that_dies_before_it_is_called_says_why(layer) {
        let mut service = layer.layer(Dying { alive: true });
        ready(&mut service).await.unwrap();
        assert_eq!(service.call(delivery()).await.unwrap_err(), "dead");
    }
}

/// Room for one call, around a probe that takes a second.
fn narrow() -> (ConcurrencyLimit<Probe>, ProbeHandle) {
    let probe: Probe = ServiceProbe::new(|_request| async {
        sleep(Duration::from_secs(1)).await;
        Ok(Response::new(ChunkedBody::new(["done"])))
    });
    let seen = probe.handle();
    (ConcurrencyLimit::new(probe, 1), seen)
}

#[tokio::test(start_paused = true)]
async fn g04_a_claim_is_kept_while_its_handler_waits_for_a_place() {
    let probe = created();
    let seen = probe.handle();
    let mut service = events(store()).layer(probe);
    let mut duplicate = service.clone();
    for service in [&mut service, &mut duplicate] {
        ready(service).await.unwrap();
    }
    seen.block();
    let queued = tokio::spawn(service.call(delivery()));
    // Ten leases later.
    sleep(Duration::from_secs(300)).await;
    let answer = timeout(Duration::from_secs(10), duplicate.call(delivery())).await;
    let answer = answer.expect("the event is not taken over").unwrap();
    assert_eq!(answer.extensions().get(), Some(&Rejection::InProgress));
    seen.unblock();
    assert_eq!(queued.await.unwrap().unwrap().status(), 201);
    drop((service, duplicate));
    seen.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn g04_an_event_whose_handler_died_unready_is_free() {
    let store = store();
    let layer = events(store);
    let mut service = layer.layer(Dying { alive: true });
    ready(&mut service).await.unwrap();
    assert_eq!(service.call(delivery()).await.unwrap_err(), "dead");
    let again = layer.layer(created()).oneshot(delivery()).await;
    assert_eq!(again.unwrap().status(), 201);
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

impl Service<Request<Content>> for Dying {
    type Response = Response<Content>;
    type Error = &'static str;
    type Future = Ready<Result<Response<Content>, &'static str>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(if self.alive { Ok(()) } else { Err("dead") })
    }

    fn call(&mut self, _request: Request<Content>) -> Self::Future {
        panic!("called though it was not ready")
    }
}
