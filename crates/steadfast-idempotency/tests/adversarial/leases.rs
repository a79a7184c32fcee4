//! Leases that are shorter than what the store may take.

use steadfast_idempotency::Timing;
use tokio::{join, time::sleep};

use super::kit::{Api, Fault, Layer, Op, answer, millis, seconds};

/// A lease of a second, under a store that may take two for each step.
fn short_lease(layer: Layer) -> Layer {
    layer.timing(Timing::new(seconds(1), seconds(100)).unwrap())
}

#[tokio::test(start_paused = true)]
async fn i13_a_claim_that_is_confirmed_after_its_lease_does_not_run_beside_its_successor() {
    let api = Api::new(short_lease, || async {
        sleep(seconds(5)).await;
        answer(201)
    });
    api.store.rig(Op::Claim, Fault::LateReply(millis(1_500)), 1);
    let (late, second) = join!(api.post(), async {
        sleep(millis(1_200)).await;
        api.post().await
    });
    late.assert_in_progress();
    assert_eq!((second.status, api.runs()), (201, 1));
}

#[tokio::test(start_paused = true)]
async fn i13_a_claim_that_is_confirmed_after_its_lease_runs_when_nobody_took_it_over() {
    let api = Api::new(short_lease, || async { answer(201) });
    api.store.rig(Op::Claim, Fault::LateReply(millis(1_500)), 1);
    assert_eq!(api.post().await.status, 201);
    assert!(api.post().await.is_replay());
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn i13_a_store_slower_than_every_lease_runs_nothing_and_leaves_nothing() {
    let api = Api::new(short_lease, || async { answer(201) });
    api.store.rig(Op::Claim, Fault::LateReply(millis(1_500)), 3);
    api.post().await.assert_in_progress();
    assert_eq!(api.runs(), 0);
    sleep(millis(1)).await;
    assert_eq!(api.post().await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn i15_the_lease_is_renewed_while_the_answer_is_being_saved() {
    let api = Api::new(short_lease, || async { answer(201) });
    api.store.rig(Op::Complete, Fault::Hang, 3);
    let (first, ()) = join!(api.post(), async {
        for _ in 0..12 {
            sleep(millis(500)).await;
            api.post().await.assert_in_progress();
        }
    });
    assert_eq!(first.status, 201);
    sleep(seconds(1)).await;
    assert!(api.post().await.is_replay());
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn i15_the_lease_is_renewed_while_a_failure_is_being_held() {
    let strict = |layer| short_lease(layer).on_failure(steadfast_idempotency::OnFailure::Hold);
    let api = Api::new(strict, || async { answer(500) });
    api.store.rig(Op::Hold, Fault::Hang, 2);
    let (first, ()) = join!(api.post(), async {
        for _ in 0..7 {
            sleep(millis(500)).await;
            api.post().await.assert_in_progress();
        }
    });
    assert_eq!(first.status, 500);
    sleep(seconds(2)).await;
    assert_eq!(api.post().await.code(), "idempotency_outcome_unknown");
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn i15_renewals_are_due_from_the_claim_on_however_late_they_are_begun() {
    let api = Api::new(short_lease, || async {
        sleep(millis(300)).await;
        answer(201)
    });
    api.store.rig(Op::Complete, Fault::Hang, 3);
    api.store.rig(Op::Renew, Fault::Error, 2);
    let (first, ()) = join!(api.post(), async {
        sleep(millis(1_100)).await;
        api.post().await.assert_in_progress();
    });
    assert_eq!((first.status, api.runs()), (201, 1));
}
