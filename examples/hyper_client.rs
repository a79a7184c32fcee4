//! hyper-util's client with a key on each call and retries that obey the server.
//!
//! `cargo run --example hyper_client [URL]`, with the `axum_server` example running.
#![expect(clippy::print_stdout, reason = "it prints what came of the call")]

use std::env;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use steadfast::{
    core::facts::{Replayed, RetryReport},
    headers::{IdempotencyKey, KeyRules},
    idempotency::IdempotencyKeyLayer,
    retry::RateLimitAwareRetryLayer,
};
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let url = env::args()
        .nth(1)
        .unwrap_or_else(|| "http://127.0.0.1:3000/orders".to_owned());
    let client = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new())
        .layer(RateLimitAwareRetryLayer::new())
        .service(Client::builder(TokioExecutor::new()).build_http());

    // A key that says what the call is for. A second run of this program is answered by a replay.
    let key = IdempotencyKey::new("invoice-inv_4192", &KeyRules::DEFAULT)?;
    let order = Request::post(url)
        .header("content-type", "application/json")
        .extension(key)
        .body(Full::<Bytes>::from(r#"{"item":"tea"}"#))?;

    let response = client.oneshot(order).await?;
    let replayed = response.extensions().get() == Some(&Replayed(true));
    let attempts = response
        .extensions()
        .get::<RetryReport>()
        .map_or(0, |report| report.attempts);
    println!(
        "{}, attempts: {attempts}, replayed: {replayed}",
        response.status()
    );
    let body = response.into_body().collect().await?.to_bytes();
    println!("{}", String::from_utf8_lossy(&body));
    Ok(())
}
