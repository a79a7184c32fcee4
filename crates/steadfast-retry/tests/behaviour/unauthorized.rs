//! A 401 is signed afresh once, where the profile says so and a signer is inside.

use std::sync::atomic::{AtomicU32, Ordering};

use http::Request;
use steadfast_core::facts::{CredentialGeneration, Stopped};
use steadfast_retry::{Budget, Profile, RateLimitAwareRetryLayer};
use tower::{ServiceBuilder, ServiceExt as _};

use crate::support::{Answer, Events, Sent, Server, answer, get, keyed, ms, post, secs};

fn signed(status: u16) -> Answer {
    answer(status).extension(CredentialGeneration(7))
}

fn payments() -> RateLimitAwareRetryLayer {
    RateLimitAwareRetryLayer::with_profile(Profile::payments())
}

#[tokio::test(start_paused = true)]
async fn r03_r12_a_401_is_signed_afresh_at_once() {
    let server = Server::script([signed(401), signed(200)]);
    let call = server.call(payments(), keyed()).await;
    assert_eq!(call.summary(), (200, 2, None));
    assert_eq!(call.times(), [ms(0), ms(0)]);
    assert_eq!(
        (call.report.attempts, call.report.waits.as_slice()),
        (2, [ms(0)].as_slice())
    );
}

#[tokio::test(start_paused = true)]
async fn r03_a_second_401_is_returned_as_it_is() {
    let events = Events::default();
    let server = Server::script([signed(401), signed(401)]);
    let layer = payments().on_give_up(events.listener());
    let call = server.call(layer, get()).await;
    assert_eq!(call.summary(), (401, 2, None));
    assert_eq!(events.all(), []);
}

#[tokio::test(start_paused = true)]
async fn r03_a_401_without_a_signer_inside_is_final() {
    let server = Server::script([answer(401)]);
    assert_eq!(
        server.call(payments(), get()).await.summary(),
        (401, 1, None)
    );
}

#[tokio::test(start_paused = true)]
async fn r03_a_401_is_final_in_the_other_profiles() {
    for profile in [Profile::new(), Profile::openemail(), Profile::botix()] {
        let server = Server::script([signed(401)]);
        let layer = RateLimitAwareRetryLayer::with_profile(profile);
        assert_eq!(server.call(layer, get()).await.summary(), (401, 1, None));
    }
}

#[tokio::test(start_paused = true)]
async fn r03_a_401_to_a_call_that_may_not_be_repeated_is_not_repeated() {
    let server = Server::script([signed(401)]);
    let call = server.call(payments(), post()).await;
    assert_eq!(call.summary(), (401, 1, Some(Stopped::NotRepeatable)));
}

#[tokio::test(start_paused = true)]
async fn r03_a_401_takes_no_attempt_from_the_others() {
    let server = Server::script([signed(401), answer(503), answer(503), signed(200)]);
    let call = server.call(payments().retries(2), get()).await;
    assert_eq!(call.summary(), (200, 4, None));
    assert_eq!(
        call.report.waits[..2],
        [ms(0), secs(1)],
        "the own exponent starts at its beginning"
    );

    let server = Server::script([answer(503), signed(401), signed(200)]);
    assert_eq!(
        server.call(payments().retries(1), get()).await.summary(),
        (200, 3, None)
    );
}

#[tokio::test(start_paused = true)]
async fn r13_a_401_pays_like_any_other_retry() {
    let server = Server::script([signed(401)]);
    let call = server
        .call(payments().budget(Budget::new().tokens(13)), get())
        .await;
    assert_eq!(call.summary(), (401, 1, Some(Stopped::Budget)));
}

#[tokio::test(start_paused = true)]
async fn r12_what_an_inner_layer_adds_is_added_afresh() {
    let signed_at = AtomicU32::new(0);
    let server = Server::script([answer(503), answer(503), answer(200)]);
    let client = ServiceBuilder::new()
        .layer(RateLimitAwareRetryLayer::new())
        .map_request(|mut request: Request<Sent>| {
            let n = signed_at.fetch_add(1, Ordering::Relaxed);
            assert!(
                !request.headers().contains_key("x-timestamp"),
                "signed twice"
            );
            request.headers_mut().insert("x-timestamp", n.into());
            request
        })
        .service(server.client());
    client.oneshot(keyed()).await.unwrap();
    let seen = server.seen();
    let stamps: Vec<_> = seen
        .iter()
        .map(|seen| &seen.headers["x-timestamp"])
        .collect();
    assert_eq!(stamps, ["0", "1", "2"]);
}
