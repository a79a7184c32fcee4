//! The documented order of the layers, and what goes wrong in another one.

use std::time::Duration;

use axum::{
    extract::Request,
    http::StatusCode,
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use steadfast::{
    core::facts::{CallReport, OperationClass, Replayed},
    idempotency::{IdempotencyKeyLayer, IdempotencyLayer, MemoryStore, Scope},
};
use steadfast_testing::{Fault, FaultProxy, Faults};
use tower::{ServiceBuilder, ServiceExt as _, service_fn, util::BoxCloneSyncService};

use crate::shop::{Ledger, Server, Shop, hyper_shop, order, retry, routes, whole};

fn idempotency() -> IdempotencyLayer<MemoryStore> {
    IdempotencyLayer::new(MemoryStore::new(100, 1024 * 1024), Scope::global())
}

/// A client whose layers stand the wrong way round: each attempt gets a key of its own.
fn key_inside_retry() -> Shop {
    let client = ServiceBuilder::new()
        .layer(retry())
        .layer(IdempotencyKeyLayer::new())
        .service(Client::builder(TokioExecutor::new()).build_http());
    BoxCloneSyncService::new(service_fn(move |request| {
        let client = client.clone();
        async move { whole(client.oneshot(request).await).await }
    }))
}

#[tokio::test]
async fn i01_a_key_inside_the_retry_would_double_the_effect() {
    let ledger = Ledger::open();
    let server = Server::start(routes(&ledger).layer(idempotency())).await;
    let proxy = FaultProxy::start(server.addr, Faults::script([Fault::LoseResponse]))
        .await
        .unwrap();
    // The caller claims that the call may be repeated.
    let mut request = order(proxy.addr(), "tea");
    request
        .extensions_mut()
        .insert(OperationClass::NaturallyIdempotent);
    let answer = key_inside_retry().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!(ledger.count("tea"), 2);
}

#[tokio::test]
async fn i01_a_key_inside_the_retry_licenses_nothing() {
    let ledger = Ledger::open();
    let server = Server::start(routes(&ledger).layer(idempotency())).await;
    let proxy = FaultProxy::start(server.addr, Faults::script([Fault::LoseResponse]))
        .await
        .unwrap();
    let lost = key_inside_retry().oneshot(order(proxy.addr(), "tea")).await;
    lost.unwrap_err();
    assert_eq!(ledger.count("tea"), 1);
}

async fn authenticate(request: Request, next: Next) -> Response {
    if request
        .headers()
        .get("authorization")
        .is_none_or(|token| token != "valid")
    {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    next.run(request).await
}

/// Sends an order with a valid token, and once more after it was revoked.
async fn revoked(app: axum::Router) -> (StatusCode, bool) {
    let server = Server::start(app).await;
    let shop = hyper_shop();
    let send = |token: &'static str| {
        let mut request = order(server.addr, "tea");
        let headers = request.headers_mut();
        headers.insert("authorization", token.parse().unwrap());
        headers.insert("idempotency-key", "k".parse().unwrap());
        shop.clone().oneshot(request)
    };
    assert_eq!(send("valid").await.unwrap().status(), StatusCode::CREATED);
    let answer = send("revoked").await.unwrap();
    let replayed = answer.extensions().get() == Some(&Replayed(true));
    (answer.status(), replayed)
}

#[tokio::test]
async fn idempotency_inside_authentication_refuses_a_revoked_caller() {
    let app = routes(&Ledger::open())
        .layer(idempotency())
        .layer(from_fn(authenticate));
    assert_eq!(revoked(app).await, (StatusCode::UNAUTHORIZED, false));
}

#[tokio::test]
async fn idempotency_outside_authentication_would_answer_a_revoked_caller() {
    let app = routes(&Ledger::open())
        .layer(from_fn(authenticate))
        .layer(idempotency());
    assert_eq!(revoked(app).await, (StatusCode::CREATED, true));
}

#[tokio::test]
async fn i13_an_impatient_client_waits_out_its_own_first_attempt() {
    let ledger = Ledger::gated();
    let server = Server::start(routes(&ledger).layer(idempotency())).await;
    let impatient = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new())
        .layer(retry().attempt_timeout(Duration::from_millis(100)))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let report = CallReport::new();
    let mut request = order(server.addr, "tea");
    request.extensions_mut().insert(report.clone());
    let calling = tokio::spawn(async move { whole(impatient.oneshot(request).await).await });
    // The first attempt times out while its handler runs on. The second is told to come back in a second.
    while report.snapshot().waits.len() < 2 {
        tokio::task::yield_now().await;
    }
    ledger.let_go();
    let answer = calling.await.unwrap().unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!(answer.extensions().get(), Some(&Replayed(true)));
    assert_eq!(ledger.count("tea"), 1);
}
