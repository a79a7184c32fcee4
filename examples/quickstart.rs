//! A thousand orders through a network that loses, cuts and delays 30 % of all exchanges, some of them after the server
//! has committed: once with a client that repeats blindly, once with steadfast's layers on both sides.
//!
//! `cargo run --example quickstart`
#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::{Json, Router, extract::State, routing::post};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use indicatif::ProgressBar;
use steadfast::core::facts::{Replayed, RetryReport};
use steadfast::idempotency::{IdempotencyKeyLayer, IdempotencyLayer, MemoryStore, Scope};
use steadfast::retry::{Backoff, Budget, RateLimitAwareRetryLayer};
use steadfast_testing::{FaultProxy, Faults};
use tokio::net::TcpListener;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _, service_fn};

const ORDERS: &str = include_str!("data/orders.jsonl");
const WORKERS: usize = 32;
const FAULTS: u8 = 30;
const RETRIES: u32 = 15;

type Ledger = Arc<Mutex<HashMap<String, u32>>>;
type Shop = BoxCloneSyncService<Request<Full<Bytes>>, Response<()>, BoxError>;

#[derive(serde::Deserialize)]
struct Order {
    id: String,
}

/// The effect that must not be doubled.
async fn write_order(State(ledger): State<Ledger>, Json(order): Json<Order>) -> StatusCode {
    let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    *ledger.entry(order.id).or_default() += 1;
    StatusCode::CREATED
}

/// Without the layers: an order that fails is sent once more; the server cannot know that it is the same.
fn blind() -> Shop {
    let client = Client::builder(TokioExecutor::new()).build_http();
    BoxCloneSyncService::new(service_fn(move |order: Request<Full<Bytes>>| {
        let client = client.clone();
        async move {
            match client.request(order.clone()).await {
                Err(_) => Ok(client.request(order).await?.map(drop)),
                Ok(answer) => Ok(answer.map(drop)),
            }
        }
    }))
}

/// With the layers: one key a call, however often it is sent. So many and so short retries, and no budget, are for a
/// network this bad; the defaults are for ordinary ones.
fn steadfast() -> Shop {
    let waits = Backoff::exponential(Duration::from_millis(5), Duration::from_millis(100));
    let retry = RateLimitAwareRetryLayer::new()
        .retries(RETRIES)
        .backoff(waits)
        .budget(Budget::unlimited())
        .attempt_timeout(Duration::from_secs(2))
        .buffer_response(1024 * 1024);
    let client = ServiceBuilder::new()
        .map_err(BoxError::from)
        .map_response(|answer: Response<_>| answer.map(drop))
        .layer(IdempotencyKeyLayer::new())
        .layer(retry)
        .service(Client::builder(TokioExecutor::new()).build_http());
    BoxCloneSyncService::new(client)
}

const ROWS: [&str; 8] = [
    "orders whose arrival is known",
    "orders in the ledger",
    "orders lost",
    "orders doubled",
    "retries by the layer",
    "answers replayed",
    "exchanges broken",
    "  after the server had committed",
];

/// Sends every order through the bad network to a server of its own, 32 at a time, and counts.
async fn run(title: &'static str, app: Router<Ledger>, shop: Shop) -> Result<[u64; 8], BoxError> {
    let ledger = Ledger::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let delay = Duration::from_millis(1)..=Duration::from_millis(20);
    let faults = Faults::percent(FAULTS).delay(delay).seed(7);
    let proxy = FaultProxy::start(listener.local_addr()?, faults).await?;
    let app = app.with_state(Arc::clone(&ledger));
    let server = tokio::spawn(async { axum::serve(listener, app).await });

    let url = format!("http://{}/orders", proxy.addr());
    let orders = ORDERS.lines().count() as u64;
    let progress = ProgressBar::new(orders).with_prefix(title);
    let answers = stream::iter(ORDERS.lines()).map(|order| {
        let request = Request::post(&url).header("content-type", "application/json");
        let shop = shop.clone();
        let send = async move { shop.oneshot(request.body(Full::from(order))?).await };
        async { send.await.inspect(|_| progress.inc(1)) }
    });
    let answers: Vec<_> = answers.buffer_unordered(WORKERS).collect().await;
    progress.finish_and_clear();
    server.abort();

    let all = |is: &dyn Fn(&Response<()>) -> u64| answers.iter().flatten().map(is).sum();
    let retries = |report: &RetryReport| report.waits.len() as u64;
    let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    Ok([
        all(&|answer| u64::from(answer.status() == StatusCode::CREATED)),
        ledger.len() as u64,
        orders - ledger.len() as u64,
        ledger.values().filter(|written| **written > 1).count() as u64,
        all(&|answer| answer.extensions().get().map_or(0, retries)),
        all(&|answer| u64::from(answer.extensions().get() == Some(&Replayed(true)))),
        proxy.stats().injected(),
        proxy.stats().after_commit(),
    ])
}

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    let app = || Router::new().route("/orders", post(write_order));
    let without = run("without the layers", app(), blind()).await?;
    let store = MemoryStore::new(10_000, 16 * 1024 * 1024);
    let idempotency = IdempotencyLayer::new(store, Scope::global()).require_key();
    let with = run("with the layers", app().layer(idempotency), steadfast()).await?;

    println!("{FAULTS} % of the exchanges are lost, cut or delayed; {WORKERS} orders at a time;");
    println!("with the layers up to {RETRIES} retries, 5 to 100 ms apart, and no budget\n");
    println!("{:36}{:>10}{:>10}", "", "without", "with");
    for ((row, without), with) in ROWS.iter().zip(without).zip(with) {
        println!("{row:36}{without:>10}{with:>10}");
    }
    if with[..4] != [1_000, 1_000, 0, 0] {
        println!("\nwith the layers: NOT EXACT");
        return Ok(ExitCode::FAILURE);
    }
    println!("\nwith the layers: every order arrived, and none twice");
    Ok(ExitCode::SUCCESS)
}
