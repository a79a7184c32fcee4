//! The layer in a real axum router: on routers, on routes, under nested routers, and with extractors behind it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use steadfast_idempotency::{IdempotencyLayer, Lease, MemoryStore, Scope};
use tower::ServiceExt as _;

/// Counts the runs of all handlers.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// The order of the extractors is what it would be without the layer: the body comes last.
async fn order(
    State(runs): State<Runs>,
    method: Method,
    headers: HeaderMap,
    Extension(lease): Extension<Lease>,
    body: String,
) -> Response {
    assert!(headers.contains_key("idempotency-key"));
    assert!(!lease.is_lost());
    let run = runs.0.fetch_add(1, Ordering::SeqCst) + 1;
    let location = [("location", format!("/orders/{run}"))];
    (
        StatusCode::CREATED,
        location,
        format!("{method} {body} {run}"),
    )
        .into_response()
}

fn layer() -> IdempotencyLayer<MemoryStore> {
    IdempotencyLayer::new(MemoryStore::new(100, 10_000), Scope::global())
}

fn request(method: Method, path: &str, body: &'static str) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("idempotency-key", "k1");
    request.body(Body::from(body)).unwrap()
}

async fn send(app: &Router, request: Request<Body>) -> (StatusCode, bool, Bytes) {
    let response = app.clone().oneshot(request).await.unwrap();
    let replayed = response.headers().contains_key("idempotent-replayed");
    let status = response.status();
    let body = response.into_body().collect().await.unwrap();
    (status, replayed, body.to_bytes())
}

#[track_caller]
fn assert_created(reply: &(StatusCode, bool, Bytes), replayed: bool, body: &'static str) {
    assert_eq!(*reply, (StatusCode::CREATED, replayed, Bytes::from(body)));
}

#[tokio::test]
async fn i08_a_router_with_the_layer_runs_a_call_once() {
    let runs = Runs::default();
    let app = Router::new()
        .route("/orders", post(order).patch(order))
        .layer(layer())
        .with_state(runs.clone());
    let call = |method, body| send(&app, request(method, "/orders", body));
    assert_created(&call(Method::POST, "one").await, false, "POST one 1");
    assert_created(&call(Method::POST, "one").await, true, "POST one 1");
    assert_created(&call(Method::PATCH, "one").await, false, "PATCH one 2");
    let (status, ..) = call(Method::POST, "two").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(runs.count(), 2);
}

#[tokio::test]
async fn i08_a_route_with_the_layer_runs_a_call_once_and_its_neighbours_are_left_alone() {
    let runs = Runs::default();
    let plain = |State(runs): State<Runs>| async move {
        runs.0.fetch_add(1, Ordering::SeqCst);
        StatusCode::CREATED
    };
    let covered: MethodRouter<Runs> = post(order).layer(layer());
    let app = Router::new()
        .route("/orders", covered.get(plain))
        .route("/plain", post(plain))
        .with_state(runs.clone());
    for replayed in [false, true] {
        let reply = send(&app, request(Method::POST, "/orders", "one")).await;
        assert_created(&reply, replayed, "POST one 1");
    }
    for run in 2..=3 {
        let reply = send(&app, request(Method::POST, "/plain", "one")).await;
        assert_created(&reply, false, "");
        assert_eq!(runs.count(), run);
    }
    assert_created(
        &send(&app, request(Method::GET, "/orders", "")).await,
        false,
        "",
    );
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn i10_nested_routers_that_share_a_store_never_replay_each_other() {
    let runs = Runs::default();
    let nested = |layer| Router::new().route("/orders", post(order)).layer(layer);
    let shared = layer();
    let app = Router::new()
        .nest("/a", nested(shared.clone()))
        .nest("/b", Router::new().nest("/deep", nested(shared)))
        .with_state(runs.clone());
    for replayed in [false, true] {
        let a = send(&app, request(Method::POST, "/a/orders", "one")).await;
        assert_created(&a, replayed, "POST one 1");
        let b = send(&app, request(Method::POST, "/b/deep/orders", "one")).await;
        assert_created(&b, replayed, "POST one 2");
    }
    assert_eq!(runs.count(), 2);
}

#[tokio::test]
async fn i10_resources_of_one_route_are_told_apart_by_their_full_path() {
    let cancel = |State(runs): State<Runs>, Path(id): Path<u32>| async move {
        let run = runs.0.fetch_add(1, Ordering::SeqCst) + 1;
        (StatusCode::CREATED, format!("cancelled {id} in {run}"))
    };
    let app = Router::new()
        .route("/orders/{id}/cancel", post(cancel))
        .layer(layer())
        .with_state(Runs::default());
    for replayed in [false, true] {
        let one = send(&app, request(Method::POST, "/orders/1/cancel", "")).await;
        assert_created(&one, replayed, "cancelled 1 in 1");
        let two = send(&app, request(Method::POST, "/orders/2/cancel", "")).await;
        assert_created(&two, replayed, "cancelled 2 in 2");
    }
}

#[tokio::test]
async fn a_body_that_an_extractor_refuses_frees_the_key() {
    let runs = Runs::default();
    let app = Router::new()
        .route("/orders", post(order))
        .layer(layer())
        .with_state(runs.clone());
    let keyed = |body: &'static [u8]| {
        let request = Request::post("/orders").header("idempotency-key", "k1");
        request.body(Body::from(body)).unwrap()
    };
    let (status, ..) = send(&app, keyed(b"\xff")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_created(&send(&app, keyed(b"one")).await, false, "POST one 1");
}

#[tokio::test]
async fn a_path_without_a_handler_frees_the_key() {
    let app = Router::new()
        .route("/orders", get(async || "none"))
        .layer(layer());
    for path in ["/orders", "/nothing"] {
        for _ in 0..2 {
            let (status, replayed, _) = send(&app, request(Method::POST, path, "one")).await;
            assert!(status.is_client_error() && !replayed, "{path}: {status}");
        }
    }
}
