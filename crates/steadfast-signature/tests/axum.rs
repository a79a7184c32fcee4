//! Under axum's nested routers.
#![cfg(feature = "axum")]

use axum::{Router, body::Body, routing::post};
use http::{Request, request::Parts};
use steadfast_signature::{
    HmacScheme, KeyRing, Scheme as _, Secret, Secrets, SignatureVerifyLayer, SigningKey, Stamp,
};
use tower::ServiceExt as _;

fn signed(path: &str) -> Parts {
    let mut head = Request::post(path).body(()).unwrap().into_parts().0;
    let secret = Secret::from_bytes("a secret of 26 bytes or so").unwrap();
    let key = SigningKey::new("key_1", secret);
    let stamp = Stamp::random(steadfast_core::Clock::system().now());
    let scheme = HmacScheme::payments();
    scheme.sign(&mut head, &"one".into(), &key, &stamp).unwrap();
    head
}

#[tokio::test]
async fn s02_a_nested_router_does_not_hide_the_path_that_was_signed() {
    let secrets = Secrets::from(Secret::from_bytes("a secret of 26 bytes or so").unwrap());
    let keys = KeyRing::new([("key_1", secrets)]).unwrap();
    let orders = Router::new()
        .route("/orders", post(|body: String| async move { body }))
        .layer(SignatureVerifyLayer::new(HmacScheme::payments(), keys));
    let app = Router::new().nest("/v1", orders);
    let mut moved = signed("/orders?a=b");
    moved.uri = "/v1/orders?a=b".parse().unwrap();
    for (head, status) in [(signed("/v1/orders?a=b"), 200), (moved, 401)] {
        let request = Request::from_parts(head, Body::from("one"));
        let response = app.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), status);
    }
}
