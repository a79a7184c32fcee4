//! Attempts to break the client's layer: hostile keys, refused calls, many tasks.

use std::{
    collections::HashSet,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::HeaderMap};
use http_body_util::{BodyExt as _, Full};
use steadfast_core::facts::CallReport;
use steadfast_headers::{IDEMPOTENCY_KEY, IdempotencyKey, KeyRules};
use steadfast_idempotency::{IdempotencyKeyLayer, KeyRejection};
use steadfast_testing::ServiceProbe;
use tower::{Layer as _, Service as _, ServiceExt as _};

type Network = ServiceProbe<(), Full<Bytes>, Infallible>;

fn network() -> (Network, Arc<Mutex<Vec<HeaderMap>>>) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&sent);
    let network = ServiceProbe::respond(move |request: Request<()>| {
        record.lock().unwrap().push(request.headers().clone());
        Response::new(Full::default())
    });
    (network, sent)
}

fn with_lines<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Request<()> {
    let mut request = Request::post("/").body(()).unwrap();
    for line in lines {
        let line = HeaderValue::from_bytes(line).unwrap();
        request.headers_mut().append(IDEMPOTENCY_KEY, line);
    }
    request
}

#[tokio::test]
async fn i03_a_refused_call_gives_the_reservation_back() {
    let (network, sent) = network();
    let probe = network.handle();
    let mut client = IdempotencyKeyLayer::new().layer(network);
    let response = client
        .ready()
        .await
        .unwrap()
        .call(with_lines([&b""[..]]))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    // The client lives on, and holds nothing that another one may wait for.
    probe.assert_quiescent();
    client
        .ready()
        .await
        .unwrap()
        .call(with_lines([]))
        .await
        .unwrap();
    assert_eq!(sent.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn i03_hostile_keys_are_refused_and_never_shown() {
    let long = b"s3cret".repeat(2_000);
    let twice: [&[u8]; 2] = [b"s3cret", b"s3cret"];
    let many = vec![&b"s3cret"[..]; 1_000];
    for request in [
        with_lines([&long[..]]),
        with_lines(twice),
        with_lines(many),
        with_lines([&b"s3cret\xff\xfe"[..]]),
        with_lines([&b"\"s3cret\"; v=1"[..]]),
        with_lines([&b"s3cret, s3cret"[..]]),
        with_lines([&b"\"s3cret\\"[..]]),
        with_lines([&b"s3 cret"[..]]),
    ] {
        let (network, sent) = network();
        let client = IdempotencyKeyLayer::new().layer(network);
        let response = client.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        let why = response.extensions().get::<KeyRejection>();
        assert!(!format!("{why:?} {response:?}").contains("s3"));
        assert!(why.is_some());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(!String::from_utf8_lossy(&body).contains("s3"));
        assert_eq!(sent.lock().unwrap().len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i02_clones_in_many_tasks_mint_one_key_a_call() {
    let (network, sent) = network();
    let client = IdempotencyKeyLayer::new().layer(network);
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let report = CallReport::new();
            let mut request = with_lines([]);
            request.extensions_mut().insert(report.clone());
            let call = client.clone().oneshot(request);
            tokio::spawn(async move {
                let response = call.await.unwrap();
                let key = response.extensions().get::<IdempotencyKey>().cloned();
                assert_eq!(key, report.snapshot().key);
                key.unwrap()
            })
        })
        .collect();
    let mut keys = HashSet::new();
    for call in calls {
        assert!(keys.insert(call.await.unwrap()));
    }
    let sent = sent.lock().unwrap();
    let sent: HashSet<_> = sent
        .iter()
        .map(|headers| KeyRules::DEFAULT.from_headers(headers, &IDEMPOTENCY_KEY))
        .map(|key| key.unwrap().unwrap())
        .collect();
    assert_eq!(sent, keys);
}

#[tokio::test]
async fn i01_a_second_layer_keeps_the_key_of_the_first() {
    let (network, sent) = network();
    let own = http::HeaderName::from_static("x-request-key");
    let inner = IdempotencyKeyLayer::new()
        .key_header(own.clone())
        .layer(network);
    let client = IdempotencyKeyLayer::new().layer(inner);
    client.oneshot(with_lines([])).await.unwrap();
    let sent = sent.lock().unwrap();
    assert_eq!(sent[0].get(&own), sent[0].get(IDEMPOTENCY_KEY));
    assert!(sent[0].contains_key(&own));
}
