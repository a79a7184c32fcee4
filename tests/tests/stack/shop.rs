//! A server with an effect that can be counted, and clients for it.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use steadfast::{
    core::{BoxError, reqwest::ReqwestService},
    idempotency::IdempotencyKeyLayer,
    retry::{Backoff, Budget, RateLimitAwareRetryLayer},
};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinHandle};
use tower::{ServiceBuilder, ServiceExt as _, service_fn, util::BoxCloneSyncService};

/// How often each order was written, and what holds the handler up.
#[derive(Clone)]
pub(crate) struct Ledger {
    written: Arc<Mutex<HashMap<Bytes, u32>>>,
    gate: Arc<Semaphore>,
}

impl Ledger {
    /// Handlers answer at once.
    pub(crate) fn open() -> Self {
        Self {
            written: Arc::default(),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        }
    }

    /// Handlers write, and answer when they are let go.
    pub(crate) fn gated() -> Self {
        Self {
            written: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }

    pub(crate) fn let_go(&self) {
        self.gate.add_permits(1_000);
    }

    /// How often `order` was written.
    pub(crate) fn count(&self, order: &str) -> u32 {
        self.written
            .lock()
            .unwrap()
            .get(order.as_bytes())
            .copied()
            .unwrap_or(0)
    }

    pub(crate) fn counts(&self) -> Vec<u32> {
        self.written.lock().unwrap().values().copied().collect()
    }
}

async fn write_order(State(ledger): State<Ledger>, order: Bytes) -> (StatusCode, String) {
    *ledger
        .written
        .lock()
        .unwrap()
        .entry(order.clone())
        .or_default() += 1;
    let _permit = ledger.gate.acquire().await.unwrap();
    (
        StatusCode::CREATED,
        format!("written: {}", String::from_utf8_lossy(&order)),
    )
}

/// The routes, without any layer.
pub(crate) fn routes(ledger: &Ledger) -> Router {
    Router::new()
        .route("/orders", post(write_order))
        .with_state(ledger.clone())
}

/// A running server.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    serving: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let serving = tokio::spawn(async { axum::serve(listener, app).await.unwrap() });
        Self { addr, serving }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

pub(crate) type Shop = BoxCloneSyncService<Request<Full<Bytes>>, Response<Bytes>, BoxError>;

/// Retries that a network as bad as ours needs.
pub(crate) fn retry() -> RateLimitAwareRetryLayer {
    let waits = Backoff::exponential(Duration::from_millis(5), Duration::from_millis(100));
    RateLimitAwareRetryLayer::new()
        .retries(15)
        .backoff(waits)
        .budget(Budget::unlimited())
        .attempt_timeout(Duration::from_secs(5))
        .buffer_response(1024 * 1024)
}

pub(crate) fn hyper_shop() -> Shop {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let client = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new())
        .layer(retry())
        .service(client);
    BoxCloneSyncService::new(service_fn(move |request| {
        let client = client.clone();
        async move { whole(client.oneshot(request).await).await }
    }))
}

pub(crate) fn reqwest_shop() -> Shop {
    let client = ReqwestService::new(reqwest::Client::builder()).unwrap();
    let client = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new())
        .layer(retry())
        .service(client);
    BoxCloneSyncService::new(service_fn(move |request| {
        let client = client.clone();
        async move { whole(client.oneshot(request).await).await }
    }))
}

pub(crate) async fn whole<B, E>(answer: Result<Response<B>, E>) -> Result<Response<Bytes>, BoxError>
where
    B: http_body::Body<Error: Into<BoxError>>,
    E: Into<BoxError>,
{
    let (head, body) = answer.map_err(Into::into)?.into_parts();
    let body = body.collect().await.map_err(Into::into)?.to_bytes();
    Ok(Response::from_parts(head, body))
}

pub(crate) fn order(addr: SocketAddr, order: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post(format!("http://{addr}/orders"))
        .body(Full::new(order.into()))
        .unwrap()
}
