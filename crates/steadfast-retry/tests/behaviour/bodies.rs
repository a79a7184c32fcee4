//! Request bodies: sent again byte for byte, or not at all.

use std::{
    convert::Infallible,
    io,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, channel::Channel};
use steadfast_core::{
    ReplayBody,
    facts::{OperationClass, RetryReport, Stopped},
};
use steadfast_retry::RateLimitAwareRetryLayer;
use steadfast_testing::ServiceProbe;
use tower::{Layer as _, ServiceExt as _};

use crate::support::{Server, answer, keyed, request};

fn large() -> Bytes {
    (0..64 * 1024_u32)
        .map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1])
        .collect()
}

fn keyed_with(body: Bytes) -> Request<Full<Bytes>> {
    keyed().map(|_| Full::new(body))
}

#[tokio::test(start_paused = true)]
async fn d6_64_kib_without_a_key_are_sent_once() {
    let server = Server::script([answer(503)]);
    let call = server
        .call(
            RateLimitAwareRetryLayer::new(),
            request(Method::POST, large()),
        )
        .await;
    assert_eq!(call.summary(), (503, 1, Some(Stopped::NotRepeatable)));
    assert_eq!(call.seen[0].body.as_ref().unwrap(), &large());
    assert_eq!(call.text().await, "this is 503");
}

#[tokio::test(start_paused = true)]
async fn d6_c4_64_kib_with_a_key_are_sent_again_byte_for_byte() {
    let server = Server::script([answer(503), answer(200)]);
    let call = server
        .call(RateLimitAwareRetryLayer::new(), keyed_with(large()))
        .await;
    assert_eq!(call.summary(), (200, 2, None));
    for seen in &call.seen {
        assert_eq!(seen.body.as_ref().unwrap(), &large());
    }
    assert_eq!(call.seen[0].headers, call.seen[1].headers);
}

#[tokio::test(start_paused = true)]
async fn d6_c4_a_body_over_the_cap_is_sent_whole_and_once() {
    let server = Server::script([answer(503)]);
    let layer = RateLimitAwareRetryLayer::new().replay_cap(64 * 1024 - 1);
    let call = server.call(layer, keyed_with(large())).await;
    assert_eq!(call.summary(), (503, 1, Some(Stopped::NotRepeatable)));
    assert_eq!(call.seen[0].body.as_ref().unwrap(), &large());
    assert_eq!(call.text().await, "this is 503");
}

#[tokio::test(start_paused = true)]
async fn c4_a_megabyte_is_kept_by_default_and_no_more() {
    for (len, attempts) in [(1024 * 1024, 2), (1024 * 1024 + 1, 1)] {
        let server = Server::script([answer(503), answer(200)]);
        let body = Bytes::from(vec![b'x'; len]);
        let call = server
            .call(RateLimitAwareRetryLayer::new(), keyed_with(body))
            .await;
        assert_eq!(call.seen.len(), attempts, "{len}");
    }
}

type Streaming = Channel<Bytes, io::Error>;

/// A POST that may be repeated, of a body that is still being made.
fn streaming(body: Streaming) -> Request<Streaming> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    request
        .extensions_mut()
        .insert(OperationClass::NaturallyIdempotent);
    request
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

#[tokio::test(start_paused = true)]
async fn c4_an_early_503_leaves_the_rest_of_the_body_to_the_next_attempt() {
    let (mut sender, body) = Channel::new(8);
    let attempts = AtomicU32::new(0);
    let (sent, mut received) = tokio::sync::mpsc::unbounded_channel();
    let server = ServiceProbe::new(move |request: Request<ReplayBody<Streaming>>| {
        let first = attempts.fetch_add(1, Ordering::SeqCst) == 0;
        let sent = sent.clone();
        async move {
            let mut body = request.into_body();
            if first {
                let frame = body.frame().await.unwrap().unwrap();
                assert_eq!(frame.into_data().unwrap(), "one ");
                // The rest is not read: the connection still holds the body while it answers.
                tokio::spawn(async move {
                    let broken_off = loop {
                        match body.frame().await {
                            Some(Ok(_)) => {}
                            Some(Err(error)) => break error.to_string(),
                            None => break "it ended".to_owned(),
                        }
                    };
                    sent.send(broken_off).unwrap();
                });
                return Ok::<_, Infallible>(status(StatusCode::SERVICE_UNAVAILABLE));
            }
            let bytes = body.collect().await.unwrap().to_bytes();
            sent.send(String::from_utf8(bytes.into()).unwrap()).unwrap();
            Ok(status(StatusCode::OK))
        }
    });
    let service = RateLimitAwareRetryLayer::new().layer(server);
    let call = tokio::spawn(service.oneshot(streaming(body)));

    sender.send_data("one ".into()).await.unwrap();
    // The retry has begun before the caller is done with the body.
    tokio::time::sleep(Duration::from_secs(2)).await;
    sender.send_data("two ".into()).await.unwrap();
    sender.send_data("three".into()).await.unwrap();
    drop(sender);

    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    let mut outcomes = [
        received.recv().await.unwrap(),
        received.recv().await.unwrap(),
    ];
    outcomes.sort();
    assert_eq!(
        outcomes,
        ["a newer attempt sends this request body", "one two three"]
    );
}

#[tokio::test(start_paused = true)]
async fn c4_a_streamed_body_that_grows_over_the_cap_is_not_sent_again() {
    let (mut sender, body) = Channel::new(8);
    for _ in 0..4 {
        sender
            .try_send(Frame::data(Bytes::from_static(b"abcd")))
            .unwrap();
    }
    drop(sender);
    let server = ServiceProbe::new(|request: Request<ReplayBody<Streaming>>| async move {
        let bytes = request.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(bytes.len(), 16);
        Ok::<_, Infallible>(status(StatusCode::SERVICE_UNAVAILABLE))
    });
    let service = RateLimitAwareRetryLayer::new().replay_cap(15).layer(server);
    let response = service.oneshot(streaming(body)).await.unwrap();
    let report = response.extensions().get::<RetryReport>().unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(
        (report.attempts, report.stopped),
        (1, Some(Stopped::NotRepeatable))
    );
}

#[tokio::test(start_paused = true)]
async fn c4_a_body_that_failed_on_this_side_is_not_sent_again() {
    let (sender, body) = Channel::new(8);
    sender.abort(io::Error::other("disk"));
    let server = ServiceProbe::<_, Full<Bytes>, _>::new(
        |request: Request<ReplayBody<Streaming>>| async move {
            let error = request.into_body().collect().await.unwrap_err();
            Err(error.to_string())
        },
    );
    let handle = server.handle();
    let service = RateLimitAwareRetryLayer::new().layer(server);
    assert_eq!(service.oneshot(streaming(body)).await.unwrap_err(), "disk");
    assert_eq!(handle.calls(), 1);
}
