//! Nested routers, where the handler sees a part of the path.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Router, body::Body, routing::post};
use http::Request;
use steadfast_replay::{MemoryStore, ReplayGuardLayer};
use tower::ServiceExt as _;

use super::kit::{event, signed};

#[tokio::test]
async fn g03_one_id_under_two_nested_routers_is_two_events() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let hooks = Router::new()
        .route(
            "/hook",
            post(move || async move {
                count.fetch_add(1, Ordering::Relaxed);
                "done"
            }),
        )
        .layer(ReplayGuardLayer::events(MemoryStore::new(100)));
    let app: Router = Router::new()
        .nest("/a", hooks.clone())
        .nest("/b", Router::new().nest("/c", hooks));
    let call = |path: &str| {
        let request = Request::post(path).extension(event(signed("1"), "x"));
        app.clone().oneshot(request.body(Body::empty()).unwrap())
    };
    for path in ["/a/hook", "/b/c/hook"] {
        let first = call(path).await.unwrap();
        assert_eq!(first.status(), 200);
        assert!(!first.headers().contains_key("event-duplicate"), "{path}");
        let again = call(path).await.unwrap();
        assert!(again.headers().contains_key("event-duplicate"), "{path}");
    }
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}
