//! Each attempt is signed afresh, and what is sent is what was signed.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use steadfast_core::{Body, facts::CredentialGeneration};
use steadfast_signature::{
    HmacScheme, KeyRing, RefreshingKeys, SignError, SignRejection, SignRequestLayer,
    SignatureVerifyLayer, SigningKey, SigningKeys,
};
use steadfast_testing::{
    BodyMeter, ChunkedBody, ProbeHandle, ServiceProbe, assert_error, assert_service_contract,
    drop_at_every_await,
};
use tokio::{task::yield_now, time::sleep};
use tower::{Layer as _, Service as _, ServiceBuilder, ServiceExt as _};

use super::{Content, Hand, Probe, created, frozen, key, ready, running, secret};

fn layer(scheme: HmacScheme) -> SignRequestLayer<HmacScheme, SigningKey> {
    SignRequestLayer::new(scheme, key()).clock(frozen())
}

fn post(body: Content) -> Request<Content> {
    Request::post("/orders?dry_run=1").body(body).unwrap()
}

/// A probe that keeps the heads it saw.
fn keeping() -> (Probe, Arc<Mutex<Vec<HeaderMap>>>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heads);
    let probe = ServiceProbe::new(move |request: Request<Body<Content>>| {
        kept.lock().unwrap().push(request.headers().clone());
        std::future::ready(Ok(Response::new(ChunkedBody::new(["done"]))))
    });
    (probe, heads)
}

#[test]
fn it_is_clone_send_sync_and_static_and_changes_no_error() {
    let service = layer(HmacScheme::payments()).layer(created());
    assert_service_contract::<_, Request<Content>>(&service);
    assert_error::<_, Request<Content>, &str>(&service);
    let never: Probe<Infallible> = ServiceProbe::respond(|_| Response::new(ChunkedBody::new([""])));
    let service = layer(HmacScheme::payments()).layer(never);
    assert_error::<_, Request<Content>, Infallible>(&service);
}

