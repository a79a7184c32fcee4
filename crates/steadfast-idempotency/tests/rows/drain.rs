//! Waiting for running calls at shutdown.

use steadfast_idempotency::{Drained, IdempotencyLayer, MemoryStore, Scope};
use steadfast_testing::poll_times;
use tokio::time::Instant;
use tower::{Layer as _, ServiceExt as _};

use crate::kit::{Api, Content, Fault, Op, order, others, post, request, seconds, slow_order};

#[tokio::test(start_paused = true)]
async fn nothing_to_wait_for_takes_no_time() {
    let api = Api::new(order);
    api.post("k1", "one").await.assert_first(201, "order 1");
    let start = Instant::now();
    assert_eq!(api.drain.wait(seconds(10)).await, Drained::All);
    assert_eq!(start.elapsed(), seconds(0));
}

#[tokio::test(start_paused = true)]
async fn calls_whose_clients_have_gone_are_waited_for() {
    let api = Api::new(slow_order);
    assert!(poll_times(api.call(post("k1", "one")), 1).await.is_none());
    assert_eq!(api.drain.running(), 1);
    let start = Instant::now();
    assert_eq!(api.drain.wait(seconds(10)).await, Drained::All);
    assert_eq!(start.elapsed(), seconds(5));
    assert_eq!(api.finished(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_saved_yet_is_waited_for() {
    let api = Api::new(order);
    api.store.once(Op::Complete, Fault::Error);
    api.post("k1", "one").await.assert_first(201, "order 1");
    assert_eq!(api.drain.running(), 1);
    assert_eq!(api.drain.wait(seconds(10)).await, Drained::All);
    api.post("k1", "one").await.assert_replay(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_not_covered_are_not_waited_for() {
    let api = Api::new(slow_order);
    let keyless = request().body(Content::new(["one"])).unwrap();
    let call = tokio::spawn(api.call(keyless));
    others().await;
    assert_eq!((api.runs(), api.drain.running()), (1, 0));
    assert_eq!(api.drain.wait(seconds(1)).await, Drained::All);
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_dropped_changes_nothing_and_calls_are_served_on() {
    let api = Api::new(slow_order);
    let call = tokio::spawn(api.call(post("k1", "one")));
    others().await;
    assert!(poll_times(api.drain.wait(seconds(10)), 1).await.is_none());
    assert_eq!(api.drain.wait(seconds(1)).await, Drained::Running(1));
    api.post("k2", "one").await.assert_first(201, "order 2");
    call.await.unwrap().unwrap();
    assert_eq!(api.drain.wait(seconds(1)).await, Drained::All);
}

#[tokio::test(start_paused = true)]
async fn layers_made_from_one_by_setters_are_waited_for_together() {
    let base = IdempotencyLayer::new(MemoryStore::new(10, 1024), Scope::global());
    let drain = base.drain();
    let handler = tower::service_fn(|_| async {
        tokio::time::sleep(seconds(5)).await;
        Ok::<_, &str>(crate::kit::answer(200, ""))
    });
    for layer in [base.clone(), base.require_key().max_body(100)] {
        let key = format!("k{}", drain.running());
        drop(tokio::spawn(
            layer.layer(handler).oneshot(post(&key, "one")),
        ));
        others().await;
    }
    assert_eq!(drain.running(), 2);
    assert_eq!(drain.wait(seconds(6)).await, Drained::All);
}
