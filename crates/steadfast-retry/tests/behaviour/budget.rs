//! What retries may cost.

use steadfast_core::facts::Stopped;
use steadfast_retry::{Budget, RateLimitAwareRetryLayer};
use tower::ServiceExt as _;

use crate::support::{Events, Server, answer, get, listening, lost, secs};

#[tokio::test(start_paused = true)]
async fn r13_a_retry_that_cannot_pay_is_not_made() {
    let events = Events::default();
    let server = Server::script([answer(503), answer(503)]);
    let call = server
        .call(listening(&events).budget(Budget::new().tokens(27)), get())
        .await;
    assert_eq!(call.summary(), (503, 2, Some(Stopped::Budget)));
    assert_eq!(events.all()[0].reason, Stopped::Budget);
    assert_eq!(call.text().await, "this is 503");
}

#[tokio::test(start_paused = true)]
async fn r13_the_default_budget_stops_a_storm() {
    let layer = RateLimitAwareRetryLayer::new();
    let mut sent = 0;
    for _ in 0..100 {
        let server = Server::script((0..3).map(|_| lost()));
        let call = server.call(layer.clone(), get()).await;
        call.result.unwrap_err();
        sent += call.seen.len();
    }
    // 500 tokens pay for 35 retries, whatever the number of calls.
    assert_eq!(sent, 100 + 35);
}

#[tokio::test(start_paused = true)]
async fn r13_a_429_that_names_a_time_is_cheaper() {
    let layer = RateLimitAwareRetryLayer::new().budget(Budget::new().tokens(10));
    let server = Server::script([
        answer(429).retry_after(1),
        answer(429).retry_after(1),
        answer(429),
    ]);
    let call = server.call(layer.clone(), get()).await;
    assert_eq!(call.summary(), (429, 3, Some(Stopped::Attempts)));
    let server = Server::script([answer(429).retry_after(1)]);
    assert_eq!(
        server.call(layer, get()).await.stopped(),
        Some(Stopped::Budget)
    );
}

#[tokio::test(start_paused = true)]
async fn r13_successes_fill_the_budget_again() {
    let layer = RateLimitAwareRetryLayer::new().budget(Budget::new().tokens(14));
    let server = Server::script([answer(503), answer(200)]);
    assert_eq!(server.call(layer.clone(), get()).await.status(), 200);
    for _ in 0..13 {
        // A 404 is an answer, and no sign that the server is well.
        for status in [204, 404] {
            let server = Server::script([answer(status)]);
            assert_eq!(server.call(layer.clone(), get()).await.status(), status);
        }
    }
    let server = Server::script([answer(503), answer(200)]);
    assert_eq!(server.call(layer, get()).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn r13_origins_have_budgets_of_their_own() {
    let layer = RateLimitAwareRetryLayer::new().budget(Budget::new().tokens(14));
    for host in ["https://a.example/", "https://b.example/"] {
        let server = Server::script([answer(503), answer(200)]);
        let mut request = get();
        *request.uri_mut() = host.parse().unwrap();
        assert_eq!(server.call(layer.clone(), request).await.status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn r11_r13_a_retry_that_is_cancelled_in_its_pause_costs_nothing() {
    let layer = RateLimitAwareRetryLayer::new().budget(Budget::new().tokens(14));
    for _ in 0..3 {
        let server = Server::script([answer(503).retry_after(30)]);
        let call = server.service(&layer).oneshot(get());
        tokio::time::timeout(secs(10), call).await.unwrap_err();
    }
    let server = Server::script([answer(503), answer(200)]);
    assert_eq!(server.call(layer, get()).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn r13_without_a_limit_every_retry_is_made() {
    let layer = RateLimitAwareRetryLayer::new().budget(Budget::unlimited());
    for _ in 0..100 {
        let server = Server::script((0..3).map(|_| answer(503)));
        assert_eq!(server.call(layer.clone(), get()).await.seen.len(), 3);
    }
}
