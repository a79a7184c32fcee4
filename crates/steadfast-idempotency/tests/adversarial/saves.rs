//! Saves that go wrong in ways a store should not.

use std::time::Duration;

use steadfast_idempotency::{OnFailure, Timing};
use tokio::time::sleep;

use super::kit::{Api, Fault, Op, answer, seconds};

/// Enough to exhaust any stack that each of them takes a part of.
const MANY: usize = 200_000;

#[tokio::test(start_paused = true)]
async fn a_store_without_room_even_for_a_tombstone_is_a_failed_save() {
    let api = Api::new(|layer| layer, || async { answer(201) });
    api.store.rig(Op::Complete, Fault::NoRoom, 1);
    api.store.rig(Op::Tombstone, Fault::NoRoom, MANY);
    assert_eq!(api.post().await.status, 201);
    for _ in 0..100 {
        sleep(seconds(1)).await;
        api.post().await.assert_in_progress();
    }
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_without_room_to_free_or_to_hold_a_key_does_not_end_the_process() {
    for (on_failure, op) in [
        (OnFailure::Release, Op::Release),
        (OnFailure::Hold, Op::Hold),
    ] {
        let configure = |layer: super::kit::Layer| layer.on_failure(on_failure);
        let api = Api::new(configure, || async { answer(500) });
        api.store.rig(op, Fault::NoRoom, MANY);
        assert_eq!(api.post().await.status, 500);
        api.post().await.assert_in_progress();
    }
}

#[tokio::test(start_paused = true)]
async fn i11_an_answer_that_is_kept_for_ever_is_saved_late_too() {
    let for_ever = Timing::new(seconds(30), Duration::MAX).unwrap();
    let api = Api::new(|layer| layer.timing(for_ever), || async { answer(201) });
    api.store.rig(Op::Complete, Fault::Error, 1);
    assert_eq!(api.post().await.status, 201);
    sleep(seconds(40)).await;
    assert!(api.post().await.is_replay());
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn i11_the_longest_spans_there_are_run_and_replay() {
    let timing = Timing::new(Duration::MAX, Duration::MAX).unwrap();
    let timing = timing.wait_for(Duration::MAX).unwrap();
    let timing = timing.store_timeout(Duration::MAX).unwrap();
    let configure = |layer: super::kit::Layer| layer.timing(timing).retry_after(Duration::MAX);
    let api = Api::new(configure, || async {
        sleep(seconds(1)).await;
        answer(201)
    });
    let (first, second) = tokio::join!(api.post(), api.post());
    assert_eq!((first.status, second.status), (201, 201));
    assert!(second.is_replay());
    assert_eq!(api.runs(), 1);
}
