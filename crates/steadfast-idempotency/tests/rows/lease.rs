//! The lease under a running handler: renewed, lost, and what the handler can know of it.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, join, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use steadfast_core::Body;
use steadfast_idempotency::{IdempotencyLayer, Lease, MemoryStore, Rejection, Scope, Timing};
use tokio::time::sleep;
use tokio_test::{assert_pending, task};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::kit::{
    Api, Content, Fault, Incoming, Layer, Op, State, TICK, answer, lease_of, millis, order, pass,
    post, request, seconds,
};

fn leased(lease: u64) -> impl FnOnce(Layer) -> Layer {
    let timing = Timing::new(seconds(lease), seconds(3600)).unwrap();
    move |layer| layer.timing(timing)
}

/// Where a handler leaves its lease for the test to look at.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Option<Lease>>>);

impl Shown {
    /// An API whose handler shows its lease, and takes this long.
    fn api(&self, configure: impl FnOnce(Layer) -> Layer, takes: Duration) -> Api {
        let shown = self.clone();
        Api::with(configure, move |request: Incoming| {
            *shown.0.lock().unwrap() = Some(lease_of(&request));
            async move {
                sleep(takes).await;
                order(request).await
            }
        })
    }

    fn is_lost(&self) -> bool {
        self.0.lock().unwrap().as_ref().unwrap().is_lost()
    }

    fn fence(&self) -> u64 {
        self.0.lock().unwrap().as_ref().unwrap().fence()
    }
}

#[tokio::test(start_paused = true)]
async fn i13_a_handler_that_runs_ten_leases_keeps_its_key() {
    let shown = Shown::default();
    let api = shown.api(leased(3), seconds(30));
    let (first, ()) = join!(api.post("k1", "one"), async {
        for _ in 0..29 {
            sleep(seconds(1)).await;
            api.post("k1", "one").await.assert_in_progress();
            assert!(!shown.is_lost());
        }
    });
    first.assert_first(201, "order 1");
    assert_eq!(api.runs(), 1);
    // Every third of the lease.
    let renewals = api.store.count(Op::Renew);
    assert!((29..=30).contains(&renewals), "{renewals}");
}

