//! What is left behind when a call is dropped.

use std::time::Duration;

use http::Response;
use steadfast_idempotency::{Drain, Drained, OnFailure};
use steadfast_testing::{ChunkedBody, ProbeHandle, ServiceProbe, drop_at_every_await};
use tokio::{task::yield_now, time::sleep};
use tower::{Layer as _, ServiceExt as _};

use super::{Content, Probe, keyless, layer, post};

type Answer = fn() -> Result<Response<Content>, &'static str>;

/// A probe with awaits wherever one can be.
fn awaiting(answer: Answer) -> Probe {
    ServiceProbe::new(move |_request| async move {
        yield_now().await;
        sleep(Duration::from_secs(1)).await;
        answer()
    })
    .pending_first(2)
}

async fn drained(drain: &Drain) {
    let day = Duration::from_secs(24 * 3600);
    assert_eq!(drain.wait(day).await, Drained::All);
    assert_eq!(drain.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_covered_call_leaves_nothing_behind_wherever_it_is_dropped() {
    let answers: [Answer; 4] = [
        || Ok(Response::new(ChunkedBody::new(["do", "ne"]).pending())),
        || {
            Ok(Response::new(
                ChunkedBody::new(["half"]).error("cut").pending(),
            ))
        },
        || {
            let head = Response::builder().status(500);
            Ok(head.body(ChunkedBody::new(["no"])).unwrap())
        },
        || Err("no"),
    ];
    for answer in answers {
        for on_failure in [OnFailure::Release, OnFailure::Hold] {
            let setup = async || {
                let probe = awaiting(answer);
                let seen = probe.handle();
                let layer = layer().on_failure(on_failure);
                let body = ChunkedBody::new(["o", "ne"]).pending();
                let call = layer.layer(probe).oneshot(post(body));
                (call, (seen, layer.drain()))
            };
            let mut runs = 0;
            let places = drop_at_every_await(setup, async |(seen, drain): (ProbeHandle, Drain)| {
                drained(&drain).await;
                assert_eq!(seen.dropped(), 0, "a handler that was begun is finished");
                runs += seen.completed();
                seen.assert_quiescent();
            })
            .await;
            // Four places before the claim, two before the first readiness; from the claim on it runs.
            assert_eq!(runs, places - 6);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_covered_ends_where_it_is_dropped() {
    let setup = async || {
        let probe = awaiting(|| Ok(Response::new(ChunkedBody::new(["done"]))));
        let seen = probe.handle();
        (layer().layer(probe).oneshot(keyless("POST")), seen)
    };
    drop_at_every_await(setup, async |seen: ProbeHandle| {
        assert_eq!(seen.completed(), 0);
        seen.assert_quiescent();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_body_is_dropped_with_its_call() {
    let body = ChunkedBody::new(["o"]).stall();
    let meter = body.meter();
    let probe = awaiting(|| Err("never"));
    let call = layer().layer(probe).oneshot(post(body));
    assert!(steadfast_testing::poll_times(call, 3).await.is_none());
    assert!(meter.is_dropped());
}
