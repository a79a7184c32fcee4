//! Response bodies: streamed or read ahead, and what becomes of those nobody reads.

use http::HeaderMap;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use steadfast_core::facts::Stopped;
use steadfast_retry::RateLimitAwareRetryLayer;
use steadfast_testing::ChunkedBody;

use crate::support::{Answer, Lost, Server, answer, get, ms, post, secs};

fn cut(status: u16) -> Answer {
    answer(status).body(ChunkedBody::new(["some of "]).error(Lost::Cut))
}

fn hung(status: u16) -> Answer {
    answer(status).body(ChunkedBody::new(["some of "]).stall())
}

fn buffering() -> RateLimitAwareRetryLayer {
    RateLimitAwareRetryLayer::new()
        .buffer_response(1024)
        .attempt_timeout(secs(5))
}

#[tokio::test(start_paused = true)]
async fn r10_without_buffering_an_attempt_ends_at_the_head() {
    for answer in [cut(200), hung(200)] {
        let server = Server::script([answer]);
        let layer = RateLimitAwareRetryLayer::new().attempt_timeout(secs(5));
        let call = server.call(layer, get()).await;
        assert_eq!(call.summary(), (200, 1, None));
    }
}

#[tokio::test(start_paused = true)]
async fn r02_a_response_that_breaks_off_is_a_network_failure() {
    let server = Server::script([cut(200), answer(200)]);
    let call = server.call(buffering(), get()).await;
    assert_eq!(call.summary(), (200, 2, None));
    assert_eq!(call.text().await, "this is 200");
}

#[tokio::test(start_paused = true)]
async fn r15_a_response_that_breaks_off_at_the_end_is_never_made_whole() {
    let server = Server::script([cut(200)]);
    let call = server.call(buffering(), post()).await;
    assert_eq!(call.summary(), (200, 1, Some(Stopped::NotRepeatable)));
    let mut body = call.result.unwrap().into_body();
    assert_eq!(body.size_hint().exact(), None);
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "some of "
    );
    assert_eq!(body.frame().await.unwrap().unwrap_err(), Lost::Cut);
}

#[tokio::test(start_paused = true)]
async fn r10_a_response_that_hangs_is_timed_out_and_repeated() {
    let server = Server::script([hung(200), answer(200)]);
    let call = server.call(buffering(), get()).await;
    assert_eq!(call.summary(), (200, 2, None));
    assert_eq!(call.times()[1], secs(5) + call.report.waits[0]);
}

#[tokio::test(start_paused = true)]
async fn a_response_over_the_cap_streams() {
    let chunks = vec![vec![b'a'; 600]; 3];
    let server =
        Server::script([answer(200).body(ChunkedBody::new(chunks.clone()).error(Lost::Cut))]);
    let call = server.call(buffering(), get()).await;
    assert_eq!(call.summary(), (200, 1, None));
    let mut body = call.result.unwrap().into_body();
    let mut read = 0;
    let error = loop {
        match body.frame().await.unwrap() {
            Ok(frame) => read += frame.into_data().unwrap().len(),
            Err(error) => break error,
        }
    };
    assert_eq!((read, error), (1_800, Lost::Cut));
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_events_is_not_read_ahead() {
    for kind in [
        "text/event-stream",
        "Text/Event-Stream; charset=utf-8",
        "multipart/x-mixed-replace;boundary=x",
    ] {
        let server = Server::script([hung(200).header("content-type", kind)]);
        let call = server.call(buffering(), get()).await;
        assert_eq!(call.summary(), (200, 1, None), "{kind}");
        assert_eq!(call.took, ms(0));
    }
}

#[tokio::test(start_paused = true)]
async fn trailers_survive_with_and_without_buffering() {
    let trailers = HeaderMap::from_iter([(http::header::ETAG, "1".parse().unwrap())]);
    for layer in [RateLimitAwareRetryLayer::new(), buffering()] {
        let server = Server::script([
            answer(200).body(ChunkedBody::new(["a", "b"]).trailers(trailers.clone()))
        ]);
        let call = server.call(layer, get()).await;
        let collected = call.result.unwrap().into_body().collect().await.unwrap();
        assert_eq!(collected.trailers(), Some(&trailers));
        assert_eq!(collected.to_bytes(), "ab");
    }
}

#[tokio::test(start_paused = true)]
async fn a_discarded_response_is_read_to_its_end_so_that_its_connection_can_be_used_again() {
    let discarded = answer(503).body(ChunkedBody::new(vec![vec![0; 16 * 1024]; 4]).pending());
    let meter = discarded.meter();
    let server = Server::script([discarded, answer(200)]);
    let call = server.call(RateLimitAwareRetryLayer::new(), get()).await;
    assert_eq!(call.summary(), (200, 2, None));
    assert!(meter.is_ended() && meter.is_dropped());
}

#[tokio::test(start_paused = true)]
async fn a_long_discarded_response_is_not_read_to_its_end() {
    let discarded = answer(503).body(ChunkedBody::new(vec![vec![0; 16 * 1024]; 100]));
    let meter = discarded.meter();
    let server = Server::script([discarded, answer(200)]);
    let call = server.call(RateLimitAwareRetryLayer::new(), get()).await;
    assert_eq!(call.summary(), (200, 2, None));
    assert!(meter.is_dropped() && !meter.is_ended());
    assert_eq!(
        meter.frames(),
        5,
        "four frames are 64 KiB, and the fifth is too much"
    );
}

#[tokio::test(start_paused = true)]
async fn a_discarded_response_that_hangs_neither_delays_nor_holds_its_connection() {
    for wait in [0, 30] {
        let discarded = hung(503).retry_after(wait);
        let meter = discarded.meter();
        let server = Server::script([discarded, answer(200)]);
        let call = tokio::spawn({
            let server = server.clone();
            async move { server.call(RateLimitAwareRetryLayer::new(), get()).await }
        });
        tokio::time::sleep(ms(1_001)).await;
        assert!(meter.is_dropped(), "{wait}");
        let call = call.await.unwrap();
        assert_eq!(call.times(), [secs(0), secs(wait)]);
    }
}
