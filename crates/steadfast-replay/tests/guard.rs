//! What the two modes do with requests.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use steadfast_core::{
    Body, Clock,
    facts::{Freshness, MessageId, SignedContent, Verified},
};
use steadfast_replay::{Duplicate, MemoryStore, Rejection, ReplayGuardLayer};
use steadfast_testing::{ServiceProbe, assert_error, assert_service_contract, poll_times};
use tokio::{task::JoinSet, time::sleep};
use tower::{Layer as _, ServiceExt as _};

type Probe = ServiceProbe<Full<Bytes>, Full<Bytes>>;
type Answer = Response<Body<Full<Bytes>>>;

fn status(status: u16) -> Probe {
    ServiceProbe::respond(move |_| {
        Response::builder()
            .status(status)
            .body(Full::default())
            .unwrap()
    })
}

fn request(path: &str, verified: Verified) -> Request<Full<Bytes>> {
    let request = Request::post(path).extension(verified);
    request.body(Full::default()).unwrap()
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn signed(content: &'static str) -> Verified {
    let freshness = Freshness::new(at(100), at(130), Clock::from_fn(|| at(100)));
    Verified::new("s", "k", SignedContent::body_alone(content.into())).fresh(freshness)
}

fn event(id: Option<MessageId>, body: &'static str) -> Verified {
    let verified = Verified::new("s", "k", SignedContent::body_alone(body.into()));
    match id {
        Some(id) => verified.with_id(id),
        None => verified,
    }
}

fn unsigned(id: &'static str) -> Option<MessageId> {
    Some(MessageId::unsigned(id.into()))
}

fn rejection(response: &Answer) -> Option<Rejection> {
    response.extensions().get().copied()
}

fn is_duplicate(response: &Answer) -> bool {
    response.status() == 200
        && response.headers().contains_key("event-duplicate")
        && response.extensions().get::<Duplicate>().is_some()
}

#[tokio::test]
async fn g01_a_signed_request_is_good_once_also_when_its_handler_failed() {
    let probe = status(500);
    let seen = probe.handle();
    let service = ReplayGuardLayer::one_shot(MemoryStore::new(10)).layer(probe);
    let call = |content| service.clone().oneshot(request("/", signed(content)));
    assert_eq!(call("a").await.unwrap().status(), 500);
    let again = call("a").await.unwrap();
    assert_eq!(again.status(), 401);
    assert_eq!(again.headers()["www-authenticate"], "Signature");
    assert_eq!(rejection(&again), Some(Rejection::Replayed));
    let body = again.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "Request signature has already been used");
    assert_eq!(call("b").await.unwrap().status(), 500);
    assert_eq!(seen.calls(), 2);
    drop(service);
    seen.assert_quiescent();
}

#[tokio::test]
async fn g01_what_was_not_verified_or_not_dated_is_refused() {
    let layer = ReplayGuardLayer::one_shot(MemoryStore::new(10));
    let bare = Request::post("/").body(Full::default()).unwrap();
    let answer = layer.layer(status(200)).oneshot(bare).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), rejection(&answer)),
        (401, Some(Rejection::Unverified))
    );
    let undated = || request("/", event(None, "a"));
    let answer = layer.layer(status(200)).oneshot(undated()).await.unwrap();
    assert_eq!(rejection(&answer), Some(Rejection::Undated));
    let service = layer
        .insecure_retain_undated(Duration::from_secs(60))
        .layer(status(200));
    assert_eq!(
        service.clone().oneshot(undated()).await.unwrap().status(),
        200
    );
    assert_eq!(service.oneshot(undated()).await.unwrap().status(), 401);
    let bare = Request::post("/").body(Full::default()).unwrap();
    let events = ReplayGuardLayer::events(MemoryStore::new(10)).layer(status(200));
    assert_eq!(events.oneshot(bare).await.unwrap().status(), 401);
}

#[tokio::test]
async fn g01_a_full_store_answers_503_with_a_wait() {
    let service = ReplayGuardLayer::one_shot(MemoryStore::new(1)).layer(status(200));
    let call = |content| service.clone().oneshot(request("/", signed(content)));
    assert_eq!(call("a").await.unwrap().status(), 200);
    let full = call("b").await.unwrap();
    assert_eq!(
        (full.status().as_u16(), rejection(&full)),
        (503, Some(Rejection::StoreFull))
    );
    assert_eq!(full.headers()["retry-after"], "1");
    assert_eq!(call("a").await.unwrap().status(), 401);
}

