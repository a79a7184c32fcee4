//! One effect a call over a network that loses, cuts, delays and repeats (I15, R01).

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use http::{Response, StatusCode};
use steadfast::{
    core::facts::{Replayed, RetryReport},
    idempotency::{IdempotencyLayer, MemoryStore, Scope},
};
use steadfast_testing::{Fault, FaultProxy, Faults};
use tower::ServiceExt as _;

use crate::shop::{Ledger, Server, Shop, hyper_shop, order, reqwest_shop, routes};

fn protected(ledger: &Ledger) -> axum::Router {
    let store = MemoryStore::new(10_000, 16 * 1024 * 1024);
    routes(ledger).layer(IdempotencyLayer::new(store, Scope::global()).require_key())
}

async fn every_order_arrives_once(shop: Shop, seed: u64) {
    let ledger = Ledger::open();
    let server = Server::start(protected(&ledger)).await;
    let faults = Faults::percent(30)
        .weight(Fault::DuplicateRequest, 1)
        .delay(Duration::from_millis(1)..=Duration::from_millis(10))
        .seed(seed);
    let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
    let answers = stream::iter(0..300).map(|n| {
        let shop = shop.clone();
        let request = order(proxy.addr(), format!("order {n}"));
        async move { (n, shop.oneshot(request).await) }
    });
    let answers: Vec<_> = answers.buffer_unordered(16).collect().await;
    for (n, answer) in answers {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED, "order {n}");
        assert_eq!(answer.body(), &format!("written: order {n}"));
    }
    assert_eq!(ledger.counts(), vec![1; 300]);
    assert!(
        proxy.stats().after_commit() > 0,
        "the network lost no answer"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i15_hyper_every_order_arrives_once() {
    every_order_arrives_once(hyper_shop(), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i15_reqwest_every_order_arrives_once() {
    every_order_arrives_once(reqwest_shop(), 2).await;
}

/// Sends one order through these faults, and says what came of it.
async fn one(
    shop: Shop,
    faults: impl IntoIterator<Item = Fault>,
) -> (Response<axum::body::Bytes>, u32) {
    let ledger = Ledger::open();
    let server = Server::start(protected(&ledger)).await;
    let proxy = FaultProxy::start(server.addr, Faults::script(faults))
        .await
        .unwrap();
    let answer = shop.oneshot(order(proxy.addr(), "tea")).await.unwrap();
    (answer, ledger.count("tea"))
}

fn attempts(answer: &Response<axum::body::Bytes>) -> u32 {
    answer.extensions().get::<RetryReport>().unwrap().attempts
}

#[tokio::test]
async fn i15_an_answer_lost_after_the_commit_is_replayed() {
    for fault in [Fault::LoseResponse, Fault::CutResponse, Fault::CutBody] {
        for shop in [hyper_shop(), reqwest_shop()] {
            let (answer, written) = one(shop, [fault]).await;
            assert_eq!(answer.status(), StatusCode::CREATED, "{fault:?}");
            assert_eq!(answer.body(), "written: tea");
            assert_eq!(
                answer.extensions().get(),
                Some(&Replayed(true)),
                "{fault:?}"
            );
            assert_eq!(attempts(&answer), 2);
            assert_eq!(written, 1);
        }
    }
}

#[tokio::test]
async fn i15_a_request_lost_on_the_way_runs_on_the_retry() {
    for fault in [Fault::LoseRequest, Fault::CutRequest] {
        for shop in [hyper_shop(), reqwest_shop()] {
            let (answer, written) = one(shop, [fault]).await;
            assert_eq!(answer.status(), StatusCode::CREATED, "{fault:?}");
            assert_eq!(
                answer.extensions().get(),
                Some(&Replayed(false)),
                "{fault:?}"
            );
            assert_eq!(attempts(&answer), 2);
            assert_eq!(written, 1);
        }
    }
}

#[tokio::test]
async fn i13_a_request_that_the_network_repeats_has_one_effect() {
    let (answer, written) = one(hyper_shop(), [Fault::DuplicateRequest]).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!(written, 1);
}
