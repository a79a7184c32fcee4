//! What the handler's end makes of an event.

use std::{convert::Infallible, time::Duration};

use http::{Request, Response};
use http_body_util::BodyExt as _;
use steadfast_core::facts::{SignedContent, Verified};
use steadfast_replay::{MemoryStore, Rejection, ReplayGuardLayer};
use steadfast_testing::poll_times;
use tokio::time::sleep;
use tower::{Layer as _, ServiceExt as _, service_fn, timeout::TimeoutLayer};

use super::kit::{Content, Faulty, Runs, S, delivery, is_duplicate, rejection, request};

#[tokio::test(start_paused = true)]
async fn g04_anything_but_2xx_is_processed_again_and_2xx_is_not() {
    for status in [200, 201, 202, 204, 207, 299] {
        let (store, runs) = (Faulty::new(), Runs::default());
        let service = ReplayGuardLayer::events(store).layer(runs.handler(status, S));
        let first = service.clone().oneshot(delivery()).await.unwrap();
        assert_eq!(first.status(), status);
        let again = service.oneshot(delivery()).await.unwrap();
        assert!(is_duplicate(&again), "{status}");
        assert!(
            again
                .into_body()
                .collect()
                .await
                .unwrap()
                .to_bytes()
                .is_empty()
        );
        assert_eq!(runs.count(), 1);
    }
    for status in [301, 304, 400, 401, 404, 409, 410, 422, 429, 500, 503, 599] {
        let (store, failed, runs) = (Faulty::new(), Runs::default(), Runs::default());
        let layer = ReplayGuardLayer::events(store);
        let failing = layer.layer(failed.handler(status, S));
        for _ in 0..3 {
            let answer = failing.clone().oneshot(delivery()).await.unwrap();
            assert_eq!(answer.status(), status);
        }
        let service = layer.layer(runs.handler(200, S));
        assert!(!is_duplicate(
            &service.clone().oneshot(delivery()).await.unwrap()
        ));
        assert!(is_duplicate(&service.oneshot(delivery()).await.unwrap()));
        assert_eq!((failed.count(), runs.count()), (3, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn g04_a_panic_goes_on_unwinding_and_the_event_is_processed_again() {
    for late in [false, true] {
        let (store, runs) = (Faulty::new(), Runs::default());
        let layer = ReplayGuardLayer::events(store.clone());
        let panicking = layer.layer(service_fn(move |_: Request<Content>| {
            assert!(late, "the handler panicked in its call");
            async {
                sleep(100 * S).await;
                panic!("the handler panicked late");
                #[expect(unreachable_code, reason = "names the type")]
                Ok::<Response<Content>, Infallible>(Response::default())
            }
        }));
        let panicked = tokio::spawn(panicking.oneshot(delivery())).await;
        assert!(panicked.unwrap_err().is_panic());
        assert!(store.inner.is_empty());
        let service = layer.layer(runs.handler(200, S));
        assert!(!is_duplicate(&service.oneshot(delivery()).await.unwrap()));
        assert_eq!(runs.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn g04_an_error_of_the_handler_is_its_own_and_the_event_is_processed_again() {
    let (store, runs) = (Faulty::new(), Runs::default());
    let layer = ReplayGuardLayer::events(store);
    let failing = layer.layer(service_fn(|_: Request<Content>| async {
        Err::<Response<Content>, _>("no")
    }));
    assert_eq!(failing.oneshot(delivery()).await.unwrap_err(), "no");
    let service = layer.layer(runs.handler(200, S));
    assert!(!is_duplicate(&service.oneshot(delivery()).await.unwrap()));
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn g04_a_timeout_inside_frees_the_event_and_one_outside_leaves_it_running() {
    let (store, runs) = (Faulty::new(), Runs::default());
    let layer = ReplayGuardLayer::events(store);
    let slow = runs.handler(200, 60 * S);
    let inside = layer.layer(TimeoutLayer::new(5 * S).layer(slow.clone()));
    assert!(
        inside
            .oneshot(delivery())
            .await
            .unwrap_err()
            .is::<tower::timeout::error::Elapsed>()
    );
    let guarded = layer.layer(slow);
    let outside = TimeoutLayer::new(5 * S).layer(guarded.clone());
    outside.oneshot(delivery()).await.unwrap_err();
    let busy = guarded.clone().oneshot(delivery()).await.unwrap();
    assert_eq!(rejection(&busy), Some(Rejection::InProgress));
    sleep(60 * S).await;
    assert!(is_duplicate(&guarded.oneshot(delivery()).await.unwrap()));
    assert_eq!(runs.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn g03_an_event_in_flight_is_409_with_a_wait_and_never_200() {
    let (store, runs) = (Faulty::new(), Runs::default());
    let layer = ReplayGuardLayer::events(store).retry_after(7 * S);
    let service = layer.layer(runs.handler(200, 45 * S));
    let first = tokio::spawn(service.clone().oneshot(delivery()));
    for _ in 0..44 {
        sleep(S).await;
        let again = service.clone().oneshot(delivery()).await.unwrap();
        assert_eq!(again.status(), 409);
        assert_eq!(again.headers()["retry-after"], "7");
        assert_eq!(rejection(&again), Some(Rejection::InProgress));
    }
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    assert!(is_duplicate(&service.oneshot(delivery()).await.unwrap()));
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn g03_g04_a_sender_that_disconnects_again_and_again_is_served_once() {
    let (store, runs) = (Faulty::new(), Runs::default());
    let layer = ReplayGuardLayer::events(store);
    let service = layer.layer(runs.handler(200, 45 * S));
    for polls in 0..20 {
        let gone = poll_times(service.clone().oneshot(delivery()), polls % 4);
        drop(gone.await);
        sleep(S).await;
    }
    sleep(60 * S).await;
    assert!(is_duplicate(&service.oneshot(delivery()).await.unwrap()));
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn g03_a_processed_event_is_remembered_for_its_retention_from_its_end() {
    let (store, runs) = (Faulty::new(), Runs::default());
    let layer = ReplayGuardLayer::events(store).retention(100 * S);
    let service = layer.layer(runs.handler(200, 50 * S));
    service.clone().oneshot(delivery()).await.unwrap();
    sleep(99 * S).await;
    assert!(is_duplicate(
        &service.clone().oneshot(delivery()).await.unwrap()
    ));
    sleep(3 * S).await;
    assert!(!is_duplicate(&service.oneshot(delivery()).await.unwrap()));
    assert_eq!(runs.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn g03_a_full_store_refuses_an_event_until_there_is_room_and_runs_nothing() {
    let (store, runs) = (MemoryStore::new(2), Runs::default());
    let layer = ReplayGuardLayer::events(store).retention(100 * S);
    let service = layer.layer(runs.handler(200, Duration::ZERO));
    let call = |body: &'static str| {
        let verified = Verified::new("s", "k", SignedContent::body_alone(body.into()));
        service.clone().oneshot(request("/hook", verified))
    };
    for body in ["a", "b"] {
        assert_eq!(call(body).await.unwrap().status(), 200);
    }
    for _ in 0..3 {
        let full = call("c").await.unwrap();
        assert_eq!(
            (full.status().as_u16(), rejection(&full)),
            (503, Some(Rejection::StoreFull))
        );
        assert_eq!(full.headers()["retry-after"], "1");
    }
    assert_eq!(runs.count(), 2);
    assert!(is_duplicate(&call("a").await.unwrap()));
    sleep(102 * S).await;
    assert!(!is_duplicate(&call("c").await.unwrap()));
    assert_eq!(runs.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn g03_what_was_not_verified_is_401_and_marks_nothing() {
    let (store, runs) = (Faulty::new(), Runs::default());
    let service = ReplayGuardLayer::events(store.clone()).layer(runs.handler(200, Duration::ZERO));
    let bare = Request::post("/hook").body(Content::default()).unwrap();
    let refused = service.oneshot(bare).await.unwrap();
    assert_eq!(refused.status(), 401);
    assert!(refused.headers().contains_key("www-authenticate"));
    assert_eq!(rejection(&refused), Some(Rejection::Unverified));
    assert!(store.inner.is_empty());
    assert_eq!(runs.count(), 0);
}