#[tokio::test(start_paused = true)]
async fn s03_what_is_signed_here_is_verified_there() {
    let keys = || KeyRing::new([("key_1", secret().into()), ("default", secret().into())]).unwrap();
    for scheme in [
        HmacScheme::payments(),
        HmacScheme::slack(),
        HmacScheme::botix(),
    ] {
        let verify = SignatureVerifyLayer::new(scheme.clone(), keys()).clock(frozen());
        let probe: ServiceProbe<Body<Body<Content>>, Content, &'static str> =
            ServiceProbe::new(|request: Request<Body<Body<Content>>>| async move {
                let body = request.into_body().collect().await.unwrap();
                assert_eq!(body.to_bytes(), "one");
                Ok(Response::new(ChunkedBody::new(["done"])))
            });
        let both = ServiceBuilder::new()
            .layer(layer(scheme))
            .layer(verify)
            .service(probe);
        for chunks in [vec!["one"], vec!["o", "ne"]] {
            let response = both
                .clone()
                .oneshot(post(ChunkedBody::new(chunks)))
                .await
                .unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(response.extensions().get(), Some(&CredentialGeneration(0)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r12_pitfall_25_each_attempt_has_its_own_timestamp_and_nonce() {
    let hand = Hand::new();
    let (probe, heads) = keeping();
    let service = layer(HmacScheme::payments())
        .clock(hand.clock())
        .layer(probe);
    for _ in 0..3 {
        // As if an earlier attempt had left its headers.
        let mut request = post(ChunkedBody::new(["one"]));
        for name in ["x-signature", "x-timestamp", "x-nonce", "x-key-id"] {
            request
                .headers_mut()
                .append(name, HeaderValue::from_static("old"));
            request
                .headers_mut()
                .append(name, HeaderValue::from_static("older"));
        }
        service.clone().oneshot(request).await.unwrap();
        hand.turn(1);
    }
    let heads = heads.lock().unwrap();
    for name in ["x-signature", "x-timestamp", "x-nonce"] {
        let mut values: Vec<_> = heads.iter().map(|head| head[name].clone()).collect();
        values.sort();
        values.dedup();
        assert_eq!(values.len(), 3, "{name}");
    }
    for head in heads.iter() {
        assert_eq!(head.get_all("x-signature").iter().count(), 1);
        assert_eq!(head["x-key-id"], "key_1");
    }
}

#[tokio::test(start_paused = true)]
async fn pitfall_24_an_equal_request_waits_for_the_next_second() {
    let start = tokio::time::Instant::now();
    let (probe, heads) = keeping();
    let layer = layer(HmacScheme::slack()).clock(running());
    let service = layer.clone().layer(probe);
    let send = |body: &'static str| service.clone().oneshot(post(ChunkedBody::new([body])));
    send("one").await.unwrap();
    send("two").await.unwrap();
    assert!(start.elapsed() < Duration::from_millis(100), "they differ");
    send("one").await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
    let sent = heads.lock().unwrap().clone();
    assert_ne!(sent[0]["x-slack-signature"], sent[2]["x-slack-signature"]);

    let (probe, heads) = keeping();
    let service = layer.allow_equal_signatures().layer(probe);
    for _ in 0..2 {
        service
            .clone()
            .oneshot(post(ChunkedBody::new(["one"])))
            .await
            .unwrap();
    }
    let sent = heads.lock().unwrap();
    assert_eq!(sent[0]["x-slack-signature"], sent[1]["x-slack-signature"]);
}

#[tokio::test(start_paused = true)]
async fn pitfall_24_nobody_waits_with_a_nonce_or_for_a_clock_that_stands() {
    let start = tokio::time::Instant::now();
    for scheme in [
        HmacScheme::payments(),
        HmacScheme::github(),
        HmacScheme::slack(),
    ] {
        let service = layer(scheme).layer(created());
        for _ in 0..2 {
            service
                .clone()
                .oneshot(post(ChunkedBody::new(["one"])))
                .await
                .unwrap();
        }
    }
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_signed_is_not_sent() {
    let small = layer(HmacScheme::payments()).max_body(3);
    let too_long = SignRejection::BodyTooLarge;
    let no_id = SignRejection::Unsignable(SignError::MissingId);
    for (layer, body, status, rejection) in [
        (small.clone(), ChunkedBody::new(["one", "x"]), 413, too_long),
        (
            small.clone(),
            ChunkedBody::new(["one", "x"]).exact(),
            413,
            too_long,
        ),
        (
            small,
            ChunkedBody::new(["on"]).error("cut"),
            400,
            SignRejection::BodyUnreadable,
        ),
        (
            layer(HmacScheme::standard_webhooks()),
            ChunkedBody::new(["one"]),
            400,
            no_id,
        ),
    ] {
        let probe = created();
        let seen = probe.handle();
        let response = layer.layer(probe).oneshot(post(body)).await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(response.extensions().get(), Some(&rejection));
        assert_eq!(response.extensions().get::<CredentialGeneration>(), None);
        assert_eq!(seen.calls(), 0);
        seen.assert_quiescent();
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_keeps_its_length_and_its_trailers() {
    let trailers = HeaderMap::from_iter([(http::header::ETAG, HeaderValue::from_static("1"))]);
    for exact in [true, false] {
        let sent = trailers.clone();
        let probe: Probe = ServiceProbe::new(move |request: Request<Body<Content>>| {
            let sent = sent.clone();
            async move {
                let body = request.into_body();
                assert_eq!(body.size_hint().exact(), exact.then_some(3));
                assert_eq!(body.collect().await.unwrap().trailers(), Some(&sent));
                Ok(Response::new(ChunkedBody::new(["done"])))
            }
        });
        let mut body = ChunkedBody::new(["o", "ne"]).trailers(trailers.clone());
        if exact {
            body = body.exact();
        }
        layer(HmacScheme::payments())
            .layer(probe)
            .oneshot(post(body))
            .await
            .unwrap();
    }
}

#[derive(Debug, thiserror::Error)]
#[error("no key")]
struct NoKey;

type Fetching = Pin<Box<dyn Future<Output = Result<SigningKey, NoKey>> + Send>>;

/// A source that counts, takes a second, and gives no key at first if it is told so.
fn counting(failures: u32) -> (RefreshingKeys<impl Fn() -> Fetching>, Arc<AtomicU32>) {
    let fetched = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&fetched);
    let keys = RefreshingKeys::new(move || {
        let fetched = count.fetch_add(1, Ordering::SeqCst);
        let fetching: Fetching = Box::pin(async move {
            sleep(Duration::from_secs(1)).await;
            if fetched < failures {
                return Err(NoKey);
            }
            Ok(SigningKey::new(format!("key_{fetched}"), secret()))
        });
        fetching
    });
    (keys, fetched)
}

#[tokio::test(start_paused = true)]
async fn however_many_get_401_together_the_key_is_fetched_once() {
    let (keys, fetched) = counting(0);
    let probe: Probe = ServiceProbe::new(|request: Request<Body<Content>>| async move {
        let status = if request.headers()["x-key-id"] == "key_0" {
            401
        } else {
            200
        };
        let body = ChunkedBody::new(["done"]);
        Ok(Response::builder().status(status).body(body).unwrap())
    });
    let layer = SignRequestLayer::new(HmacScheme::payments(), keys).clock(frozen());
    let service = layer.layer(probe);
    let all = async |status, generation| {
        let calls: Vec<_> = (0..50)
            .map(|_| tokio::spawn(service.clone().oneshot(post(ChunkedBody::new(["one"])))))
            .collect();
        for call in calls {
            let response = call.await.unwrap().unwrap();
            assert_eq!(response.status(), status);
            let generation = CredentialGeneration(generation);
            assert_eq!(response.extensions().get(), Some(&generation));
        }
    };
    all(401, 1).await;
    assert_eq!(fetched.load(Ordering::SeqCst), 1);
    sleep(Duration::from_secs(2)).await;
    all(200, 2).await;
    all(200, 2).await;
    assert_eq!(fetched.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_not_fetched_again_and_again() {
    let (keys, fetched) = counting(0);
    let (_, generation) = keys.current().await.unwrap();
    keys.refused(generation);
    keys.current().await.unwrap();
    assert_eq!(
        fetched.load(Ordering::SeqCst),
        1,
        "it has only just been fetched"
    );
    sleep(Duration::from_secs(1)).await;
    let (_, newer) = keys.current().await.unwrap();
    assert!(newer > generation);
    // What the server says of the old key is no news.
    sleep(Duration::from_secs(1)).await;
    keys.refused(generation);
    keys.current().await.unwrap();
    assert_eq!(fetched.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_key_nothing_is_sent_and_the_next_call_asks_again() {
    let (keys, fetched) = counting(1);
    let probe = created();
    let seen = probe.handle();
    let service = SignRequestLayer::new(HmacScheme::payments(), keys.clone()).layer(probe);
    let send = || service.clone().oneshot(post(ChunkedBody::new(["one"])));
    let response = send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(
        response.extensions().get(),
        Some(&SignRejection::KeyUnavailable)
    );
    assert_eq!(seen.calls(), 0);
    // Whoever fetches is dropped: the next one fetches.
    let dropped = tokio::time::timeout(Duration::from_millis(10), keys.current()).await;
    assert!(dropped.is_err());
    assert_eq!(send().await.unwrap().status(), 201);
    assert_eq!(fetched.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn the_service_is_readied_anew_and_no_place_is_held_meanwhile() {
    let probe: Probe = ServiceProbe::script([]).fail_ready(|| "dead");
    let mut dead = layer(HmacScheme::payments()).layer(probe);
    assert_eq!(ready(&mut dead).await, Err("dead"));

    let probe = created().pending_first(2);
    let seen = probe.handle();
    let mut service = layer(HmacScheme::payments()).layer(probe);
    ready(&mut service).await.unwrap();
    let call = service.call(post(ChunkedBody::new(["one"])));
    assert_eq!((seen.live_reservations(), seen.calls()), (0, 0));
    assert_eq!(call.await.unwrap().status(), 201);
    drop(service);
    seen.assert_quiescent();

    // While the next second is waited for.
    let probe = created();
    let seen = probe.handle();
    let service = layer(HmacScheme::slack()).clock(running()).layer(probe);
    let send = || service.clone().oneshot(post(ChunkedBody::new(["one"])));
    send().await.unwrap();
    let waiting = tokio::spawn(send());
    sleep(Duration::from_millis(10)).await;
    assert_eq!((seen.live_reservations(), seen.calls()), (0, 1));
    waiting.await.unwrap().unwrap();
    assert_eq!(seen.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_leaves_nothing_behind_wherever_it_is_dropped() {
    let setup = async || {
        let probe: Probe = ServiceProbe::new(|_request| async {
            yield_now().await;
            Ok(Response::new(ChunkedBody::new(["done"])))
        })
        .pending_first(2);
        let seen = probe.handle();
        let (keys, _) = counting(0);
        let layer = SignRequestLayer::new(HmacScheme::payments(), keys).clock(frozen());
        let body = ChunkedBody::new(["o", "ne"]).pending();
        let meter = body.meter();
        let call = Box::pin(layer.layer(probe).oneshot(post(body)));
        (call, (seen, meter))
    };
    let places = drop_at_every_await(setup, async |(seen, meter): (ProbeHandle, BodyMeter)| {
        assert_eq!(seen.completed(), 0);
        assert!(meter.is_dropped());
        seen.assert_quiescent();
    })
    .await;
    assert!(places >= 6, "{places}");
}
