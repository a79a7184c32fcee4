//! An axum server whose POST has its effect once for each idempotency key.
//!
//! `cargo run --example axum_server`, then see the README for `curl`, or run the `hyper_client` or `reqwest_client`
//! example against it.
#![expect(clippy::print_stdout, reason = "it says where it listens")]

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{Json, Router, extract::State, http::StatusCode, response::IntoResponse, routing::post};
use serde_json::json;
use steadfast::idempotency::{Drained, IdempotencyLayer, MemoryStore, Scope};
use tokio::{net::TcpListener, signal::ctrl_c};
use tower::BoxError;

#[derive(serde::Deserialize)]
struct Order {
    item: String,
}

async fn order(
    State(orders): State<Arc<AtomicU64>>,
    Json(order): Json<Order>,
) -> impl IntoResponse {
    let number = orders.fetch_add(1, Ordering::Relaxed) + 1;
    let location = [("location", format!("/orders/{number}"))];
    (
        StatusCode::CREATED,
        location,
        Json(json!({"number": number, "item": order.item})),
    )
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // 10 calls a second with keys that live for a day, and answers of up to 1 KiB.
    let store = MemoryStore::new(864_000, 864_000 * 1024);
    // One tenant. An API with several reads who is calling from what its authentication verified: `Scope::tenant`.
    let idempotency = IdempotencyLayer::new(store, Scope::global());
    let drain = idempotency.drain();

    let app = Router::new()
        .route("/orders", post(order).layer(idempotency))
        .with_state(Arc::default());
    let listen = env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app)
        .with_graceful_shutdown(async { ctrl_c().await.unwrap_or_default() })
        .await?;

    // Calls whose clients have gone may still be running.
    if let Drained::Running(calls) = drain.wait(Duration::from_secs(10)).await {
        println!("{calls} calls left to their leases");
    }
    Ok(())
}