#[tokio::test(start_paused = true)]
async fn i15_the_lease_is_renewed_without_a_client_too() {
    let api = Api::with(leased(3), |request| async {
        sleep(seconds(30)).await;
        order(request).await
    });
    let gone = steadfast_testing::poll_times(api.call(post("k1", "one")), 1).await;
    assert!(gone.is_none());
    for _ in 0..29 {
        sleep(seconds(1)).await;
        api.post("k1", "one").await.assert_in_progress();
    }
    api.settled().await;
    api.post("k1", "one").await.assert_replay(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_while_the_body_of_the_answer_comes_in() {
    let timing = Timing::new(seconds(3), seconds(3600)).unwrap();
    let layer = IdempotencyLayer::new(MemoryStore::new(10, 1024), Scope::global());
    let service =
        layer
            .timing(timing)
            .layer(service_fn(|_request: Request<Body<Content>>| async {
                // Each frame takes most of a lease.
                let frames = stream::unfold(0, |sent| async move {
                    sleep(seconds(2)).await;
                    let frame = Frame::data(Bytes::from_static(b"x"));
                    (sent < 10).then_some((Ok::<_, Infallible>(frame), sent + 1))
                });
                Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(frames))))
            }));
    let call = || service.clone().oneshot(post("k1", "one"));
    let (first, ()) = join!(call(), async {
        for _ in 0..20 {
            sleep(seconds(1)).await;
            let duplicate = call().await.unwrap();
            assert_eq!(duplicate.extensions().get(), Some(&Rejection::InProgress));
        }
    });
    let first = first.unwrap().into_body().collect().await.unwrap();
    assert_eq!(first.to_bytes(), "xxxxxxxxxx");
    let repeat = call().await.unwrap();
    assert!(repeat.headers().contains_key("idempotent-replayed"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_that_another_owner_has_its_key() {
    let shown = Shown::default();
    let api = shown.api(leased(30), seconds(100));
    api.store.once(Op::Renew, Fault::Stale);
    let (first, ()) = join!(api.post("k1", "one"), async {
        sleep(millis(9_999)).await;
        assert!(!shown.is_lost());
        sleep(millis(2)).await;
        assert!(shown.is_lost());
    });
    first.assert_first(201, "order 1");
    assert_eq!(api.store.count(Op::Renew), 1, "there is nothing to renew");
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_no_later_than_its_lease_is_over() {
    for fault in [Fault::Error, Fault::Hang, Fault::Slow(seconds(20))] {
        for lease in [30, 10, 3] {
            let shown = Shown::default();
            let api = shown.api(leased(lease), seconds(100));
            api.store.always(Op::Renew, fault);
            let (_, ()) = join!(api.call(post("k1", "one")), async {
                sleep(seconds(lease) - millis(10)).await;
                assert!(!shown.is_lost(), "{fault:?} {lease}");
                sleep(millis(10)).await;
                assert!(shown.is_lost(), "{fault:?} {lease}");
            });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_in_time_when_its_claim_was_slow() {
    let shown = Shown::default();
    let api = shown.api(leased(3), seconds(100));
    // The store may have counted the lease from when the claim was sent.
    api.store.once(Op::Claim, Fault::Slow(millis(1_900)));
    api.store.always(Op::Renew, Fault::Error);
    let (_, ()) = join!(api.call(post("k1", "one")), async {
        sleep(seconds(3)).await;
        assert!(shown.is_lost());
    });
}

#[tokio::test(start_paused = true)]
async fn two_renewals_may_fail() {
    let shown = Shown::default();
    let api = shown.api(leased(30), seconds(100));
    for fault in [Fault::Error, Fault::Hang] {
        api.store.once(Op::Renew, fault);
    }
    let (first, ()) = join!(api.post("k1", "one"), async {
        for _ in 0..99 {
            sleep(seconds(1)).await;
            assert!(!shown.is_lost());
        }
        // The third third of the lease is when it is surely renewed: another call finds it claimed.
        assert_eq!(api.store.state().await, State::Claimed);
    });
    first.assert_first(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn a_waiters_lease_counts_from_its_own_claim() {
    let timing = Timing::new(seconds(30), seconds(3600)).unwrap();
    let timing = timing.wait_for(seconds(30)).unwrap();
    let shown = Shown::default();
    let api = shown.api(|layer| layer.timing(timing), seconds(15));
    let mut killed = task::spawn(api.call(post("k1", "one")));
    assert_pending!(killed.poll());
    sleep(seconds(1)).await;

    api.store.always(Op::Renew, Fault::Error);
    let (waiter, ()) = join!(api.post("k1", "one"), async {
        // It takes over after 29 s. Now its first renewal, 10 s later, has failed.
        sleep(seconds(29 + 12)).await;
        assert_eq!(api.runs(), 2);
        assert!(!shown.is_lost());
    });
    waiter.assert_first(201, "order 2");
}

#[tokio::test(start_paused = true)]
async fn every_run_of_a_key_has_a_higher_fence() {
    let shown = Shown::default();
    let failing = {
        let shown = shown.clone();
        Api::new(move |request| {
            *shown.0.lock().unwrap() = Some(lease_of(&request));
            async { Ok(answer(500, "no")) }
        })
    };
    let mut last = 0;
    for _ in 0..5 {
        failing.post("k1", "one").await.assert_first(500, "no");
        assert!(shown.fence() > last);
        last = shown.fence();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_key_has_no_lease() {
    let api = Api::new(|request: Incoming| async move {
        assert!(request.extensions().get::<Lease>().is_none());
        Ok(answer(200, ""))
    });
    let keyless = request().body(Content::new(["one"])).unwrap();
    api.send(keyless).await.assert_first(200, "");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_keeps_its_thread_for_a_whole_lease_is_told() {
    let api = Api::with(leased(30), |request: Incoming| async move {
        let lease = lease_of(&request);
        assert!(!lease.is_lost());
        // Time passes and nothing is polled meanwhile: so it is for one that computes, or sleeps with its machine. (The
        // clock moves in the first poll.)
        let _pending = pass(seconds(30) - TICK).now_or_never();
        let just_before = lease.is_lost();
        let _pending = pass(TICK).now_or_never();
        assert_eq!((just_before, lease.is_lost()), (false, true));
        order(request).await
    });
    api.post("k1", "one").await.assert_first(201, "order 1");
}
