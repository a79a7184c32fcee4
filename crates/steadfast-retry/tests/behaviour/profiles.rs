//! Each profile against each outcome, over the whole layer.

use http::Request;
use http_body_util::Full;
use steadfast_core::facts::{CredentialGeneration, Stopped};
use steadfast_retry::{Profile, RateLimitAwareRetryLayer, Repeat, Trigger};

use crate::support::{Answer, Server, answer, get, hang, keyed, lost, ms, secs};

type Outcome = fn() -> Answer;

const OUTCOMES: [(&str, Outcome); 13] = [
    ("network", lost),
    ("attempt timeout", hang),
    ("408", || answer(408)),
    ("409 named", || answer(409).retry_after(1)),
    ("409", || answer(409)),
    ("429 named", || answer(429).retry_after(1)),
    ("429", || answer(429)),
    ("500", || answer(500)),
    ("502", || answer(502)),
    ("504", || answer(504)),
    ("503 named", || answer(503).retry_after(1)),
    ("503", || answer(503)),
    ("401", || answer(401).extension(CredentialGeneration(1))),
];

async fn row(profile: Profile, request: fn() -> Request<Full<bytes::Bytes>>) -> String {
    let mut row = String::new();
    for (name, outcome) in OUTCOMES {
        let server = Server::script([outcome(), answer(200)]);
        let layer = RateLimitAwareRetryLayer::with_profile(profile).attempt_timeout(secs(5));
        let call = server.call(layer, request()).await;
        match call.seen.len() {
            2 => assert_eq!(call.summary(), (200, 2, None), "{name}"),
            sent => assert_eq!(sent, 1, "{name}"),
        }
        row.push(if call.seen.len() == 2 { 'y' } else { 'n' });
    }
    row
}

#[tokio::test(start_paused = true)]
async fn r02_r03_each_profile_repeats_what_its_table_says() {
    //                                                   nt8  9  4  5024 3  1
    assert_eq!(row(Profile::new(), keyed).await, "yyyynyyyyyyyn");
    assert_eq!(row(Profile::openemail(), keyed).await, "yyynnynyyyyyn");
    assert_eq!(row(Profile::payments(), keyed).await, "yyynnyyyyyyyy");
    assert_eq!(row(Profile::botix(), keyed).await, "yynnnyynnnynn");
}

#[tokio::test(start_paused = true)]
async fn r03_a_read_is_never_repeated_on_a_409() {
    assert_eq!(row(Profile::new(), get).await, "yyynnyyyyyyyn");
}

#[tokio::test(start_paused = true)]
async fn r02_any_other_status_returns_at_once() {
    for status in [
        200, 201, 204, 301, 304, 400, 403, 404, 405, 410, 418, 422, 425, 451, 501, 505, 511, 599,
    ] {
        for profile in [
            Profile::new(),
            Profile::openemail(),
            Profile::payments(),
            Profile::botix(),
        ] {
            let server = Server::script([answer(status).retry_after(1)]);
            let layer = RateLimitAwareRetryLayer::with_profile(profile);
            let call = server.call(layer, keyed()).await;
            assert_eq!(call.summary(), (status, 1, None));
            assert_eq!(call.took, ms(0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r08_attempts_are_bounded_by_the_profile() {
    let attempts = [
        (Profile::new(), 3),
        (Profile::openemail(), 3),
        (Profile::payments(), 6),
        (Profile::botix(), 5),
    ];
    for (profile, attempts) in attempts {
        let server = Server::script((0..attempts).map(|_| answer(429).retry_after(0)));
        let layer = RateLimitAwareRetryLayer::with_profile(profile);
        let call = server.call(layer, get()).await;
        assert_eq!(call.summary(), (429, attempts, Some(Stopped::Attempts)));
        assert_eq!(call.report.attempts, u32::try_from(attempts).unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn r08_retries_are_what_follows_the_first_request() {
    for retries in 0..4 {
        let attempts = usize::try_from(retries).unwrap() + 1;
        let server = Server::script((0..attempts).map(|_| answer(503)));
        let call = server
            .call(RateLimitAwareRetryLayer::new().retries(retries), get())
            .await;
        assert_eq!(call.summary(), (503, attempts, Some(Stopped::Attempts)));
    }
}

#[tokio::test(start_paused = true)]
async fn r03_payments_repeats_a_500_once_a_call() {
    let server = Server::script([answer(500), answer(502), answer(500)]);
    let layer = RateLimitAwareRetryLayer::with_profile(Profile::payments());
    let call = server.call(layer, get()).await;
    assert_eq!(call.summary(), (500, 3, Some(Stopped::Attempts)));
}

#[tokio::test(start_paused = true)]
async fn r03_c5_the_key_is_told_that_its_first_request_still_runs() {
    let server = Server::script([
        answer(409).retry_after(2),
        answer(409).retry_after(3),
        answer(201),
    ]);
    let call = server.call(RateLimitAwareRetryLayer::new(), keyed()).await;
    assert_eq!(call.summary(), (201, 3, None));
    assert_eq!(call.times(), [secs(0), secs(2), secs(5)]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_ones_own_replaces_the_profiles() {
    let profile = Profile::new().on(Trigger::InternalServerError, Repeat::Never);
    let server = Server::script([answer(500)]);
    let call = server
        .call(RateLimitAwareRetryLayer::with_profile(profile), get())
        .await;
    assert_eq!(call.summary(), (500, 1, None));
}
