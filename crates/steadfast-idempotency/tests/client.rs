//! The client's half: one key a logical call (I01–I05).

use std::{
    collections::HashSet,
    convert::Infallible,
    future::ready,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use steadfast_core::{
    Body, Clock, Operations, RoutePattern,
    facts::{CallReport, KeyCreated, OperationClass, Replayed},
};
use steadfast_headers::{IdempotencyKey, KeyRules};
use steadfast_idempotency::{IdempotencyKeyLayer, KeyKind, KeyRejection};
use tower::{Layer as _, Service, ServiceExt as _, service_fn, util::BoxCloneSyncService};

type Sent = Arc<Mutex<Vec<Request<()>>>>;
type Network = BoxCloneSyncService<Request<()>, Response<Empty<Bytes>>, Infallible>;
type Answer = Response<Body<Empty<Bytes>>>;

/// What reaches the network.
fn network(sent: &Sent) -> Network {
    let sent = Arc::clone(sent);
    BoxCloneSyncService::new(service_fn(move |request: Request<()>| {
        let replayed = request.headers().get("x-replayed").cloned();
        sent.lock().unwrap().push(request);
        let mut response = Response::new(Empty::new());
        if let Some(replayed) = replayed {
            response
                .headers_mut()
                .insert("idempotent-replayed", replayed);
        }
        ready(Ok(response))
    }))
}

async fn call(layer: &IdempotencyKeyLayer, request: Request<()>) -> (Option<Request<()>>, Answer) {
    let sent = Sent::default();
    let response = layer.layer(network(&sent)).oneshot(request).await.unwrap();
    let request = sent.lock().unwrap().pop();
    (request, response)
}

fn request(method: Method, path: &str) -> Request<()> {
    Request::builder()
        .method(method)
        .uri(path)
        .body(())
        .unwrap()
}

fn key_of(request: &Request<()>) -> &str {
    request.headers()["idempotency-key"].to_str().unwrap()
}

fn class_of(request: &Request<()>) -> Option<OperationClass> {
    request.extensions().get().copied()
}

fn own(key: &str) -> IdempotencyKey {
    IdempotencyKey::new(key, &KeyRules::LOOSE).unwrap()
}

#[tokio::test]
async fn i01_post_and_patch_get_a_key_and_are_repeatable() {
    for method in [Method::POST, Method::PATCH] {
        let (sent, _) = call(&IdempotencyKeyLayer::new(), request(method, "/")).await;
        let sent = sent.unwrap();
        assert_eq!(key_of(&sent).len(), 36);
        assert_eq!(sent.extensions().get(), Some(&own(key_of(&sent))));
        assert_eq!(class_of(&sent), Some(OperationClass::RepeatableWithKey));
    }
}

#[tokio::test]
async fn i01_other_methods_are_left_alone() {
    for method in [
        Method::GET,
        Method::HEAD,
        Method::PUT,
        Method::DELETE,
        Method::OPTIONS,
    ] {
        let (sent, response) = call(&IdempotencyKeyLayer::new(), request(method, "/")).await;
        let sent = sent.unwrap();
        assert!(sent.headers().is_empty());
        assert_eq!(class_of(&sent), None);
        assert!(response.extensions().get::<Replayed>().is_none());
    }
}

#[tokio::test]
async fn i01_a_ulid_or_quotes_on_request() {
    let layer = IdempotencyKeyLayer::new().kind(KeyKind::Ulid).quoted();
    let (sent, _) = call(&layer, request(Method::POST, "/")).await;
    let sent = sent.unwrap();
    assert_eq!(key_of(&sent).len(), 28);
    assert!(key_of(&sent).starts_with('"'));
}

#[tokio::test]
async fn i02_two_calls_get_two_keys() {
    let sent = Sent::default();
    let mut client = IdempotencyKeyLayer::new().layer(network(&sent));
    for _ in 0..100 {
        let client = client.ready().await.unwrap();
        client.call(request(Method::POST, "/")).await.unwrap();
    }
    let sent = sent.lock().unwrap();
    let keys: HashSet<&str> = sent.iter().map(key_of).collect();
    assert_eq!(keys.len(), 100);
}

#[tokio::test]
async fn i03_a_key_in_the_extensions_wins() {
    let mut mine = request(Method::POST, "/");
    mine.extensions_mut().insert(own("invoice:inv_4192"));
    let (sent, response) = call(&IdempotencyKeyLayer::new(), mine).await;
    let sent = sent.unwrap();
    assert_eq!(key_of(&sent), "invoice:inv_4192");
    assert_eq!(response.extensions().get(), Some(&own("invoice:inv_4192")));
    assert!(sent.extensions().get::<KeyCreated>().is_none());
}

#[tokio::test]
async fn i03_a_key_in_the_header_wins_and_stays_as_it_was_written() {
    for written in ["mine", "\"mine\""] {
        let mut mine = request(Method::PUT, "/");
        mine.headers_mut()
            .insert("idempotency-key", written.parse().unwrap());
        let (sent, _) = call(&IdempotencyKeyLayer::new(), mine).await;
        let sent = sent.unwrap();
        assert_eq!(key_of(&sent), written);
        assert_eq!(sent.extensions().get(), Some(&own("mine")));
        assert_eq!(class_of(&sent), Some(OperationClass::RepeatableWithKey));
    }
}

#[tokio::test]
async fn i03_a_bad_key_is_answered_with_400_and_nothing_is_sent() {
    let cases: [&[&str]; 4] = [&["a", "a"], &[""], &["a,b"], &["\"a"]];
    for keys in cases {
        let mut bad = request(Method::POST, "/");
        for key in keys {
            bad.headers_mut()
                .append("idempotency-key", key.parse().unwrap());
        }
        let (sent, response) = call(&IdempotencyKeyLayer::new(), bad).await;
        assert!(sent.is_none(), "{keys:?}");
        assert_eq!(response.status(), 400);
        let reason = response.extensions().get();
        assert!(matches!(reason, Some(KeyRejection::Invalid(_))));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("idempotency_key_invalid"));
    }
}

