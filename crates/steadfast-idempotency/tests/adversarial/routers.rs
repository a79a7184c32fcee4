//! The layer in every place that a router has for one, all of them on one store.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Router, body::Body, routing::post};
use http::{Request, Uri};
use http_body_util::BodyExt as _;
use steadfast_idempotency::{IdempotencyLayer, MemoryStore, Scope};
use tower::ServiceExt as _;

/// Counts its runs, and answers with what it saw.
#[derive(Clone, Default)]
struct Handler(Arc<AtomicUsize>);

impl Handler {
    fn route(&self) -> axum::routing::MethodRouter {
        let runs = Arc::clone(&self.0);
        post(
            move |uri: Uri| async move { format!("{uri} {}", runs.fetch_add(1, Ordering::SeqCst) + 1) },
        )
    }
}

async fn send(app: &Router, path: &str) -> (String, bool) {
    let request = Request::post(path).header("idempotency-key", "k1");
    let request = request.body(Body::from("one")).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let replayed = response.headers().contains_key("idempotent-replayed");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (String::from_utf8(body.to_vec()).unwrap(), replayed)
}

#[tokio::test]
async fn i10_one_store_under_routes_merges_nests_and_fallbacks_never_replays_across_paths() {
    let handler = Handler::default();
    let layer = IdempotencyLayer::new(MemoryStore::new(100, 100_000), Scope::global());
    let orders = || Router::new().route("/orders", handler.route());
    let app = Router::new()
        .nest("/by-router", orders().layer(layer.clone()))
        .nest("/by-route", orders().route_layer(layer.clone()))
        .nest(
            "/by-method",
            Router::new().route("/orders", handler.route().layer(layer.clone())),
        )
        .nest(
            "/deep",
            Router::new().nest("/er", orders().layer(layer.clone())),
        )
        .nest_service("/service", orders().layer(layer.clone()))
        .nest(
            "/fallback",
            Router::new().fallback_service(handler.route().layer(layer.clone())),
        )
        .merge(orders().layer(layer.clone()))
        .fallback_service(handler.route().layer(layer));
    let paths = [
        "/by-router/orders",
        "/by-route/orders",
        "/by-method/orders",
        "/deep/er/orders",
        "/service/orders",
        "/fallback/orders",
        "/orders",
        "/nowhere/orders",
    ];
    for (before, path) in paths.iter().enumerate() {
        let (first, replayed) = send(&app, path).await;
        assert!(!replayed, "{path}");
        assert!(
            first.ends_with(&format!(" {}", before + 1)),
            "{path}: {first}"
        );
    }
    for path in paths {
        assert!(send(&app, path).await.1, "{path}");
    }
    assert_eq!(handler.0.load(Ordering::SeqCst), paths.len());
}
