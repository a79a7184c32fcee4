//! Claims answered late, and owners past their lease.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::FutureExt as _;
use http::Request;
use steadfast_replay::{Drained, Lease, Rejection, ReplayGuardLayer};
use tokio::time::{advance, sleep};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::kit::{Content, Fault, Faulty, Runs, S, answer, delivery, is_duplicate, rejection};

#[tokio::test(start_paused = true)]
async fn g03_a_claim_answered_later_than_its_lease_does_not_run_beside_its_successor() {
    let (store, late, runs) = (Faulty::new(), Runs::default(), Runs::default());
    let layer = ReplayGuardLayer::events(store.clone())
        .lease(S)
        .store_timeout(10 * S);
    store.claims.next([Fault::ReplyLate(3 * S)]);
    let slow = layer.layer(late.handler(200, Duration::ZERO));
    let slow = tokio::spawn(slow.oneshot(delivery()));
    sleep(2 * S).await;
    let successor = layer.layer(runs.handler(200, 60 * S));
    let successor = tokio::spawn(successor.oneshot(delivery()));
    let refused = slow.await.unwrap().unwrap();
    assert_eq!(rejection(&refused), Some(Rejection::InProgress));
    assert_eq!(late.count(), 0);
    let done = successor.await.unwrap().unwrap();
    assert!(done.status() == 200 && !is_duplicate(&done));
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn g03_a_late_claim_is_claimed_again_and_given_up_after_three_late_answers() {
    for (late, runs_expected, status) in [(1, 1, 200), (2, 1, 200), (3, 0, 409)] {
        let (store, runs) = (Faulty::new(), Runs::default());
        let layer = ReplayGuardLayer::events(store.clone())
            .lease(S)
            .store_timeout(10 * S);
        let service = layer.layer(runs.handler(200, Duration::ZERO));
        store.claims.next([Fault::ReplyLate(2 * S)].repeat(late));
        let first = service.clone().oneshot(delivery()).await.unwrap();
        assert_eq!(first.status(), status, "{late} late");
        assert_eq!(runs.count(), runs_expected);
        // What was given up was released too.
        assert_eq!(layer.drain().wait(S).await, Drained::All);
        let again = service.oneshot(delivery()).await.unwrap();
        assert_eq!(again.status(), 200);
        assert_eq!(runs.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn g04_a_handler_that_keeps_its_thread_for_a_whole_lease_can_tell() {
    let layer = ReplayGuardLayer::events(Faulty::new());
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let service = layer.layer(service_fn(move |request: Request<Content>| {
        let tell = Arc::clone(&tell);
        async move {
            let lease = request.extensions().get::<Lease>().unwrap();
            // The clock moves when this is polled for the first time: no renewal is polled meanwhile.
            let is_lost = || tell.lock().unwrap().push(lease.is_lost());
            is_lost();
            advance(29 * S).now_or_never();
            is_lost();
            advance(S).now_or_never();
            is_lost();
            answer(200).await
        }
    }));
    let first = service.clone().oneshot(delivery()).await.unwrap();
    assert_eq!(first.status(), 200);
    assert_eq!(*told.lock().unwrap(), [false, false, true]);
    // Nobody took it over, so it is done all the same.
    assert!(is_duplicate(&service.oneshot(delivery()).await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn g04_a_handler_whose_renewals_fail_is_told_and_its_late_commit_ends_no_other_claim() {
    let store = Faulty::new();
    let layer = ReplayGuardLayer::events(store.clone());
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    store.renewals.next([Fault::Lost; 10]);
    let former = layer.layer(service_fn(move |request: Request<Content>| {
        let tell = Arc::clone(&tell);
        async move {
            let lease = request.extensions().get::<Lease>().unwrap().clone();
            for wait in [29, 2, 29] {
                sleep(Duration::from_secs(wait)).await;
                tell.lock().unwrap().push((lease.is_lost(), lease.fence()));
            }
            answer(200).await
        }
    }));
    let former = tokio::spawn(former.oneshot(delivery()));
    sleep(40 * S).await;
    let (fences, fence) = (Arc::new(Mutex::new(0)), 0_u64);
    let note = Arc::clone(&fences);
    let successor = layer.layer(service_fn(move |request: Request<Content>| {
        *note.lock().unwrap() = request.extensions().get::<Lease>().unwrap().fence();
        async {
            sleep(60 * S).await;
            answer(500).await
        }
    }));
    store.renewals.next([]);
    let successor = tokio::spawn(successor.oneshot(delivery()));
    former.await.unwrap().unwrap();
    let told = told.lock().unwrap().clone();
    assert_eq!(
        told.iter().map(|it| it.0).collect::<Vec<_>>(),
        [false, true, true]
    );
    assert!(*fences.lock().unwrap() > told[0].1 && told[0].1 > fence);
    // The former owner's commit did not make the successor's failure a success.
    assert_eq!(successor.await.unwrap().unwrap().status(), 500);
    let again = layer.layer(Runs::default().handler(204, Duration::ZERO));
    assert_eq!(again.oneshot(delivery()).await.unwrap().status(), 204);
}

#[tokio::test(start_paused = true)]
async fn g04_renewals_are_due_from_the_claim_and_from_the_last_that_succeeded() {
    let (store, runs) = (Faulty::new(), Runs::default());
    let layer = ReplayGuardLayer::events(store.clone()).store_timeout(60 * S);
    // The claim's answer takes 9 of its 30 s, the commit 60: the lease must be renewed 10 s after the claim was sent.
    store.claims.next([Fault::ReplyLate(9 * S)]);
    store.renewals.next([Fault::Lost, Fault::None]);
    store.commits.next([Fault::Late(59 * S)]);
    let service = layer.layer(runs.handler(200, 9 * S));
    let first = tokio::spawn(service.clone().oneshot(delivery()));
    for _ in 0..75 {
        sleep(S).await;
        let again = service.clone().oneshot(delivery()).await.unwrap();
        assert_eq!(again.status(), 409);
    }
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    assert_eq!(runs.count(), 1);
    assert!(is_duplicate(&service.oneshot(delivery()).await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn g03_a_lease_and_a_retention_without_end_are_long_and_no_panic() {
    let (store, runs) = (Faulty::new(), Runs::default());
    let layer = ReplayGuardLayer::events(store.clone())
        .lease(Duration::MAX)
        .retention(Duration::MAX)
        .store_timeout(Duration::MAX);
    store.commits.next([Fault::Lost]);
    let service = layer.layer(runs.handler(200, S));
    assert_eq!(
        service.clone().oneshot(delivery()).await.unwrap().status(),
        200
    );
    assert_eq!(layer.drain().wait(60 * S).await, Drained::All);
    assert!(is_duplicate(&service.oneshot(delivery()).await.unwrap()));
}
