//! D8: an answer that could not be saved. It reaches its client, and the operation is never run again for it.

use steadfast_idempotency::{Timing, TombstoneReason};
use tokio::time::{Instant, sleep};

use crate::kit::{Api, Fault, Op, State, order, seconds};

const NOT_SAVED: State = State::Gone(201, TombstoneReason::NotSaved);

#[tokio::test(start_paused = true)]
async fn a_hanging_save_does_not_hold_the_client_up_longer_than_a_step_may_take() {
    let api = Api::new(order);
    api.store.once(Op::Complete, Fault::Hang);
    let start = Instant::now();
    api.post("k1", "one").await.assert_first(201, "order 1");
    assert_eq!(start.elapsed(), seconds(2));
    api.post("k1", "one").await.assert_in_progress();
    api.settled().await;
    api.post("k1", "one").await.assert_replay(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_keeps_refusing_answers_remembers_that_it_was_done() {
    let api = Api::new(order);
    api.store.always(Op::Complete, Fault::Error);
    api.post("k1", "one").await.assert_first(201, "order 1");
    api.settled().await;
    assert_eq!(api.store.state().await, NOT_SAVED);
    api.post("k1", "one").await.assert_gone(201, "not_saved");
    assert!(
        api.store.count(Op::Complete) > 3,
        "not at the first refusal"
    );
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_reached_at_all_gets_the_answer_when_it_is_back() {
    let api = Api::new(order);
    for op in [Op::Complete, Op::Renew, Op::Tombstone] {
        api.store.always(op, Fault::Error);
    }
    api.post("k1", "one").await.assert_first(201, "order 1");
    sleep(seconds(3600)).await;
    for op in [Op::Complete, Op::Renew, Op::Tombstone] {
        api.store.heal(op);
    }
    api.settled().await;
    assert_eq!(api.store.state().await, State::Completed);
    api.post("k1", "one").await.assert_replay(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn a_save_is_given_up_when_somebody_else_has_the_key_by_then() {
    let api = Api::new(order);
    for op in [Op::Complete, Op::Renew] {
        api.store.always(op, Fault::Error);
    }
    api.post("k1", "one").await.assert_first(201, "order 1");
    sleep(seconds(30)).await;
    api.store.heal(Op::Complete);
    api.store.once(Op::Complete, Fault::Error);
    // The lease is over: the next call takes the key, and its answer is the one that stays.
    api.post("k1", "one").await.assert_first(201, "order 2");
    api.settled().await;
    api.post("k1", "one").await.assert_replay(201, "order 2");
}

#[tokio::test(start_paused = true)]
async fn a_store_without_room_for_an_answer_remembers_that_it_was_done() {
    let api = Api::new(order);
    api.store.once(Op::Complete, Fault::NoRoom);
    api.post("k1", "one").await.assert_first(201, "order 1");
    assert_eq!(api.store.state().await, NOT_SAVED);
    assert_eq!(api.store.log(), [Op::Claim, Op::Complete, Op::Tombstone]);
    api.post("k1", "one").await.assert_gone(201, "not_saved");
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_that_fails_is_made_later() {
    for fault in [Fault::Error, Fault::Hang, Fault::LoseReply] {
        let api = Api::with(|layer| layer.max_stored_body(3), order);
        api.store.once(Op::Tombstone, fault);
        api.post("k1", "one").await.assert_first(201, "order 1");
        api.settled().await;
        let gone = State::Gone(201, TombstoneReason::TooLarge);
        assert_eq!(api.store.state().await, gone, "{fault:?}");
        assert_eq!(api.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_save_that_never_succeeds_is_given_up_after_the_ttl() {
    let timing = Timing::new(seconds(3), seconds(60)).unwrap();
    let api = Api::with(|layer| layer.timing(timing), order);
    for op in [Op::Complete, Op::Tombstone] {
        api.store.always(op, Fault::Error);
    }
    let start = Instant::now();
    api.post("k1", "one").await.assert_first(201, "order 1");
    api.settled().await;
    assert!(start.elapsed() >= seconds(60), "{:?}", start.elapsed());
    assert!(start.elapsed() < seconds(65), "{:?}", start.elapsed());
    sleep(seconds(3)).await;
    assert_eq!(api.store.state().await, State::Free);
}
