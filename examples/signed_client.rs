//! hyper-util's client with signed requests: each attempt gets a timestamp, a nonce and a signature of its own.
//!
//! `cargo run --example signed_client`. The server is part of it, and is busy when it is first called.
#![expect(clippy::print_stdout, reason = "it prints what came of the calls")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{Router, extract::State, http::HeaderMap, response::IntoResponse, routing::post};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use steadfast::{
    core::facts::RetryReport,
    idempotency::IdempotencyKeyLayer,
    retry::RateLimitAwareRetryLayer,
    signature::{HmacScheme, KeyRing, SignRequestLayer, SignatureVerifyLayer, SigningKey},
};
use tokio::net::TcpListener;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

const KEY_ID: &str = "key_live_1";

/// Is busy once, then takes every order.
async fn order(State(was_busy): State<Arc<AtomicBool>>, head: HeaderMap) -> impl IntoResponse {
    let sent = |name| head.get(name).and_then(|value| value.to_str().ok());
    println!(
        "server: nonce {}, signature {:.16}…",
        sent("x-nonce").unwrap_or_default(),
        sent("x-signature").unwrap_or_default(),
    );
    match was_busy.swap(true, Ordering::Relaxed) {
        false => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")]).into_response(),
        true => StatusCode::CREATED.into_response(),
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // A real one comes from where secrets are kept, the same on both sides.
    let scheme = HmacScheme::payments();
    let secret = scheme.secret(&format!("secret {}", std::process::id()))?;

    let keys = KeyRing::new([(KEY_ID, secret.clone().into())])?;
    let app = Router::new()
        .route("/v1/orders", post(order))
        .layer(SignatureVerifyLayer::new(scheme.clone(), keys))
        .with_state(Arc::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1/orders?dry_run=false", listener.local_addr()?);
    tokio::spawn(async { axum::serve(listener, app).await });

    let unsigned = Client::builder(TokioExecutor::new()).build_http();
    let client = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new())
        .layer(RateLimitAwareRetryLayer::new())
        // Inside of the retry: outside, the second attempt would be the first one replayed.
        .layer(SignRequestLayer::new(
            scheme,
            SigningKey::new(KEY_ID, secret),
        ))
        .service(Client::builder(TokioExecutor::new()).build_http());

    let request = || Request::post(&url).body(Full::<Bytes>::from(r#"{"item":"tea"}"#));
    let response = client.oneshot(request()?).await?;
    let attempts = response
        .extensions()
        .get::<RetryReport>()
        .map_or(0, |report| report.attempts);
    println!("signed: {}, attempts: {attempts}", response.status());

    let response = unsigned.oneshot(request()?).await?;
    println!("unsigned: {}", response.status());
    Ok(())
}
