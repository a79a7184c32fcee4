//! A store that is down, slow, or loses its answers.

use steadfast_idempotency::{Lease, Timing};
use tokio::time::{Instant, sleep};

use crate::kit::{
    Api, Fault, Incoming, Layer, Op, Retry, State, answer, millis, order, post, seconds, slow_order,
};

const OPS: [Op; 6] = [
    Op::Claim,
    Op::Complete,
    Op::Hold,
    Op::Release,
    Op::Renew,
    Op::Tombstone,
];

#[tokio::test(start_paused = true)]
async fn a_store_that_is_slow_but_in_time_is_waited_for() {
    let api = Api::new(order);
    for op in OPS {
        api.store.always(op, Fault::Slow(millis(1_999)));
    }
    let start = Instant::now();
    api.post("k1", "one").await.assert_first(201, "order 1");
    assert_eq!(start.elapsed(), 2 * millis(1_999));
    api.post("k1", "one").await.assert_replay(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn how_long_a_step_may_take_can_be_set() {
    let timing = Timing::default().store_timeout(millis(100)).unwrap();
    for (takes, ran) in [(99, 1), (101, 0)] {
        let api = Api::with(|layer| layer.timing(timing), order);
        api.store.once(Op::Claim, Fault::Slow(millis(takes)));
        drop(api.post("k1", "one").await);
        assert_eq!(api.runs(), ran);
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_and_which_cannot_be_freed_lapses_with_its_lease() {
    let api = Api::new(order);
    api.store.once(Op::Claim, Fault::LoseReply);
    api.store.once(Op::Release, Fault::Error);
    api.post("k1", "one").await.assert_unavailable();
    api.post("k1", "one").await.assert_in_progress();
    sleep(seconds(30)).await;
    api.post("k1", "one").await.assert_first(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_saved_without_a_word_is_replayed() {
    let api = Api::new(order);
    api.store.once(Op::Complete, Fault::LoseReply);
    let start = Instant::now();
    api.post("k1", "one").await.assert_first(201, "order 1");
    assert_eq!(
        start.elapsed(),
        seconds(2),
        "the first client waits no longer"
    );
    api.post("k1", "one").await.assert_replay(201, "order 1");
    api.settled().await;
    api.post("k1", "one").await.assert_replay(201, "order 1");
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn i15_a_client_that_leaves_while_its_claim_is_on_the_way_has_made_the_call() {
    for fault in [Fault::Slow(seconds(1)), Fault::Pause] {
        let api = Api::new(slow_order);
        api.store.once(Op::Claim, fault);
        let gone = steadfast_testing::poll_times(api.call(post("k1", "one")), 1).await;
        assert!(gone.is_none());
        assert_eq!(api.runs(), 0);
        api.settled().await;
        assert_eq!((api.runs(), api.finished()), (1, 1));
        api.post("k1", "one").await.assert_replay(201, "order 1");
    }
}

const OPEN: fn(Layer) -> Layer = |layer| layer.insecure_run_without_store();

#[tokio::test(start_paused = true)]
async fn a_layer_that_is_told_to_runs_without_its_store_and_says_so() {
    for fault in [Fault::Error, Fault::Hang] {
        let api = Api::with(OPEN, |request: Incoming| async move {
            assert!(request.extensions().get::<Lease>().is_none());
            order(request).await
        });
        api.store.always(Op::Claim, fault);
        for run in 1..=2 {
            let reply = api.post("k1", "one").await;
            reply.assert_first(201, &format!("order {run}"));
            assert_eq!(reply.header("idempotency-status"), Some("bypassed"));
        }
        assert_eq!(api.store.log(), [Op::Claim, Op::Claim]);
        assert_eq!(api.store.state().await, State::Free);
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_may_run_without_its_store_does_so_for_no_other_reason() {
    let api = Api::with(OPEN, slow_order);
    let (first, ()) = futures_util::join!(api.post("k1", "one"), async {
        sleep(seconds(1)).await;
        api.post("k1", "one").await.assert_in_progress();
        api.post("k1", "two").await.assert_reuse();
    });
    first.assert_first(201, "order 1");
    assert_eq!(first.header("idempotency-status"), None);
    for fault in [Fault::Unreadable, Fault::Vanished] {
        api.store.always(Op::Claim, fault);
        assert!(api.post("k2", "one").await.rejection().is_some());
    }
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_may_run_without_its_store_passes_errors_on() {
    let api = Api::with(OPEN, |_| async { Err("refused") });
    api.store.once(Op::Claim, Fault::Error);
    assert_eq!(api.call(post("k1", "one")).await.unwrap_err(), "refused");
}

#[tokio::test(start_paused = true)]
async fn refusals_that_time_cures_ask_for_the_time_that_was_set() {
    let api = Api::with(
        |layer| layer.retry_after(millis(2_500)),
        |_| async { Ok(answer(200, "")) },
    );
    api.store.once(Op::Claim, Fault::Error);
    let reply = api.post("k1", "one").await;
    let rejection = steadfast_idempotency::Rejection::StoreUnavailable;
    // Rounded up to whole seconds.
    let code = "idempotency_store_unavailable";
    reply.assert_refusal(503, code, Retry::After("3"), rejection);
}
