//! What is left behind when a call is dropped.

use std::time::Duration;

use http::Response;
use steadfast_replay::{Drain, Drained, OneShot, ReplayGuard};
use steadfast_testing::{ChunkedBody, ProbeHandle, ServiceProbe, drop_at_every_await, poll_times};
use tokio::{task::yield_now, time::sleep};
use tower::{Layer as _, ServiceExt as _};

use super::{Content, Pausing, Probe, created, events, one_shot, plain, post, store};

type Answer = fn() -> Result<Response<Content>, &'static str>;

fn with(status: u16) -> Result<Response<Content>, &'static str> {
    let head = Response::builder().status(status);
    Ok(head.body(ChunkedBody::new(["done"])).unwrap())
}

const ANSWERS: [Answer; 3] = [|| with(200), || with(500), || Err("no")];

/// A probe with awaits wherever one can be.
fn awaiting(answer: Answer) -> Probe {
    ServiceProbe::new(move |_request| async move {
        yield_now().await;
        sleep(Duration::from_secs(1)).await;
        answer()
    })
    .pending_first(2)
}

fn delivery() -> http::Request<Content> {
    post(ChunkedBody::new(["one"]))
}

async fn drained(drain: &Drain) {
    let day = Duration::from_secs(24 * 3600);
    assert_eq!(drain.wait(day).await, Drained::All);
    assert_eq!(drain.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn g03_g04_an_event_is_neither_lost_nor_doubled_wherever_its_delivery_is_dropped() {
    for answer in ANSWERS {
        let setup = async || {
            let probe = awaiting(answer);
            let seen = probe.handle();
            let store = store();
            let layer = events(store.clone());
            let call = layer.layer(probe).oneshot(delivery());
            (call, (seen, layer.drain(), store))
        };
        let mut runs = 0;
        let check = async |(seen, drain, store): (ProbeHandle, Drain, Pausing)| {
            drained(&drain).await;
            assert_eq!(seen.dropped(), 0, "a handler that was begun is finished");
            seen.assert_quiescent();
            runs += seen.completed();
            let committed = seen.completed() == 1 && answer().is_ok_and(|it| it.status() == 200);
            let again = created();
            let seen_again = again.handle();
            let answer = events(store)
                .layer(again)
                .oneshot(delivery())
                .await
                .unwrap();
            let duplicate = answer.headers().contains_key("event-duplicate");
            assert_eq!(duplicate, committed);
            assert_eq!(seen_again.calls(), usize::from(!committed));
        };
        let places = drop_at_every_await(setup, check).await;
        // Two places before the first readiness and one before the first poll; from the claim on it runs.
        assert_eq!(runs, places - 3);
    }
}

#[tokio::test(start_paused = true)]
async fn g01_a_signed_request_never_passes_twice_wherever_it_is_dropped() {
    for answer in ANSWERS {
        let setup = async || {
            let probe = awaiting(answer);
            let seen = probe.handle();
            let service = one_shot(store()).layer(probe);
            (service.clone().oneshot(delivery()), (seen, service))
        };
        let check = async |(seen, service): (ProbeHandle, ReplayGuard<Probe, Pausing, OneShot>)| {
            seen.assert_quiescent();
            let began = seen.calls();
            let again = service.oneshot(delivery()).await;
            assert!(seen.calls() <= 1, "it was called twice");
            if began == 1 {
                assert_eq!(again.unwrap().status(), 401);
            }
            seen.assert_quiescent();
        };
        assert!(drop_at_every_await(setup, check).await > 6);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_concerned_ends_where_it_is_dropped() {
    let setup = async || {
        let probe = awaiting(|| with(200));
        let seen = probe.handle();
        (events(store()).layer(probe).oneshot(plain("GET")), seen)
    };
    drop_at_every_await(setup, async |seen: ProbeHandle| {
        assert_eq!(seen.completed(), 0);
        seen.assert_quiescent();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_body_is_dropped_with_a_one_shot_call() {
    let body = ChunkedBody::new(["one"]);
    let meter = body.meter();
    let call = one_shot(store()).layer(created()).oneshot(post(body));
    assert!(poll_times(call, 2).await.is_none());
    assert!(meter.is_dropped());
}
