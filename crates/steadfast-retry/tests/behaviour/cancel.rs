//! A call that is dropped ends there and then.

use std::time::Duration;

use http::Request;
use steadfast_core::facts::{CallReport, Outcome, RetryReport, Stopped};
use tower::ServiceExt as _;

use crate::support::{Events, Server, answer, get, hang, listening, ms, secs};

/// Runs a call for `span`, drops it, and lets an hour pass.
async fn cancelled_after(span: Duration, server: &Server, events: &Events) -> RetryReport {
    let report = CallReport::new();
    let mut request: Request<_> = get();
    request.extensions_mut().insert(report.clone());
    let call = server.service(&listening(events)).oneshot(request);
    tokio::time::timeout(span, call).await.unwrap_err();
    server.probe().assert_quiescent();
    tokio::time::sleep(secs(3_600)).await;
    assert_eq!(events.all(), []);
    report.snapshot()
}

#[tokio::test(start_paused = true)]
async fn r11_a_call_dropped_in_its_pause_sends_nothing_more() {
    let events = Events::default();
    let server = Server::script([answer(503).retry_after(30)]);
    let report = cancelled_after(secs(10), &server, &events).await;
    assert_eq!(server.seen().len(), 1);
    assert_eq!(
        (report.attempts, report.stopped),
        (1, Some(Stopped::Cancelled))
    );
    assert_eq!(report.retry_after, Some(secs(30)));
    assert!(matches!(report.outcome, Outcome::Answered(status) if status == 503));
}

#[tokio::test(start_paused = true)]
async fn r11_a_call_dropped_in_its_request_sends_nothing_more() {
    let events = Events::default();
    let server = Server::script([hang()]);
    let report = cancelled_after(secs(10), &server, &events).await;
    assert_eq!(server.seen().len(), 1);
    assert_eq!(
        (report.attempts, report.stopped),
        (1, Some(Stopped::Cancelled))
    );
    assert_eq!(report.outcome, Outcome::Unknown);
}

#[tokio::test(start_paused = true)]
async fn r11_a_call_dropped_in_a_later_request_sends_nothing_more() {
    let events = Events::default();
    let server = Server::script([answer(429).retry_after(1), hang()]);
    let report = cancelled_after(secs(10), &server, &events).await;
    assert_eq!(server.seen().len(), 2);
    assert_eq!(
        (report.attempts, report.stopped),
        (2, Some(Stopped::Cancelled))
    );
    assert_eq!(report.waits, [secs(1)]);
}

#[tokio::test(start_paused = true)]
async fn r11_a_call_dropped_while_it_waits_for_readiness_sends_nothing_more() {
    let events = Events::default();
    let server = Server::script([answer(503).retry_after(1)]);
    let probe = server.probe();
    let block = tokio::spawn(async move {
        tokio::time::sleep(ms(500)).await;
        probe.block();
    });
    let report = cancelled_after(secs(10), &server, &events).await;
    block.await.unwrap();
    assert_eq!(
        (report.attempts, report.stopped),
        (1, Some(Stopped::Cancelled))
    );
}

#[tokio::test(start_paused = true)]
async fn r11_the_callers_own_timeout_is_no_reason_to_repeat() {
    let events = Events::default();
    let server = Server::script([hang()]);
    let call = server.service(&listening(&events)).oneshot(get());
    tokio::time::timeout(ms(1), call).await.unwrap_err();
    tokio::time::sleep(secs(3_600)).await;
    assert_eq!(server.seen().len(), 1);
}
