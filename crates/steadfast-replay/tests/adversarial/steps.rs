//! A store that fails, hangs or loses its reply, at each of its steps.

use std::time::Duration;

use steadfast_replay::{Drained, Rejection, ReplayGuardLayer};
use tokio::time::sleep;
use tower::{Layer as _, ServiceExt as _};

use super::kit::{Fault, Faulty, Runs, S, delivery, is_duplicate, rejection};

const BAD: [Fault; 4] = [
    Fault::Lost,
    Fault::ReplyLost,
    Fault::Hangs,
    Fault::ReplyHangs,
];

#[tokio::test(start_paused = true)]
async fn g01_a_record_without_an_answer_lets_nothing_through() {
    for fault in BAD {
        let (store, runs) = (Faulty::new(), Runs::default());
        let service = ReplayGuardLayer::one_shot(store.clone())
            .insecure_retain_undated(60 * S)
            .layer(runs.handler(200, Duration::ZERO));
        store.records.next([fault]);
        let refused = service.clone().oneshot(delivery()).await.unwrap();
        assert_eq!(rejection(&refused), Some(Rejection::StoreUnavailable));
        assert_eq!(runs.count(), 0, "{fault:?}");
        // What may be recorded stays so: the client signs again.
        let was_recorded = matches!(fault, Fault::ReplyLost | Fault::ReplyHangs);
        let again = service.clone().oneshot(delivery()).await.unwrap();
        assert_eq!(again.status(), if was_recorded { 401 } else { 200 });
        assert_eq!(service.oneshot(delivery()).await.unwrap().status(), 401);
        assert!(runs.count() <= 1);
    }
}

#[tokio::test(start_paused = true)]
async fn g03_a_claim_without_an_answer_runs_nothing_and_frees_the_event() {
    for fault in BAD {
        let (store, runs) = (Faulty::new(), Runs::default());
        let layer = ReplayGuardLayer::events(store.clone());
        let service = layer.layer(runs.handler(200, Duration::ZERO));
        store.claims.next([fault]);
        let refused = service.clone().oneshot(delivery()).await.unwrap();
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.headers()["retry-after"], "1");
        assert_eq!(rejection(&refused), Some(Rejection::StoreUnavailable));
        assert_eq!(runs.count(), 0, "{fault:?}");
        assert_eq!(layer.drain().wait(60 * S).await, Drained::All);
        let again = service.clone().oneshot(delivery()).await.unwrap();
        assert!(!is_duplicate(&again) && again.status() == 200, "{fault:?}");
        assert!(is_duplicate(&service.oneshot(delivery()).await.unwrap()));
        assert_eq!(runs.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn g03_a_claim_that_can_neither_be_answered_nor_released_is_free_after_its_lease() {
    for (claim, release) in [
        (Fault::ReplyLost, Fault::Lost),
        (Fault::ReplyHangs, Fault::Hangs),
        // The release overtakes the claim.
        (Fault::Late(S), Fault::Lost),
    ] {
        let (store, runs) = (Faulty::new(), Runs::default());
        let layer = ReplayGuardLayer::events(store.clone()).store_timeout(2 * S);
        let service = layer.layer(runs.handler(200, Duration::ZERO));
        store.claims.next([claim]);
        store.releases.next([release]);
        let first = service.clone().oneshot(delivery()).await.unwrap();
        if first.status() == 503 {
            let busy = service.clone().oneshot(delivery()).await.unwrap();
            assert_eq!(busy.status(), 409);
            sleep(31 * S).await;
            assert_eq!(
                service.clone().oneshot(delivery()).await.unwrap().status(),
                200
            );
        }
        assert_eq!(runs.count(), 1);
        assert!(is_duplicate(&service.oneshot(delivery()).await.unwrap()));
    }
}

#[tokio::test(start_paused = true)]
async fn g03_a_commit_without_an_answer_never_frees_a_processed_event() {
    for fault in BAD {
        for times in [1, 2, 7] {
            let (store, runs) = (Faulty::new(), Runs::default());
            let layer = ReplayGuardLayer::events(store.clone());
            let service = layer.layer(runs.handler(204, Duration::ZERO));
            store.commits.next([fault].repeat(times));
            let first = service.clone().oneshot(delivery()).await.unwrap();
            assert_eq!(first.status(), 204, "the handler's answer goes out");
            // Up to several leases later nothing but 409 or the marked 200 is said.
            for _ in 0..100 {
                let again = service.clone().oneshot(delivery()).await.unwrap();
                assert!(again.status() == 409 || is_duplicate(&again), "{fault:?}");
                sleep(S).await;
            }
            assert_eq!(layer.drain().wait(600 * S).await, Drained::All);
            assert!(is_duplicate(&service.oneshot(delivery()).await.unwrap()));
            assert_eq!(runs.count(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g04_a_release_without_an_answer_loses_no_event() {
    for fault in BAD {
        let (store, failed, runs) = (Faulty::new(), Runs::default(), Runs::default());
        let layer = ReplayGuardLayer::events(store.clone());
        store.releases.next([fault]);
        let failing = layer.layer(failed.handler(500, Duration::ZERO));
        assert_eq!(failing.oneshot(delivery()).await.unwrap().status(), 500);
        let service = layer.layer(runs.handler(200, Duration::ZERO));
        let again = service.clone().oneshot(delivery()).await.unwrap();
        if again.status() == 409 {
            sleep(31 * S).await;
            assert_eq!(service.oneshot(delivery()).await.unwrap().status(), 200);
        }
        assert_eq!((failed.count(), runs.count()), (1, 1), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn g04_every_other_renewal_may_go_wrong_and_the_event_stays_claimed() {
    for fault in BAD {
        let (store, runs) = (Faulty::new(), Runs::default());
        let layer = ReplayGuardLayer::events(store.clone());
        let service = layer.layer(runs.handler(200, 100 * S));
        store.renewals.next([fault, Fault::None].repeat(5));
        let first = tokio::spawn(service.clone().oneshot(delivery()));
        for _ in 0..95 {
            sleep(S).await;
            let again = service.clone().oneshot(delivery()).await.unwrap();
            assert_eq!(again.status(), 409, "{fault:?}");
        }
        assert_eq!(first.await.unwrap().unwrap().status(), 200);
        assert!(is_duplicate(&service.oneshot(delivery()).await.unwrap()));
        assert_eq!(runs.count(), 1);
    }
}
