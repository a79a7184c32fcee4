//! The cases that every client of this kind has got wrong at some time.

use http::HeaderMap;
use steadfast_core::facts::Stopped;
use steadfast_retry::RateLimitAwareRetryLayer;

use crate::support::{Events, Server, answer, get, listening, ms, secs};

#[tokio::test(start_paused = true)]
async fn d1_r06_an_absurd_wait_is_neither_slept_nor_lost() {
    for asked in ["9223372037", "9999999999", "99999999999999999999999"] {
        let events = Events::default();
        let server = Server::script([answer(429).retry_after(asked)]);
        let call = server.call(listening(&events), get()).await;

        assert_eq!(call.summary(), (429, 1, Some(Stopped::OverCap)));
        assert_eq!(call.took, ms(0));
        assert_eq!(call.report.retry_after, Some(secs(u64::from(u32::MAX))));
        let response = call.result.as_ref().unwrap();
        assert_eq!(response.headers()["retry-after"], asked);
        assert_eq!(events.all().len(), 1);
        assert_eq!(events.all()[0].reason, Stopped::OverCap);
    }
}

#[tokio::test(start_paused = true)]
async fn d2_a_wait_of_zero_is_no_wait() {
    let events = Events::default();
    let server = Server::script([answer(429).retry_after(0), answer(200)]);
    let call = server.call(listening(&events), get()).await;

    assert_eq!(call.summary(), (200, 2, None));
    assert_eq!(call.times(), [ms(0), ms(0)]);
    assert_eq!(call.report.waits, [ms(0)]);
    assert_eq!(events.all(), []);
}

#[tokio::test(start_paused = true)]
async fn d3_r06_sixty_seconds_are_waited_to_the_millisecond() {
    let server = Server::script([answer(429).retry_after(60), answer(200)]);
    let call = server.call(RateLimitAwareRetryLayer::new(), get()).await;
    assert_eq!(call.summary(), (200, 2, None));
    assert_eq!(call.times(), [ms(0), ms(60_000)]);
}

#[tokio::test(start_paused = true)]
async fn d3_r06_sixty_one_seconds_are_not_waited() {
    let server = Server::script([answer(429).retry_after(61)]);
    let call = server.call(RateLimitAwareRetryLayer::new(), get()).await;
    assert_eq!(call.summary(), (429, 1, Some(Stopped::OverCap)));
    assert_eq!(call.took, ms(0));
    assert_eq!(call.report.retry_after, Some(secs(61)));
    assert_eq!(call.text().await, "this is 429");
}

#[tokio::test(start_paused = true)]
async fn d4_r04_a_date_in_the_past_is_no_wait() {
    let past = "Wed, 21 Oct 2015 07:28:00 GMT";
    let server = Server::script([answer(503).retry_after(past), answer(200)]);
    let call = server.call(RateLimitAwareRetryLayer::new(), get()).await;
    assert_eq!(call.summary(), (200, 2, None));
    assert_eq!(call.times(), [ms(0), ms(0)]);
}

#[tokio::test(start_paused = true)]
async fn d5_r04_nonsense_in_retry_after_counts_as_absent() {
    let nonsense: [&[u8]; 12] = [
        b"-3",
        b"1.5",
        b"NaN",
        b"Infinity",
        b"+5",
        b"5s",
        b"0x10",
        b"1e3",
        b"",
        b"abc",
        b"\xff\xfe",
        b"Thu, 99 Foo 2026 12:00:00 GMT",
    ];
    for value in nonsense {
        let server = Server::script([
            answer(429).header("retry-after", value),
            answer(429).header("retry-after", value),
            answer(429).header("retry-after", value),
        ]);
        let call = server.call(RateLimitAwareRetryLayer::new(), get()).await;
        assert_eq!(
            call.summary(),
            (429, 3, Some(Stopped::Attempts)),
            "{value:?}"
        );
        assert_eq!(call.report.retry_after, None, "{value:?}");
        let waits = &call.report.waits;
        assert!(
            (ms(250)..=ms(500)).contains(&waits[0]),
            "{value:?}: {waits:?}"
        );
        assert!(
            (ms(500)..=ms(1_000)).contains(&waits[1]),
            "{value:?}: {waits:?}"
        );
        assert_eq!(call.times()[1], waits[0], "{value:?}");
        assert_eq!(call.times()[2], waits[0] + waits[1], "{value:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn r14_no_retry_changes_a_header() {
    let server = Server::script([answer(503), answer(429).retry_after(1), answer(200)]);
    let mut request = crate::support::keyed();
    request
        .headers_mut()
        .append("x-twice", "1".parse().unwrap());
    request
        .headers_mut()
        .append("x-twice", "2".parse().unwrap());
    let sent: HeaderMap = request.headers().clone();
    let call = server.call(RateLimitAwareRetryLayer::new(), request).await;
    assert_eq!(call.summary(), (200, 3, None));
    for seen in &call.seen {
        assert_eq!(seen.headers, sent);
    }
}
