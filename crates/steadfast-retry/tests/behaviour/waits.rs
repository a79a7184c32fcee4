//! When the next request is sent.

use std::time::SystemTime;

use steadfast_core::Clock;
use steadfast_retry::{Backoff, Profile, RateLimitAwareRetryLayer};
use steadfast_testing::ChunkedBody;

use crate::support::{Server, answer, get, keyed, lost, ms, secs};

const DATE: &str = "Thu, 15 Jan 2026 12:00:00 GMT";

fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + secs(1_768_478_400)
}

#[tokio::test(start_paused = true)]
async fn r04_every_form_of_a_date_is_waited_for_on_the_servers_clock() {
    for date in [
        "Thu, 15 Jan 2026 12:00:30 GMT",
        "Thursday, 15-Jan-26 12:00:30 GMT",
        "Thu Jan 15 12:00:30 2026",
    ] {
        let server = Server::script([
            answer(503).header("date", DATE).retry_after(date),
            answer(200),
        ]);
        // The client's clock is ten minutes behind, which does not matter.
        let layer = RateLimitAwareRetryLayer::new().clock(Clock::from_fn(|| noon() - secs(600)));
        let call = server.call(layer, get()).await;
        assert_eq!(call.times(), [secs(0), secs(30)], "{date}");
    }
}

#[tokio::test(start_paused = true)]
async fn r04_without_a_date_the_own_clock_counts_with_its_fraction() {
    let layer = RateLimitAwareRetryLayer::new().clock(Clock::from_fn(|| noon() + ms(250)));
    let server = Server::script([
        answer(503).retry_after("Thu, 15 Jan 2026 12:00:30 GMT"),
        answer(200),
    ]);
    let call = server.call(layer, get()).await;
    assert_eq!(call.times(), [ms(0), ms(29_750)]);
}

#[tokio::test(start_paused = true)]
async fn r04_a_named_wait_is_obeyed_whatever_the_status() {
    for status in [408, 429, 500, 502, 503, 504] {
        let server = Server::script([answer(status).retry_after(7), answer(200)]);
        let call = server.call(RateLimitAwareRetryLayer::new(), get()).await;
        assert_eq!(call.times(), [secs(0), secs(7)], "{status}");
        assert_eq!(call.report.waits, [secs(7)]);
    }
}

#[tokio::test(start_paused = true)]
async fn r04_a_wait_counts_from_the_head_also_when_the_body_takes_long() {
    let slow = answer(503)
        .retry_after(10)
        .body(ChunkedBody::new(["a"]).stall());
    let server = Server::script([slow, answer(200)]);
    let layer = RateLimitAwareRetryLayer::new()
        .buffer_response(1024)
        .attempt_timeout(secs(4));
    let call = server.call(layer, get()).await;
    assert_eq!(call.summary(), (200, 2, None));
    assert_eq!(call.times(), [secs(0), secs(10)]);
}

#[tokio::test(start_paused = true)]
async fn r04_a_response_that_hangs_is_obeyed_by_its_head() {
    let hung = answer(429)
        .retry_after(61)
        .body(ChunkedBody::new(["a"]).stall());
    let server = Server::script([hung]);
    let layer = RateLimitAwareRetryLayer::new()
        .buffer_response(1024)
        .attempt_timeout(secs(4));
    let call = server.call(layer, get()).await;
    assert_eq!(call.report.retry_after, Some(secs(61)));
    assert_eq!(
        call.summary(),
        (504, 1, Some(steadfast_core::facts::Stopped::OverCap))
    );
}

#[tokio::test(start_paused = true)]
async fn r05_jitter_on_a_named_wait_only_adds() {
    let mut longer = 0;
    for _ in 0..50 {
        let server = Server::script([answer(429).retry_after(10), answer(200)]);
        let layer = RateLimitAwareRetryLayer::new().jitter_named_waits(20);
        let call = server.call(layer, get()).await;
        let wait = call.report.waits[0];
        assert!((secs(10)..=secs(12)).contains(&wait), "{wait:?}");
        assert!(call.times()[1] >= wait);
        longer += usize::from(wait > secs(10));
    }
    assert!(longer > 40);
}

#[tokio::test(start_paused = true)]
async fn r05_botix_doubles_the_servers_wait_on_each_further_429() {
    let server = Server::script([
        answer(429).retry_after(13),
        answer(429).retry_after(13),
        answer(503).retry_after(13),
        answer(429).retry_after(13),
        answer(200),
    ]);
    let layer = RateLimitAwareRetryLayer::with_profile(Profile::botix());
    let call = server.call(layer, get()).await;
    assert_eq!(call.report.waits, [secs(13), secs(26), secs(13), secs(52)]);
    assert_eq!(
        call.times(),
        [secs(0), secs(13), secs(39), secs(52), secs(104)]
    );
}

#[tokio::test(start_paused = true)]
async fn r07_the_own_waits_grow_within_their_bounds() {
    let rows: [(Profile, &[(u64, u64)]); 4] = [
        (Profile::new(), &[(250, 500), (500, 1_000)]),
        (Profile::openemail(), &[(250, 500), (500, 1_000)]),
        (
            Profile::payments(),
            &[
                (1_000, 1_000),
                (1_000, 2_000),
                (2_000, 4_000),
                (4_000, 8_000),
                (8_000, 16_000),
            ],
        ),
        (
            Profile::botix(),
            &[
                (1_000, 1_300),
                (2_000, 2_600),
                (4_000, 5_200),
                (8_000, 10_400),
            ],
        ),
    ];
    for (profile, bounds) in rows {
        let server = Server::script((0..=bounds.len()).map(|_| lost()));
        let call = server
            .call(RateLimitAwareRetryLayer::with_profile(profile), keyed())
            .await;
        assert_eq!(call.report.waits.len(), bounds.len());
        let mut due = ms(0);
        for ((wait, &(least, most)), sent) in
            call.report.waits.iter().zip(bounds).zip(&call.times()[1..])
        {
            assert!(
                (ms(least)..=ms(most)).contains(wait),
                "{profile:?}: {wait:?}"
            );
            due += *wait;
            assert_eq!(*sent, due);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r07_an_exponent_keeps_its_count_over_a_named_wait() {
    let exact = Backoff::exponential(secs(1), secs(30)).jitter_above(0);
    let server = Server::script([answer(429).retry_after(5), answer(503), answer(200)]);
    let call = server
        .call(RateLimitAwareRetryLayer::new().backoff(exact), get())
        .await;
    assert_eq!(call.report.waits, [secs(5), secs(2)]);
}

#[tokio::test(start_paused = true)]
async fn r06_the_cap_is_settable_and_concerns_the_servers_word_only() {
    let layer = || {
        let backoff = Backoff::exponential(secs(20), secs(20)).jitter_above(0);
        RateLimitAwareRetryLayer::new()
            .cap(secs(10))
            .backoff(backoff)
    };
    let server = Server::script([answer(503), answer(503).retry_after(10), answer(200)]);
    let call = server.call(layer(), get()).await;
    assert_eq!(call.report.waits, [secs(20), secs(10)]);
    let server = Server::script([answer(503).retry_after(11)]);
    assert_eq!(server.call(layer(), get()).await.seen.len(), 1);
}
