//! Which calls are repeated at all.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::SystemTime,
};

use http::Method;
use steadfast_core::{
    Clock, Operations, RoutePattern,
    facts::{KeyCreated, OperationClass, Stopped},
};
use steadfast_retry::RateLimitAwareRetryLayer;
use tower::ServiceExt as _;

use crate::support::{
    Events, Lost, Server, answer, get, keyed, listening, lost, ms, post, request, secs,
};

#[tokio::test(start_paused = true)]
async fn r01_a_write_without_a_key_is_sent_once() {
    for method in [Method::POST, Method::PATCH, Method::PUT, Method::DELETE] {
        let events = Events::default();
        let server = Server::script([answer(503)]);
        let call = server.call(listening(&events), request(method, "a")).await;
        assert_eq!(call.summary(), (503, 1, Some(Stopped::NotRepeatable)));
        assert_eq!(call.took, ms(0));
        assert_eq!(events.all().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn r01_a_write_without_a_key_returns_its_error() {
    let server = Server::script([lost()]);
    let call = server.call(RateLimitAwareRetryLayer::new(), post()).await;
    assert_eq!(call.result.unwrap_err(), Lost::Reset);
    assert_eq!(call.report.stopped, Some(Stopped::NotRepeatable));
}

#[tokio::test(start_paused = true)]
async fn r01_reads_are_repeated() {
    for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
        let server = Server::script([answer(503), answer(200)]);
        let call = server
            .call(RateLimitAwareRetryLayer::new(), request(method, ""))
            .await;
        assert_eq!(call.summary(), (200, 2, None));
    }
}

#[tokio::test(start_paused = true)]
async fn r01_a_key_makes_a_write_repeatable_with_the_same_key() {
    let server = Server::script([answer(503), answer(200)]);
    let call = server.call(RateLimitAwareRetryLayer::new(), keyed()).await;
    assert_eq!(call.summary(), (200, 2, None));
    let keys: Vec<_> = call
        .seen
        .iter()
        .map(|seen| &seen.headers["idempotency-key"])
        .collect();
    assert_eq!(keys[0], keys[1]);
    let reported = call.report.key.expect("the report carries the key");
    assert_eq!(*keys[0], reported.to_header_value());
}

#[tokio::test(start_paused = true)]
async fn r01_a_request_declares_itself_repeatable() {
    let mut request = post();
    request
        .extensions_mut()
        .insert(OperationClass::NaturallyIdempotent);
    let server = Server::script([answer(503), answer(200)]);
    let call = server.call(RateLimitAwareRetryLayer::new(), request).await;
    assert_eq!(call.summary(), (200, 2, None));
}

#[tokio::test(start_paused = true)]
async fn c3_not_repeatable_beats_any_key_and_any_method() {
    for mut request in [keyed(), get()] {
        request
            .extensions_mut()
            .insert(OperationClass::NotRepeatable);
        let server = Server::script([answer(503)]);
        let call = server.call(RateLimitAwareRetryLayer::new(), request).await;
        assert_eq!(call.summary(), (503, 1, Some(Stopped::NotRepeatable)));
    }
}

#[tokio::test(start_paused = true)]
async fn r01_a_route_table_declares_operations() {
    let layer = || {
        let route = |pattern| RoutePattern::parse(pattern).unwrap();
        RateLimitAwareRetryLayer::new().operations(
            Operations::new()
                .route(
                    Method::POST,
                    route("/v1/emails"),
                    OperationClass::NaturallyIdempotent,
                )
                .route(Method::GET, route("/v1/*"), OperationClass::NotRepeatable),
        )
    };
    let server = Server::script([answer(503), answer(200)]);
    assert_eq!(server.call(layer(), post()).await.summary(), (200, 2, None));
    let server = Server::script([answer(503)]);
    let call = server.call(layer(), get()).await;
    assert_eq!(call.summary(), (503, 1, Some(Stopped::NotRepeatable)));
}

#[tokio::test(start_paused = true)]
async fn i05_a_key_of_yesterday_is_not_sent_again_unasked() {
    let created = SystemTime::UNIX_EPOCH + secs(1_768_478_400);
    let day = 24 * 60 * 60;
    for (age, attempts, stopped) in [
        (day - 3_602, 2, None),
        (day, 1, Some(Stopped::NotRepeatable)),
    ] {
        let mut request = keyed();
        request.extensions_mut().insert(KeyCreated(created));
        let server = Server::script([answer(429).retry_after(1), answer(200)]);
        let clock = Clock::from_fn(move || created + secs(age));
        let call = server
            .call(RateLimitAwareRetryLayer::new().clock(clock), request)
            .await;
        assert_eq!(
            (call.seen.len(), call.report.stopped),
            (attempts, stopped),
            "{age}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn i05_the_age_is_settable() {
    let mut request = keyed();
    request
        .extensions_mut()
        .insert(KeyCreated(SystemTime::UNIX_EPOCH));
    let server = Server::script([answer(503)]);
    let layer = RateLimitAwareRetryLayer::new()
        .max_key_age(secs(60))
        .clock(Clock::from_fn(|| SystemTime::UNIX_EPOCH + secs(61)));
    let call = server.call(layer, request).await;
    assert_eq!(call.summary(), (503, 1, Some(Stopped::NotRepeatable)));
}

#[tokio::test(start_paused = true)]
async fn r09_a_429_to_a_call_that_may_not_be_repeated_is_not_swallowed() {
    let events = Events::default();
    let server = Server::script([answer(429).retry_after(90)]);
    let call = server.call(listening(&events), post()).await;
    assert_eq!(call.summary(), (429, 1, Some(Stopped::NotRepeatable)));
    assert_eq!(events.all()[0].retry_after, Some(secs(90)));
}

/// Counts how often the request that carries it is copied.
#[derive(Debug, Default)]
struct Copies(Arc<AtomicU32>);

impl Clone for Copies {
    fn clone(&self) -> Self {
        self.0.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

#[tokio::test(start_paused = true)]
async fn r01_a_call_that_is_sent_once_is_not_copied() {
    for (mut request, expected) in [(post(), 0), (get(), 1)] {
        let copies = Copies::default();
        let count = Arc::clone(&copies.0);
        request.extensions_mut().insert(copies);
        let server = Server::script([answer(200)]);
        let client = server.service(&RateLimitAwareRetryLayer::new());
        client.oneshot(request).await.unwrap();
        // The server's own record of it is a move.
        assert_eq!(count.load(Ordering::Relaxed), expected);
    }
}
