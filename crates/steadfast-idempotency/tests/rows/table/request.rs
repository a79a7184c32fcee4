//! Rows 1 to 6: what is decided before the store is asked.

use http::{Response, request::Parts};
use steadfast_core::Refusal;
use steadfast_headers::KeyError;
use steadfast_idempotency::{Rejection, Scope};
use steadfast_testing::poll_times;

use crate::kit::{Api, Content, Retry, order, request};

#[tokio::test(start_paused = true)]
async fn row_01_no_key_where_it_is_optional_is_the_handlers_own_affair() {
    let api = Api::new(order);
    for run in 1..=2 {
        let reply = api
            .send(request().body(Content::new(["one"])).unwrap())
            .await;
        reply.assert_first(201, &format!("order {run}"));
    }
    assert_eq!(api.runs(), 2);
    assert_eq!(api.store.log(), []);
}

#[tokio::test(start_paused = true)]
async fn row_02_no_key_where_it_is_required_gets_400() {
    let api = Api::with(|layer| layer.require_key(), order);
    let reply = api
        .send(request().body(Content::new(["one"])).unwrap())
        .await;
    reply.assert_refusal(
        400,
        "idempotency_key_missing",
        Retry::No,
        Rejection::KeyMissing,
    );
    assert_eq!(api.runs(), 0);
    assert_eq!(api.store.log(), []);
}

#[tokio::test(start_paused = true)]
async fn row_03_a_bad_doubled_or_empty_key_gets_400() {
    let api = Api::new(order);
    for (lines, error) in [
        (&["bad key"][..], KeyError::BadByte),
        (&[""], KeyError::Empty),
        (&["k1", "k1"], KeyError::Repeated),
        (&["k1", "k2"], KeyError::Repeated),
    ] {
        let mut request = request();
        for line in lines {
            request = request.header("idempotency-key", *line);
        }
        let reply = api.send(request.body(Content::new(["one"])).unwrap()).await;
        reply.assert_refusal(
            400,
            "idempotency_key_invalid",
            Retry::No,
            Rejection::KeyInvalid(error),
        );
    }
    assert_eq!(api.runs(), 0);
    assert_eq!(api.store.log(), []);
}

#[tokio::test(start_paused = true)]
async fn row_04_a_tenant_extractor_that_refuses_answers_itself() {
    let banned = |_: &Parts| {
        let response = Response::builder()
            .status(403)
            .header("x-why", "banned")
            .body("go away".into())
            .unwrap();
        Err(Refusal::from(response))
    };
    let api = Api::scoped(Scope::tenant(banned), order);
    let reply = api.post("k1", "one").await;
    reply.assert_first(403, "go away");
    assert_eq!(reply.header("x-why"), Some("banned"));

    let api_401 = Api::scoped(
        Scope::tenant(|_: &Parts| Err(Refusal::unauthorized())),
        order,
    );
    assert_eq!(api_401.post("k1", "one").await.status, 401);
    for api in [api, api_401] {
        assert_eq!(api.runs(), 0);
        assert_eq!(api.store.log(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn row_05_a_body_over_the_fingerprint_limit_gets_413() {
    let api = Api::with(|layer| layer.max_body(8), order);
    let too_long = || Content::new(["nine ", "byte"]);
    for body in [too_long(), too_long().exact()] {
        let request = request().header("idempotency-key", "k1").body(body);
        let reply = api.send(request.unwrap()).await;
        reply.assert_refusal(
            413,
            "idempotency_body_too_large",
            Retry::No,
            Rejection::BodyTooLarge,
        );
    }
    assert_eq!(api.runs(), 0);
    assert_eq!(api.store.log(), []);
}

#[tokio::test(start_paused = true)]
async fn row_06_a_body_that_fails_or_stops_runs_nothing() {
    let api = Api::new(order);
    let keyed = |body| {
        request()
            .header("idempotency-key", "k1")
            .body(body)
            .unwrap()
    };

    let reply = api.send(keyed(Content::new(["on"]).error("reset"))).await;
    reply.assert_refusal(
        400,
        "idempotency_request_invalid",
        Retry::Any,
        Rejection::RequestInvalid,
    );

    // A client that sends nothing more is waited for, and its call is gone when it goes.
    let stalled = api.call(keyed(Content::new(["on"]).stall()));
    assert!(poll_times(stalled, 1).await.is_none());
    api.settled().await;

    assert_eq!(api.runs(), 0);
    assert_eq!(api.store.log(), []);
}