#[tokio::test]
async fn a_handshake_is_skipped() {
    let bare = || Request::get("/").body(Full::default()).unwrap();
    let skip = |parts: &http::request::Parts| parts.method == http::Method::GET;
    let one_shot = ReplayGuardLayer::one_shot(MemoryStore::new(1)).skip_when(skip);
    assert_eq!(
        one_shot
            .layer(status(200))
            .oneshot(bare())
            .await
            .unwrap()
            .status(),
        200
    );
    let events = ReplayGuardLayer::events(MemoryStore::new(1)).skip_when(skip);
    assert_eq!(
        events
            .layer(status(200))
            .oneshot(bare())
            .await
            .unwrap()
            .status(),
        200
    );
}

#[test]
fn it_is_clone_send_sync_and_static_and_changes_no_error() {
    let one_shot = ReplayGuardLayer::one_shot(MemoryStore::new(1)).layer(status(200));
    assert_service_contract::<_, Request<Full<Bytes>>>(&one_shot);
    assert_error::<_, Request<Full<Bytes>>, Infallible>(&one_shot);
    let events = ReplayGuardLayer::events(MemoryStore::new(1)).layer(status(200));
    assert_service_contract::<_, Request<Full<Bytes>>>(&events);
    assert_error::<_, Request<Full<Bytes>>, Infallible>(&events);
}

#[tokio::test]
async fn g03_an_event_is_processed_once_by_id_or_body_and_path() {
    let probe = status(204);
    let seen = probe.handle();
    let service = ReplayGuardLayer::events(MemoryStore::new(100)).layer(probe);
    let call = |path, id, body| service.clone().oneshot(request(path, event(id, body)));
    assert_eq!(call("/a", unsigned("1"), "x").await.unwrap().status(), 204);
    for (id, body) in [("1", "x"), ("2", "x"), ("1", "y")] {
        assert!(is_duplicate(&call("/a", unsigned(id), body).await.unwrap()));
    }
    assert!(is_duplicate(&call("/a", None, "x").await.unwrap()));
    assert_eq!(call("/b", unsigned("1"), "x").await.unwrap().status(), 204);
    assert_eq!(call("/a", unsigned("2"), "y").await.unwrap().status(), 204);
    assert_eq!(seen.calls(), 3);
}

#[tokio::test]
async fn g04_an_event_that_failed_is_processed_again() {
    let store = MemoryStore::new(10);
    let layer = ReplayGuardLayer::events(store.clone());
    let delivery = || request("/a", event(unsigned("1"), "x"));
    let failed = layer.layer(status(500)).oneshot(delivery()).await.unwrap();
    assert_eq!(failed.status(), 500);
    let panicking: Probe = ServiceProbe::new(|_| async { panic!("the handler panicked") });
    let panicked = tokio::spawn(layer.layer(panicking).oneshot(delivery())).await;
    assert!(panicked.unwrap_err().is_panic());
    assert!(store.is_empty());
    let done = layer.layer(status(200)).oneshot(delivery()).await.unwrap();
    assert!(done.status() == 200 && !is_duplicate(&done));
    assert!(is_duplicate(
        &layer.layer(status(200)).oneshot(delivery()).await.unwrap()
    ));
}

/// Takes a minute, and counts its runs.
fn slow(runs: &Arc<AtomicUsize>) -> Probe {
    let runs = Arc::clone(runs);
    ServiceProbe::new(move |_| {
        runs.fetch_add(1, Ordering::Relaxed);
        async {
            sleep(Duration::from_secs(60)).await;
            Ok(Response::new(Full::default()))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn g03_fifty_racing_duplicates_are_one_run_and_never_200_before_it_is_done() {
    let runs = Arc::default();
    let service = ReplayGuardLayer::events(MemoryStore::new(10)).layer(slow(&runs));
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        calls.spawn(
            service
                .clone()
                .oneshot(request("/a", event(unsigned("1"), "x"))),
        );
    }
    let answers = calls.join_all().await;
    let running = answers
        .iter()
        .flatten()
        .filter(|answer| answer.status() == 409 && answer.headers()["retry-after"] == "1");
    assert_eq!(running.count(), 49);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn g03_g04_a_sender_that_goes_away_neither_loses_nor_doubles_its_event() {
    let runs = Arc::default();
    let layer = ReplayGuardLayer::events(MemoryStore::new(10));
    let service = layer.layer(slow(&runs));
    let call = || {
        service
            .clone()
            .oneshot(request("/a", event(unsigned("1"), "x")))
    };
    assert!(poll_times(call(), 2).await.is_none());
    sleep(Duration::from_secs(50)).await;
    // Past the lease of 30 s, which is renewed.
    assert_eq!(call().await.unwrap().status(), 409);
    let drained = layer.drain().wait(Duration::from_secs(600)).await;
    assert_eq!(drained, steadfast_replay::Drained::All);
    assert!(is_duplicate(&call().await.unwrap()));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}
