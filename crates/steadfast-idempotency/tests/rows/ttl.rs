//! I11: how long an answer is kept.

use steadfast_idempotency::{OnFailure, Timing};
use tokio::time::{Instant, sleep};

use crate::kit::{Api, Layer, State, TICK, answer, failing, order, pass, seconds};

fn kept(ttl: u64) -> impl FnOnce(Layer) -> Layer {
    let timing = Timing::new(seconds(30), seconds(ttl)).unwrap();
    move |layer| layer.timing(timing)
}

#[tokio::test(start_paused = true)]
async fn i11_an_answer_is_kept_for_the_ttl_from_its_completion() {
    let start = Instant::now();
    let api = Api::with(kept(60), |request| async {
        sleep(seconds(100)).await;
        order(request).await
    });
    api.post("k1", "one").await.assert_first(201, "order 1");
    assert_eq!(start.elapsed(), seconds(100));
    pass(seconds(60) - TICK).await;
    api.post("k1", "one").await.assert_replay(201, "order 1");
    pass(TICK).await;
    assert_eq!(api.store.state().await, State::Free);
}

#[tokio::test(start_paused = true)]
async fn i11_a_replay_does_not_prolong_it() {
    let api = Api::with(kept(60), order);
    api.post("k1", "one").await.assert_first(201, "order 1");
    for _ in 0..2 {
        pass(seconds(20)).await;
        api.post("k1", "one").await.assert_replay(201, "order 1");
        api.post("k1", "two").await.assert_reuse();
    }
    pass(seconds(20)).await;
    api.post("k1", "one").await.assert_first(201, "order 2");
}

#[tokio::test(start_paused = true)]
async fn i11_24_hours_is_the_default() {
    let api = Api::new(order);
    api.post("k1", "one").await.assert_first(201, "order 1");
    pass(seconds(24 * 3600) - TICK).await;
    api.post("k1", "one").await.assert_replay(201, "order 1");
    pass(TICK).await;
    api.post("k1", "one").await.assert_first(201, "order 2");
}

#[tokio::test(start_paused = true)]
async fn i11_what_was_not_stored_is_remembered_as_long() {
    let gone = Api::with(|layer| kept(60)(layer).max_stored_body(1), order);
    let held = Api::with(|layer| kept(60)(layer).on_failure(OnFailure::Hold), failing);
    for api in [gone, held] {
        drop(api.post("k1", "one").await);
        pass(seconds(60) - TICK).await;
        assert_eq!(api.post("k1", "one").await.status, 409);
        assert_eq!(api.runs(), 1);
        pass(TICK).await;
        drop(api.post("k1", "one").await);
        assert_eq!(api.runs(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn i11_an_expired_key_takes_any_request() {
    let api = Api::with(kept(60), |_| async { Ok(answer(200, "done")) });
    api.post("k1", "one").await.assert_first(200, "done");
    pass(seconds(60)).await;
    api.post("k1", "two").await.assert_first(200, "done");
    api.post("k1", "one").await.assert_reuse();
}
