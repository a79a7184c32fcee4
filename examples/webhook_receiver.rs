//! An axum server that takes webhooks from whoever has the secret, and handles each of them once.
//!
//! `WEBHOOK_SECRET=… cargo run --example webhook_receiver [ADDRESS]`, then see the README for `openssl` and `curl`.
#![expect(
    clippy::print_stdout,
    reason = "it says where it listens and what arrives"
)]

use std::env;

use axum::{Extension, Json, Router, http::StatusCode, routing::post};
use serde_json::Value;
use steadfast::{
    core::facts::Verified,
    replay::{MemoryStore, ReplayGuardLayer},
    signature::{HmacScheme, KeyRing, SignatureVerifyLayer},
};
use tokio::{net::TcpListener, signal::ctrl_c};
use tower::{BoxError, ServiceBuilder};

/// Gets only what was signed, byte for byte, and no event a second time after it was handled.
async fn hook(Extension(verified): Extension<Verified>, Json(event): Json<Value>) -> StatusCode {
    println!("{}: {event}", verified.scheme());
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // The scheme of GitHub; those of some twenty other senders are there too.
    let scheme = HmacScheme::github();
    let secret = env::var("WEBHOOK_SECRET").map_err(|_| "set WEBHOOK_SECRET to the secret")?;
    let keys = KeyRing::single(scheme.secret(&secret)?);

    // Outside in.
    let layers = ServiceBuilder::new()
        .layer(SignatureVerifyLayer::new(scheme, keys))
        .layer(ReplayGuardLayer::events(MemoryStore::new(1_000_000)));
    let app = Router::new().route("/hook", post(hook).layer(layers));

    let listen = env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(listen).await?;
    println!("listening on http://{}/hook", listener.local_addr()?);
    axum::serve(listener, app)
        .with_graceful_shutdown(async { ctrl_c().await.unwrap_or_default() })
        .await?;
    Ok(())
}
