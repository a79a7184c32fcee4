//! Signed requests through the whole stack: signed afresh for each attempt, verified as they came over the wire.

use std::{
    collections::HashSet,
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::post,
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use steadfast::{
    core::facts::{RetryReport, Verified},
    idempotency::IdempotencyKeyLayer,
    retry::{Backoff, Budget, Profile, RateLimitAwareRetryLayer},
    signature::{
        HmacScheme, KeyRing, RefreshingKeys, Secret, SignRequestLayer, SignatureVerifyLayer,
        SigningKey, SigningKeys,
    },
};
use tokio::{sync::Barrier, task::yield_now};
use tower::{ServiceBuilder, ServiceExt as _, service_fn, util::BoxCloneSyncService};
use tower_http::decompression::RequestDecompressionLayer;

use crate::shop::{Ledger, Server, Shop, order, routes, whole};

fn secret(generation: u32) -> Secret {
    Secret::from_bytes(format!("the secret of generation {generation}")).unwrap()
}

/// The server knows the key of this generation only.
fn ring(generation: u32) -> KeyRing {
    KeyRing::new([("key_1", secret(generation).into())]).unwrap()
}

fn key(generation: u32) -> SigningKey {
    SigningKey::new("key_1", secret(generation))
}

fn verify(keys: KeyRing) -> SignatureVerifyLayer<HmacScheme, KeyRing> {
    SignatureVerifyLayer::new(HmacScheme::payments(), keys)
}

fn retry() -> RateLimitAwareRetryLayer {
    RateLimitAwareRetryLayer::with_profile(Profile::payments())
        .backoff(Backoff::exponential(
            Duration::from_millis(5),
            Duration::from_millis(100),
        ))
        .budget(Budget::unlimited())
}

fn sign<K: SigningKeys>(keys: K) -> SignRequestLayer<HmacScheme, K> {
    SignRequestLayer::new(HmacScheme::payments(), keys)
}

/// A client in the documented order.
fn signing_shop(keys: impl SigningKeys) -> Shop {
    let client = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new())
        .layer(retry())
        .layer(sign(keys))
        .service(Client::builder(TokioExecutor::new()).build_http());
    BoxCloneSyncService::new(service_fn(move |request| {
        let client = client.clone();
        async move { whole(client.oneshot(request).await).await }
    }))
}

fn attempts(answer: &http::Response<Bytes>) -> u32 {
    answer.extensions().get::<RetryReport>().unwrap().attempts
}

/// Takes each signed content once.
async fn once(
    State(seen): State<Arc<Mutex<HashSet<[u8; 32]>>>>,
    request: Request,
    next: Next,
) -> Response {
    let signed = request.extensions().get::<Verified>().unwrap();
    let first = seen.lock().unwrap().insert(signed.content().digest());
    if first {
        next.run(request).await
    } else {
        StatusCode::CONFLICT.into_response()
    }
}

/// A server that is not well for the first two calls, and takes none twice.
async fn recovering() -> Server {
    let calls = Arc::new(AtomicU32::new(0));
    let handler = move || async move {
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::CREATED,
        }
    };
    let app = Router::new()
        .route("/orders", post(handler))
        .layer(from_fn_with_state(Arc::default(), once))
        .layer(verify(ring(0)));
    Server::start(app).await
}

#[tokio::test]
async fn r12_each_attempt_is_signed_afresh_and_none_is_refused_as_a_replay() {
    let server = recovering().await;
    let answer = signing_shop(key(0)).oneshot(order(server.addr, "tea"));
    let answer = answer.await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!(attempts(&answer), 3);
}

#[tokio::test]
async fn r12_a_signature_outside_the_retry_would_look_like_a_replay() {
    let server = recovering().await;
    let client = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new())
        .layer(sign(key(0)))
        .layer(retry())
        .service(Client::builder(TokioExecutor::new()).build_http());
    let answer = whole(client.oneshot(order(server.addr, "tea")).await).await;
    assert_eq!(answer.unwrap().status(), StatusCode::CONFLICT);
}

/// A source whose keys get newer with each time it is asked, and how often that was.
fn rotating() -> (impl SigningKeys, Arc<AtomicU32>) {
    let fetched = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&fetched);
    let keys = RefreshingKeys::new(move || {
        let generation = count.fetch_add(1, Ordering::SeqCst);
        async move {
            // Long enough for all that wait to be seen waiting.
            for _ in 0..100 {
                yield_now().await;
            }
            Ok::<_, Infallible>(key(generation))
        }
    });
    (keys.min_interval(Duration::ZERO), fetched)
}

