//! Timeouts of an attempt, and the deadline of a call.

use http::header;
use steadfast_core::facts::{Outcome, Stopped};
use steadfast_retry::{RateLimitAwareRetryLayer, Rejection};
use steadfast_testing::ChunkedBody;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

use crate::support::{
    Events, Lost, Server, answer, get, hang, keyed, listening, lost, ms, post, secs,
};

#[tokio::test(start_paused = true)]
async fn r10_each_attempt_is_bounded_and_the_call_takes_three_and_the_pauses() {
    let events = Events::default();
    let server = Server::script([hang(), hang(), hang()]);
    let call = server
        .call(listening(&events).attempt_timeout(secs(5)), keyed())
        .await;

    assert_eq!(call.summary(), (504, 3, Some(Stopped::Attempts)));
    let pauses = call.report.waits.iter().sum::<std::time::Duration>();
    assert_eq!(call.report.waits.len(), 2);
    assert_eq!(call.took, secs(15) + pauses);
    assert_eq!(call.report.outcome, Outcome::Unknown);
    assert_eq!(events.all().len(), 1);
    assert_eq!(events.all()[0].status, Some(504));
}

#[tokio::test(start_paused = true)]
async fn r10_a_timeout_at_the_end_is_a_504_that_says_who_made_it() {
    let server = Server::script([hang()]);
    let layer = RateLimitAwareRetryLayer::new()
        .attempt_timeout(secs(5))
        .retries(0);
    let call = server.call(layer, keyed()).await;
    let response = call.result.as_ref().unwrap();
    assert_eq!(
        response.extensions().get(),
        Some(&Rejection::AttemptTimeout)
    );
    assert_eq!(
        response.headers()[header::CONTENT_TYPE],
        "application/problem+json"
    );
    let text = call.text().await;
    assert!(text.contains("\"code\":\"attempt_timeout\""), "{text}");
    assert!(text.contains("\"retryable\":true"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn r10_a_write_that_timed_out_may_have_had_its_effect_and_is_not_repeated() {
    let server = Server::script([hang()]);
    let layer = RateLimitAwareRetryLayer::new().attempt_timeout(secs(5));
    let call = server.call(layer, post()).await;
    assert_eq!(call.summary(), (504, 1, Some(Stopped::NotRepeatable)));
    assert_eq!(call.took, secs(5));
    assert!(call.text().await.contains("\"retryable\":false"));
}

#[tokio::test(start_paused = true)]
async fn r10_an_answer_in_time_is_no_timeout() {
    let server = Server::script([answer(200).after(ms(4_999))]);
    let layer = RateLimitAwareRetryLayer::new().attempt_timeout(secs(5));
    assert_eq!(server.call(layer, get()).await.summary(), (200, 1, None));
}

#[tokio::test(start_paused = true)]
async fn r10_towers_own_timeout_inside_counts_as_one() {
    let server = Server::script([]);
    let inner = ServiceBuilder::new()
        .map_err(|error: BoxError| error)
        .layer(RateLimitAwareRetryLayer::new().retries(1))
        .timeout(secs(5))
        .service_fn(|_request| async {
            std::future::pending::<()>().await;
            Ok::<_, BoxError>(http::Response::new(ChunkedBody::<Lost>::new(["a"])))
        });
    let error = inner.oneshot(get()).await.unwrap_err();
    assert!(error.is::<tower::timeout::error::Elapsed>());
    assert!((secs(10)..secs(11)).contains(&server.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn r10_a_wait_that_would_pass_the_deadline_is_not_begun() {
    let events = Events::default();
    let server = Server::script([answer(503).retry_after(20)]);
    let call = server
        .call(listening(&events).deadline(secs(20)), get())
        .await;
    assert_eq!(call.summary(), (503, 1, Some(Stopped::Deadline)));
    assert_eq!(call.took, ms(0));
    assert_eq!(call.report.waits, []);
    assert_eq!(events.all()[0].reason, Stopped::Deadline);
    assert_eq!(call.text().await, "this is 503");
}

#[tokio::test(start_paused = true)]
async fn r10_a_wait_that_ends_before_the_deadline_is_begun() {
    let server = Server::script([answer(503).retry_after(20), answer(200)]);
    let layer = RateLimitAwareRetryLayer::new().deadline(ms(20_001));
    assert_eq!(server.call(layer, get()).await.summary(), (200, 2, None));
}

#[tokio::test(start_paused = true)]
async fn r10_past_the_deadline_the_last_error_is_returned() {
    let server = Server::script([lost()]);
    let call = server
        .call(RateLimitAwareRetryLayer::new().deadline(ms(100)), get())
        .await;
    assert_eq!(call.result.unwrap_err(), Lost::Reset);
    assert_eq!(call.report.stopped, Some(Stopped::Deadline));
}

#[tokio::test(start_paused = true)]
async fn r10_the_deadline_ends_a_running_attempt() {
    let events = Events::default();
    let server = Server::script([answer(503).retry_after(3), hang()]);
    let call = server
        .call(listening(&events).deadline(secs(10)), get())
        .await;

    assert_eq!(call.summary(), (504, 2, Some(Stopped::Deadline)));
    assert_eq!(call.took, secs(10));
    assert_eq!(call.report.outcome, Outcome::Unknown);
    assert_eq!(events.all().len(), 1);
    assert_eq!(events.all()[0].attempts, 2);
    let response = call.result.as_ref().unwrap();
    assert_eq!(response.extensions().get(), Some(&Rejection::Deadline));
    assert!(call.text().await.contains("\"code\":\"deadline_passed\""));
}

#[tokio::test(start_paused = true)]
async fn r10_the_deadline_ends_a_wait_for_readiness() {
    let server = Server::script([answer(503).retry_after(3)]);
    let probe = server.probe();
    tokio::spawn(async move {
        tokio::time::sleep(secs(1)).await;
        probe.block();
    });
    let call = server
        .call(RateLimitAwareRetryLayer::new().deadline(secs(10)), get())
        .await;
    assert_eq!(call.summary(), (504, 1, Some(Stopped::Deadline)));
    assert_eq!(call.took, secs(10));
}

#[tokio::test(start_paused = true)]
async fn r10_an_attempt_timeout_and_a_deadline_go_together() {
    let server = Server::script([hang(), hang()]);
    let layer = RateLimitAwareRetryLayer::new()
        .attempt_timeout(secs(5))
        .deadline(secs(9));
    let call = server.call(layer, get()).await;
    assert_eq!(call.summary(), (504, 2, Some(Stopped::Deadline)));
    assert_eq!(call.took, secs(9));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_beyond_the_end_of_time_is_none() {
    let server = Server::script([answer(503), answer(200)]);
    let layer = RateLimitAwareRetryLayer::new()
        .deadline(std::time::Duration::MAX)
        .attempt_timeout(std::time::Duration::MAX);
    assert_eq!(server.call(layer, get()).await.summary(), (200, 2, None));
}