#[tokio::test]
async fn i03_a_key_in_the_extensions_is_validated_too() {
    let mut bad = request(Method::POST, "/");
    bad.extensions_mut().insert(own("invoice:1"));
    let layer = IdempotencyKeyLayer::new().key_rules(KeyRules::DEFAULT);
    let (sent, response) = call(&layer, bad).await;
    assert!(sent.is_none());
    assert_eq!(response.status(), 400);
}

#[tokio::test]
async fn i03_two_keys_that_differ_are_refused() {
    let mut bad = request(Method::POST, "/");
    bad.extensions_mut().insert(own("a"));
    bad.headers_mut()
        .insert("idempotency-key", "b".parse().unwrap());
    let (sent, response) = call(&IdempotencyKeyLayer::new(), bad).await;
    assert!(sent.is_none());
    assert_eq!(response.extensions().get(), Some(&KeyRejection::Differs));
}

#[tokio::test]
async fn i05_a_minted_key_is_dated() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_478_400);
    let layer = IdempotencyKeyLayer::new().clock(Clock::from_fn(move || now));
    let (sent, _) = call(&layer, request(Method::POST, "/")).await;
    assert_eq!(sent.unwrap().extensions().get(), Some(&KeyCreated(now)));
}

#[tokio::test]
async fn r01_the_table_and_the_extension_say_what_a_repeat_means() {
    let route = |path| RoutePattern::parse(path).unwrap();
    let cancel = route("/emails/*/cancel");
    let operations = Operations::new()
        .route(Method::POST, cancel, OperationClass::NaturallyIdempotent)
        .route(
            Method::POST,
            route("/transfers"),
            OperationClass::NotRepeatable,
        );
    let layer = IdempotencyKeyLayer::new().operations(operations);
    for (path, class) in [
        ("/emails/1/cancel", OperationClass::NaturallyIdempotent),
        ("/transfers", OperationClass::NotRepeatable),
        ("/emails", OperationClass::RepeatableWithKey),
    ] {
        let (sent, _) = call(&layer, request(Method::POST, path)).await;
        assert_eq!(class_of(&sent.unwrap()), Some(class), "{path}");
    }
    let mut said = request(Method::POST, "/emails/1/cancel");
    said.extensions_mut().insert(OperationClass::NotRepeatable);
    let (sent, _) = call(&layer, said).await;
    assert_eq!(
        class_of(&sent.unwrap()),
        Some(OperationClass::NotRepeatable)
    );
}

#[tokio::test]
async fn i01_where_only_listed_routes_honour_keys_others_get_no_license() {
    let emails = RoutePattern::parse("/emails").unwrap();
    let operations =
        Operations::new().route(Method::POST, emails, OperationClass::RepeatableWithKey);
    let layer = IdempotencyKeyLayer::new()
        .operations(operations)
        .only_where_listed();
    let (sent, _) = call(&layer, request(Method::POST, "/emails")).await;
    let class = class_of(&sent.unwrap());
    assert_eq!(class, Some(OperationClass::RepeatableWithKey));

    let (sent, _) = call(&layer, request(Method::POST, "/contacts")).await;
    let sent = sent.unwrap();
    assert!(sent.headers().is_empty());
    assert_eq!(class_of(&sent), None);

    let mut mine = request(Method::POST, "/contacts");
    mine.extensions_mut().insert(own("mine"));
    let (sent, _) = call(&layer, mine).await;
    let sent = sent.unwrap();
    assert_eq!(key_of(&sent), "mine");
    assert_eq!(class_of(&sent), Some(OperationClass::NotRepeatable));
}

#[tokio::test]
async fn c7_a_replay_is_told_apart() {
    let marks = [
        ("1", true),
        ("true", true),
        ("?1", true),
        ("0", false),
        ("?0", false),
    ];
    for (mark, replayed) in marks {
        let mut marked = request(Method::POST, "/");
        marked
            .headers_mut()
            .insert("x-replayed", mark.parse().unwrap());
        let (_, response) = call(&IdempotencyKeyLayer::new(), marked).await;
        assert_eq!(
            response.extensions().get(),
            Some(&Replayed(replayed)),
            "{mark}"
        );
    }
    let (_, response) = call(&IdempotencyKeyLayer::new(), request(Method::POST, "/")).await;
    assert_eq!(response.extensions().get(), Some(&Replayed(false)));
}

#[tokio::test]
async fn c6_the_report_holds_the_key_even_when_the_call_fails() {
    let report = CallReport::new();
    let mut failing = request(Method::POST, "/");
    failing.extensions_mut().insert(report.clone());
    failing.extensions_mut().insert(own("mine"));
    let network = service_fn(|_: Request<()>| ready(Err::<Response<Empty<Bytes>>, _>("reset")));
    let client = IdempotencyKeyLayer::new().layer(network);
    assert_eq!(client.oneshot(failing).await.unwrap_err(), "reset");
    assert_eq!(report.snapshot().key, Some(own("mine")));
}

#[tokio::test]
async fn a_service_that_cannot_fail_still_cannot() {
    fn infallible<S>(_: S)
    where
        S: Service<Request<()>, Error = Infallible> + Clone + Send + Sync + 'static,
    {
    }
    infallible(IdempotencyKeyLayer::new().layer(network(&Sent::default())));
}