#[tokio::test]
async fn r03_after_a_401_the_request_is_signed_with_the_new_key_once() {
    for (servers_key, status, fetches) in [
        (0, StatusCode::CREATED, 1),
        (1, StatusCode::CREATED, 2),
        (2, StatusCode::UNAUTHORIZED, 2),
    ] {
        let ledger = Ledger::open();
        let server = Server::start(routes(&ledger).layer(verify(ring(servers_key)))).await;
        let (keys, fetched) = rotating();
        let answer = signing_shop(keys).oneshot(order(server.addr, "tea"));
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), status);
        assert_eq!(attempts(&answer), fetches);
        assert_eq!(fetched.load(Ordering::SeqCst), fetches);
        assert_eq!(
            ledger.count("tea"),
            u32::from(status == StatusCode::CREATED)
        );
    }
}

const TOGETHER: usize = 32;

/// Lets the first calls go on when all of them have come.
async fn together(
    State((arrived, barrier)): State<(Arc<AtomicU32>, Arc<Barrier>)>,
    request: Request,
    next: Next,
) -> Response {
    if (arrived.fetch_add(1, Ordering::SeqCst) as usize) < TOGETHER {
        barrier.wait().await;
    }
    next.run(request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_many_get_401_together_the_key_is_fetched_once() {
    let ledger = Ledger::open();
    let gate = (Arc::default(), Arc::new(Barrier::new(TOGETHER)));
    let app = routes(&ledger)
        .layer(verify(ring(1)))
        .layer(from_fn_with_state(gate, together));
    let server = Server::start(app).await;
    let (keys, fetched) = rotating();
    let shop = signing_shop(keys);
    let calls = stream::iter(0..TOGETHER).map(|n| {
        let request = order(server.addr, format!("order {n}"));
        shop.clone().oneshot(request)
    });
    let answers: Vec<_> = calls.buffer_unordered(TOGETHER).collect().await;
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
        assert_eq!(attempts(&answer), 2);
    }
    assert_eq!(fetched.load(Ordering::SeqCst), 2);
    assert_eq!(ledger.counts(), vec![1; TOGETHER]);
}

#[tokio::test]
async fn s02_under_nested_routers_the_path_counts_as_the_client_sent_it() {
    let ledger = Ledger::open();
    let shop = Router::new().nest("/shop", routes(&ledger).layer(verify(ring(0))));
    let server = Server::start(Router::new().nest("/v1", shop)).await;
    let path = "/v1/shop/orders?dry_run=false";
    for (signed, status) in [
        (path, StatusCode::CREATED),
        ("/orders?dry_run=false", StatusCode::UNAUTHORIZED),
        ("/v1/shop/orders", StatusCode::UNAUTHORIZED),
        ("/v1/shop/orders?dry_run=true", StatusCode::UNAUTHORIZED),
    ] {
        // Somebody on the way moves the request.
        let client = ServiceBuilder::new()
            .layer(sign(key(0)))
            .map_request(move |mut request: http::Request<_>| {
                *request.uri_mut() = uri(server.addr, path);
                request
            })
            .service(Client::builder(TokioExecutor::new()).build_http());
        let mut request = order(server.addr, "tea");
        *request.uri_mut() = uri(server.addr, signed);
        let answer = whole(client.oneshot(request).await).await.unwrap();
        assert_eq!(answer.status(), status, "{signed}");
    }
    assert_eq!(ledger.count("tea"), 1);
}

fn uri(addr: SocketAddr, path: &str) -> http::Uri {
    format!("http://{addr}{path}").parse().unwrap()
}

/// `tea`, compressed.
const GZIPPED: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x2bIM\x04\x00\xb2\xd7\x86\x8e\x03\x00\x00\x00";

/// What comes of a signed order that is compressed.
async fn compressed(app: Router) -> StatusCode {
    let server = Server::start(app).await;
    let mut request = order(server.addr, GZIPPED);
    let gzip = http::HeaderValue::from_static("gzip");
    request.headers_mut().insert("content-encoding", gzip);
    let answer = signing_shop(key(0)).oneshot(request).await;
    answer.unwrap().status()
}

#[tokio::test]
async fn pitfall_28_the_signature_is_of_the_bytes_on_the_wire() {
    let ledger = Ledger::open();
    let verify_outside = routes(&ledger)
        .layer(RequestDecompressionLayer::new())
        .layer(verify(ring(0)));
    assert_eq!(compressed(verify_outside).await, StatusCode::CREATED);
    assert_eq!(ledger.count("tea"), 1);

    let verify_inside = routes(&ledger)
        .layer(verify(ring(0)))
        .layer(RequestDecompressionLayer::new());
    assert_eq!(compressed(verify_inside).await, StatusCode::UNAUTHORIZED);
    assert_eq!(ledger.count("tea"), 1);
}
