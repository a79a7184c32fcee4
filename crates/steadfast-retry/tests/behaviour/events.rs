//! What the operator hears.

use std::time::Duration;

use http::Method;
use steadfast_core::facts::{Stopped, Throttled};
use steadfast_retry::RateLimitAwareRetryLayer;

use crate::support::{Event, Events, Server, answer, get, keyed, listening, lost, ms, secs};

#[tokio::test(start_paused = true)]
async fn r09_a_call_that_is_given_up_raises_one_event() {
    let events = Events::default();
    let server = Server::script([
        answer(429).retry_after(1),
        answer(503),
        answer(429).retry_after(7),
    ]);
    let call = server.call(listening(&events), keyed()).await;
    assert_eq!(call.summary(), (429, 3, Some(Stopped::Attempts)));
    let expected = Event {
        method: Method::POST,
        host: "api.example".to_owned(),
        status: Some(429),
        attempts: 3,
        reason: Stopped::Attempts,
        retry_after: Some(secs(7)),
        calls: 1,
    };
    assert_eq!(events.all(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn r09_a_lost_call_has_no_status() {
    let events = Events::default();
    let server = Server::script([lost(), lost(), lost()]);
    server
        .call(listening(&events), get())
        .await
        .result
        .unwrap_err();
    assert_eq!(events.all().len(), 1);
    assert_eq!(events.all()[0].status, None);
}

#[tokio::test(start_paused = true)]
async fn r09_a_call_that_succeeds_or_is_final_raises_none() {
    let events = Events::default();
    for last in [200, 404] {
        let server = Server::script([answer(429).retry_after(1), answer(last)]);
        server.call(listening(&events), get()).await;
    }
    assert_eq!(events.all(), []);
}

#[tokio::test(start_paused = true)]
async fn r09_by_default_the_events_of_a_minute_are_one() {
    let events = Events::default();
    let layer = RateLimitAwareRetryLayer::new()
        .retries(0)
        .on_give_up(events.listener());
    for _ in 0..5 {
        let server = Server::script([answer(503)]);
        assert_eq!(
            server.call(layer.clone(), get()).await.stopped(),
            Some(Stopped::Attempts)
        );
    }
    tokio::time::sleep(secs(60)).await;
    let server = Server::script([answer(503)]);
    server.call(layer, get()).await;
    let calls: Vec<_> = events.all().iter().map(|event| event.calls).collect();
    assert_eq!(calls, [1, 5]);
}

#[tokio::test(start_paused = true)]
async fn r09_a_refusal_on_this_side_ends_the_call_and_counts_as_nothing_sent() {
    let events = Events::default();
    let server = Server::script([answer(429)
        .retry_after(9)
        .extension(Throttled::new(secs(9)))]);
    let call = server.call(listening(&events), get()).await;
    assert_eq!(call.stopped(), Some(Stopped::LocalBlock));
    assert_eq!((call.status(), call.report.attempts), (429, 0));
    assert_eq!(call.report.retry_after, Some(secs(9)));
    assert_eq!(call.took, ms(0));
    assert_eq!(events.all().len(), 1);
    assert_eq!(events.all()[0].reason, Stopped::LocalBlock);
    assert_eq!(events.all()[0].attempts, 0);
}

#[tokio::test(start_paused = true)]
async fn r09_a_refusal_on_this_side_after_an_attempt_leaves_that_attempt() {
    let events = Events::default();
    let server = Server::script([
        answer(503).retry_after(1),
        answer(429).extension(Throttled::new(ms(1_500))),
    ]);
    let call = server.call(listening(&events), get()).await;
    assert_eq!(
        (call.report.attempts, call.stopped()),
        (1, Some(Stopped::LocalBlock))
    );
    assert_eq!(call.report.retry_after, Some(Duration::from_millis(1_500)));
}
