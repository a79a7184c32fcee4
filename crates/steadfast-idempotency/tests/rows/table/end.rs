//! Rows 27 to 31: how a claim ends when something outside the call goes wrong, and when its answer is old.

use std::sync::{Arc, Mutex};

use futures_util::join;
use steadfast_idempotency::{Drained, Timing};
use tokio::time::sleep;
use tokio_test::{assert_pending, task};

use crate::kit::{
    Api, Fault, Faulty, Op, Reply, State, TICK, lease_of, order, others, pass, post, seconds,
    slow_order,
};

#[tokio::test(start_paused = true)]
async fn row_27_a_failed_save_keeps_the_claim_renewed_until_it_succeeds() {
    let api = Api::new(order);
    for op in [Op::Complete, Op::Tombstone] {
        api.store.always(op, Fault::Error);
    }
    // Nothing of it reaches the client.
    api.post("k1", "one").await.assert_first(201, "order 1");

    // Ten leases later the key is still claimed: nobody runs it a second time.
    for _ in 0..30 {
        sleep(seconds(10)).await;
        assert_eq!(api.store.state().await, State::Claimed);
        api.post("k1", "one").await.assert_in_progress();
    }
    assert_eq!(api.runs(), 1);

    api.store.heal(Op::Complete);
    api.store.heal(Op::Tombstone);
    api.settled().await;
    assert_ne!(api.store.state().await, State::Claimed);
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn row_27_a_save_that_succeeds_late_is_replayed() {
    let api = Api::new(order);
    for fault in [Fault::Error, Fault::Hang, Fault::Error] {
        api.store.once(Op::Complete, fault);
    }
    api.post("k1", "one").await.assert_first(201, "order 1");
    api.post("k1", "one").await.assert_in_progress();
    api.settled().await;
    assert_eq!(api.store.state().await, State::Completed);
    api.post("k1", "one").await.assert_replay(201, "order 1");
    assert_eq!(api.store.count(Op::Complete), 4);
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn row_28_an_owner_who_lost_the_lease_leaves_the_newer_record_alone() {
    let fences = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&fences);
    let api = Api::new(move |request| {
        seen.lock().unwrap().push(lease_of(&request).fence());
        slow_order(request)
    });
    let mut late = task::spawn(api.call(post("k1", "one")));
    assert_pending!(late.poll());
    pass(seconds(30)).await;
    api.post("k1", "one").await.assert_first(201, "order 2");
    assert_eq!(api.store.state().await, State::Completed);

    // It gets its own answer, and everybody else that of the owner who has the key.
    let response = late.await.unwrap();
    let late = Reply::read(response).await;
    late.assert_first(201, "order 1");
    api.post("k1", "one").await.assert_replay(201, "order 2");
    assert_eq!(api.runs(), 2);
    let fences = fences.lock().unwrap();
    assert!(fences[0] < fences[1], "{fences:?}");
}

#[tokio::test(start_paused = true)]
async fn row_28_a_stale_save_is_not_tried_again() {
    let api = Api::new(order);
    api.store.always(Op::Complete, Fault::Stale);
    api.post("k1", "one").await.assert_first(201, "order 1");
    api.settled().await;
    assert_eq!(api.store.log(), [Op::Claim, Op::Complete]);
}

#[tokio::test(start_paused = true)]
async fn row_29_a_killed_process_blocks_the_key_for_its_lease_and_no_longer() {
    let timing = Timing::new(seconds(30), seconds(24 * 3600)).unwrap();
    let api = Api::with(|layer| layer.timing(timing), slow_order);
    // Nobody polls it any more: it neither runs on nor renews.
    let mut killed = task::spawn(api.call(post("k1", "one")));
    assert_pending!(killed.poll());

    pass(seconds(30) - TICK).await;
    api.post("k1", "one").await.assert_in_progress();
    pass(TICK).await;
    api.post("k1", "one").await.assert_first(201, "order 2");
}

#[tokio::test(start_paused = true)]
async fn row_30_a_shutdown_waits_to_its_limit_and_releases_nothing() {
    let api = Api::new(slow_order);
    for key in ["k1", "k2"] {
        let call = api.call(post(key, "one"));
        drop(tokio::spawn(call));
    }
    others().await;
    assert_eq!(api.drain.running(), 2);
    assert_eq!(api.drain.wait(seconds(4)).await, Drained::Running(2));
    assert_eq!(api.store.state().await, State::Claimed);
    assert_eq!(api.store.log(), [Op::Claim, Op::Claim]);

    assert_eq!(api.drain.wait(seconds(4)).await, Drained::All);
    assert_eq!((api.runs(), api.finished()), (2, 2));
    assert_eq!(api.drain.running(), 0);
}

#[test]
fn row_30_a_runtime_that_shuts_down_leaves_the_lease_to_lapse() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let store = Faulty::default();
    let before = runtime();
    let api = before.block_on(async {
        let api = Api::on(store.clone(), |layer| layer, slow_order);
        drop(tokio::spawn(api.call(post("k1", "one"))));
        others().await;
        api
    });
    drop(before);
    assert_eq!((api.runs(), api.finished()), (1, 0));
    assert_eq!(store.log(), [Op::Claim]);

    runtime().block_on(async {
        let api = Api::on(store.clone(), |layer| layer, slow_order);
        api.post("k1", "one").await.assert_in_progress();
        pass(seconds(30)).await;
        api.post("k1", "one").await.assert_first(201, "order 1");
    });
}

#[tokio::test(start_paused = true)]
async fn row_31_an_answer_is_replayed_until_its_very_last_instant_and_then_runs_again() {
    let timing = Timing::new(seconds(30), seconds(60)).unwrap();
    let api = Api::with(|layer| layer.timing(timing), slow_order);
    api.post("k1", "one").await.assert_first(201, "order 1");
    pass(seconds(60) - TICK).await;
    api.post("k1", "one").await.assert_replay(201, "order 1");
    pass(TICK).await;

    let (second, duplicate) = join!(api.post("k1", "one"), async {
        sleep(seconds(1)).await;
        assert_eq!(api.store.state().await, State::Claimed);
        api.post("k1", "one").await
    });
    second.assert_first(201, "order 2");
    duplicate.assert_in_progress();
    assert_eq!(api.runs(), 2);
}
