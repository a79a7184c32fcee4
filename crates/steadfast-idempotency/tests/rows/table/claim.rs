//! Rows 7 to 17: what the claim finds.

use std::sync::{Arc, Mutex};

use futures_util::join;
use steadfast_idempotency::{
    MemoryStore, OnFailure, Rejection, ReuseStatus, Timing, TombstoneReason,
};
use tokio::time::{Instant, sleep};
use tokio_test::{assert_pending, task};

use crate::kit::{
    Api, Fault, Faulty, Op, Reply, Retry, State, TICK, failing, lease_of, order, pass, post,
    seconds, slow_order,
};

#[tokio::test(start_paused = true)]
async fn row_07_a_store_that_is_down_or_slow_gets_503_and_runs_nothing() {
    // What it costs the caller: nothing for a failure, the store's whole time for silence.
    for (fault, waited) in [
        (Fault::Error, seconds(0)),
        (Fault::Hang, seconds(2)),
        (Fault::LoseReply, seconds(2)),
    ] {
        let api = Api::new(order);
        api.store.once(Op::Claim, fault);
        let start = Instant::now();
        let reply = api.post("k1", "one").await;
        reply.assert_refusal(
            503,
            "idempotency_store_unavailable",
            Retry::After("1"),
            Rejection::StoreUnavailable,
        );
        assert_eq!(start.elapsed(), waited, "{fault:?}");
        assert_eq!(api.runs(), 0, "{fault:?}");

        // The same key works as soon as the store does, also where the claim had arrived.
        api.settled().await;
        assert_eq!(api.store.state().await, State::Free, "{fault:?}");
        api.post("k1", "one").await.assert_first(201, "order 1");
        assert_eq!(api.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn row_08_an_absent_an_expired_and_a_stale_key_are_claimed_and_run() {
    let fences = Arc::new(Mutex::new(Vec::new()));
    let store = Faulty::default();
    let handler = {
        let (fences, store) = (Arc::clone(&fences), store.clone());
        move |request| {
            let (fences, store) = (Arc::clone(&fences), store.clone());
            async move {
                assert_eq!(store.state().await, State::Claimed);
                fences.lock().unwrap().push(lease_of(&request).fence());
                slow_order(request).await
            }
        }
    };
    let timing = Timing::new(seconds(30), seconds(60)).unwrap();
    let api = Api::on(store, |layer| layer.timing(timing), handler);

    // Absent.
    api.post("k1", "one").await.assert_first(201, "order 1");
    // Expired, and another request altogether.
    pass(seconds(60)).await;
    let mut abandoned = task::spawn(api.call(post("k1", "two")));
    assert_pending!(abandoned.poll());
    // Stale: nobody polls the owner, so nobody renews its lease.
    pass(seconds(30)).await;
    api.post("k1", "three").await.assert_first(201, "order 3");

    let fences = fences.lock().unwrap();
    assert_eq!(fences.len(), 3);
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
}

#[tokio::test(start_paused = true)]
async fn row_09_a_duplicate_of_a_running_call_gets_409_and_retry_after() {
    let api = Api::new(slow_order);
    let (first, duplicate) = join!(api.post("k1", "one"), async {
        sleep(seconds(1)).await;
        let duplicate = api.post("k1", "one").await;
        assert_eq!(api.store.state().await, State::Claimed);
        duplicate
    });
    duplicate.assert_refusal(
        409,
        "idempotency_in_progress",
        Retry::After("1"),
        Rejection::InProgress,
    );
    first.assert_first(201, "order 1");
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn row_10_another_request_under_a_running_key_gets_422() {
    let statuses = [
        (ReuseStatus::UnprocessableContent, 422),
        (ReuseStatus::BadRequest, 400),
    ];
    for (reuse_status, status) in statuses {
        let api = Api::with(|layer| layer.reuse_status(reuse_status), slow_order);
        let (first, other) = join!(api.post("k1", "one"), async {
            sleep(seconds(1)).await;
            let other = api.post("k1", "two").await;
            assert_eq!(api.store.state().await, State::Claimed);
            other
        });
        other.assert_refusal(
            status,
            "idempotency_key_reuse",
            Retry::No,
            Rejection::KeyReuse,
        );
        first.assert_first(201, "order 1");
        assert_eq!(api.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn row_11_a_repeat_of_a_completed_call_gets_the_stored_answer() {
    let api = Api::new(|request| async {
        let mut response = order(request).await?;
        let location = http::HeaderValue::from_static("/orders/1");
        response.headers_mut().insert("location", location);
        Ok(response)
    });
    api.post("k1", "one").await.assert_first(201, "order 1");
    for _ in 0..3 {
        let repeat = api.post("k1", "one").await;
        repeat.assert_replay(201, "order 1");
        assert_eq!(repeat.header("location"), Some("/orders/1"));
    }
    assert_eq!(api.runs(), 1);
    assert_eq!(api.store.state().await, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn row_12_another_request_under_a_used_key_gets_422() {
    let done = Api::new(order);
    let gone = Api::with(|layer| layer.max_stored_body(3), order);
    let held = Api::with(|layer| layer.on_failure(OnFailure::Hold), failing);
    for (api, state) in [
        (done, State::Completed),
        (gone, State::Gone(201, TombstoneReason::TooLarge)),
        (held, State::Held),
    ] {
        drop(api.post("k1", "one").await);
        assert_eq!(api.store.state().await, state);
        let other = api.post("k1", "two").await;
        other.assert_refusal(422, "idempotency_key_reuse", Retry::No, Rejection::KeyReuse);
        assert_eq!(api.runs(), 1, "{state:?}");
        assert_eq!(api.store.state().await, state);
    }
}

#[tokio::test(start_paused = true)]
async fn row_13_a_repeat_whose_answer_was_not_kept_gets_409_without_a_time() {
    let api = Api::with(|layer| layer.max_stored_body(3), order);
    api.post("k1", "one").await.assert_first(201, "order 1");
    api.post("k1", "one").await.assert_gone(201, "too_large");
    assert_eq!(api.runs(), 1);
    let state = State::Gone(201, TombstoneReason::TooLarge);
    assert_eq!(api.store.state().await, state);
}

#[tokio::test(start_paused = true)]
async fn row_14_a_repeat_of_an_unknown_outcome_gets_409_without_a_time() {
    let api = Api::with(|layer| layer.on_failure(OnFailure::Hold), failing);
    api.post("k1", "one").await.assert_first(500, "no");
    let repeat = api.post("k1", "one").await;
    repeat.assert_refusal(
        409,
        "idempotency_outcome_unknown",
        Retry::No,
        Rejection::OutcomeUnknown,
    );
    assert_eq!(api.runs(), 1);
    assert_eq!(api.store.state().await, State::Held);
}

#[tokio::test(start_paused = true)]
async fn row_15_a_claim_lost_to_a_record_that_is_gone_is_made_three_times() {
    let api = Api::new(order);
    for _ in 0..2 {
        api.store.once(Op::Claim, Fault::Vanished);
    }
    api.post("k1", "one").await.assert_first(201, "order 1");
    assert_eq!(api.store.count(Op::Claim), 3);

    api.store.always(Op::Claim, Fault::Vanished);
    let reply = api.post("k2", "one").await;
    reply.assert_in_progress();
    assert_eq!(api.store.count(Op::Claim), 6);
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn row_16_a_record_that_cannot_be_read_gets_503_and_is_left_alone() {
    let unreadable = |reply: &Reply| {
        reply.assert_refusal(
            503,
            "idempotency_record_unreadable",
            Retry::No,
            Rejection::RecordUnreadable,
        )
    };

    // The store cannot read it.
    let api = Api::new(order);
    api.store.once(Op::Claim, Fault::Unreadable);
    unreadable(&api.post("k1", "one").await);
    assert_eq!(api.store.log(), [Op::Claim]);
    assert_eq!(api.runs(), 0);

    // The layer cannot read it.
    let api = Api::new(order);
    api.store.once(Op::Complete, Fault::NewerVersion);
    api.post("k1", "one").await.assert_first(201, "order 1");
    for _ in 0..2 {
        unreadable(&api.post("k1", "one").await);
    }
    assert_eq!(api.runs(), 1);
    assert_eq!(api.store.state().await, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn row_17_a_full_memory_store_refuses_new_keys_and_serves_known_ones() {
    let store = Faulty::new(MemoryStore::new(2, 1024));
    let api = Api::on(store, |layer| layer, order);
    api.post("k1", "one").await.assert_first(201, "order 1");
    api.post("k2", "one").await.assert_first(201, "order 2");
    let refused = api.post("k3", "one").await;
    refused.assert_refusal(
        503,
        "idempotency_store_full",
        Retry::After("1"),
        Rejection::StoreFull,
    );
    api.post("k1", "one").await.assert_replay(201, "order 1");
    api.post("k2", "two").await.assert_reuse();
    assert_eq!(api.runs(), 2);

    // An answer that has expired makes room. (Just before, it does not.)
    pass(seconds(24 * 3600) - TICK).await;
    assert_eq!(api.post("k3", "one").await.status, 503);
    pass(seconds(30) + TICK).await;
    api.post("k3", "one").await.assert_first(201, "order 3");
}
