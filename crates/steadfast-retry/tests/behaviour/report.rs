//! What the caller gets: the real last response or error, and a report.

use http::StatusCode;
use steadfast_core::facts::{CallReport, Outcome, RetryReport, Stopped};
use steadfast_retry::{ErrorClass, RateLimitAwareRetryLayer};
use tower::ServiceExt as _;

use crate::support::{Lost, Server, answer, get, keyed, lost, ms, secs};

#[tokio::test(start_paused = true)]
async fn r15_the_last_response_is_the_real_one() {
    let server = Server::script([
        answer(503).header("x-attempt", "1"),
        answer(502).header("x-attempt", "2"),
        answer(500).header("x-attempt", "3"),
    ]);
    let call = server.call(RateLimitAwareRetryLayer::new(), get()).await;
    assert_eq!(call.summary(), (500, 3, Some(Stopped::Attempts)));
    assert_eq!(call.result.as_ref().unwrap().headers()["x-attempt"], "3");
    assert_eq!(call.text().await, "this is 500");
}

#[tokio::test(start_paused = true)]
async fn r15_the_last_error_is_the_real_one() {
    let server = Server::script([answer(503), answer(503), lost()]);
    let call = server.call(RateLimitAwareRetryLayer::new(), keyed()).await;
    assert_eq!(call.result.unwrap_err(), Lost::Reset);
    assert_eq!(call.report.attempts, 3);
    assert_eq!(call.report.waits.len(), 2);
    assert_eq!(call.report.stopped, Some(Stopped::Attempts));
    assert_eq!(call.report.outcome, Outcome::Unknown);
    assert!(call.report.key.is_some());
}

#[tokio::test(start_paused = true)]
async fn r15_a_response_carries_the_report() {
    let server = Server::script([answer(429).retry_after(2), answer(200)]);
    let response = server
        .service(&RateLimitAwareRetryLayer::new())
        .oneshot(get())
        .await
        .unwrap();
    let report = response.extensions().get::<RetryReport>().unwrap();
    assert_eq!((report.attempts, report.stopped), (2, None));
    assert_eq!(report.waits, [secs(2)]);
    assert_eq!(report.retry_after, None);
    assert_eq!(report.outcome, Outcome::Answered(StatusCode::OK));
}

#[tokio::test(start_paused = true)]
async fn r15_the_report_of_a_single_request_is_whole() {
    for status in [StatusCode::OK, StatusCode::NOT_FOUND] {
        let server = Server::script([answer(status.as_u16())]);
        let response = server
            .service(&RateLimitAwareRetryLayer::new())
            .oneshot(keyed())
            .await
            .unwrap();
        let report = response.extensions().get::<RetryReport>().unwrap();
        assert_eq!((report.attempts, report.stopped), (1, None));
        assert!(report.waits.is_empty());
        assert_eq!(report.retry_after, None);
        assert_eq!(report.outcome, Outcome::Answered(status));
        assert!(report.key.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn r15_the_report_can_be_read_while_the_call_runs() {
    let report = CallReport::new();
    let mut request = get();
    request.extensions_mut().insert(report.clone());
    let server = Server::script([answer(503).retry_after(10), answer(200).after(secs(5))]);
    let call = server
        .service(&RateLimitAwareRetryLayer::new())
        .oneshot(request);
    let call = tokio::spawn(call);

    tokio::time::sleep(secs(5)).await;
    let paused = report.snapshot();
    assert_eq!((paused.attempts, paused.retry_after), (1, Some(secs(10))));
    assert_eq!(paused.waits, [secs(10)]);
    assert_eq!(
        paused.outcome,
        Outcome::Answered(StatusCode::SERVICE_UNAVAILABLE)
    );
    tokio::time::sleep(secs(7)).await;
    let running = report.snapshot();
    assert_eq!((running.attempts, running.outcome), (2, Outcome::Pending));
    let response = call.await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    let carried = response.extensions().get::<RetryReport>().unwrap();
    assert_eq!((carried.attempts, report.snapshot().attempts), (2, 2));
    let handle = response.extensions().get::<CallReport>().unwrap();
    assert_eq!(handle.snapshot().waits, [secs(10)]);
}

#[tokio::test(start_paused = true)]
async fn r15_a_handle_that_served_before_starts_anew() {
    let report = CallReport::new();
    for _ in 0..2 {
        let mut request = get();
        request.extensions_mut().insert(report.clone());
        let server = Server::script([answer(503).retry_after(1), answer(200)]);
        server
            .service(&RateLimitAwareRetryLayer::new())
            .oneshot(request)
            .await
            .unwrap();
        assert_eq!(report.snapshot().attempts, 2);
        assert_eq!(report.snapshot().waits.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_the_caller_calls_final_is_not_repeated() {
    let server = Server::script([lost()]);
    let layer = RateLimitAwareRetryLayer::new().classify_error(|error: &Lost| match *error {
        Lost::Reset => ErrorClass::Final,
        Lost::Cut => ErrorClass::Unknown,
    });
    let call = server.call(layer, get()).await;
    assert_eq!(call.result.unwrap_err(), Lost::Reset);
    assert_eq!((call.report.attempts, call.report.stopped), (1, None));
    assert_eq!(call.took, ms(0));
}

#[tokio::test(start_paused = true)]
async fn every_attempt_carries_the_extensions_of_the_request() {
    let mut request = get();
    request.extensions_mut().insert(7_u8);
    let server = Server::script([answer(503), answer(200)]);
    let call = server.call(RateLimitAwareRetryLayer::new(), request).await;
    for seen in &call.seen {
        assert_eq!(seen.extensions.get(), Some(&7_u8));
    }
    assert_eq!(call.seen.len(), 2);
}
