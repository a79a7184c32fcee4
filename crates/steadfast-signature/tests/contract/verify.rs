//! Nothing unsigned reaches the service, and what does is what was sent.

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use steadfast_core::{Body, facts::Verified};
use steadfast_signature::{
    FindKey, HmacScheme, KeyRing, Reason, Rejection, SecretToken, Secrets, SignatureVerifyLayer,
    VerifySignature,
};
use steadfast_testing::{
    ChunkedBody, ProbeHandle, ServiceProbe, assert_error, assert_service_contract,
    drop_at_every_await,
};
use tokio::{task::yield_now, time::sleep};
use tokio_test::{assert_pending, task};
use tower::{Layer as _, Service as _, ServiceExt as _, limit::ConcurrencyLimit};

use super::{Content, Hand, NOW, Probe, at, created, frozen, ready, running, secret, signed};

fn ring() -> KeyRing {
    KeyRing::new([
        ("key_1", secret().into()),
        ("default", Secrets::from(secret())),
    ])
    .unwrap()
}

fn layer(scheme: HmacScheme) -> SignatureVerifyLayer<HmacScheme, KeyRing> {
    SignatureVerifyLayer::new(scheme, ring()).clock(frozen())
}

fn payments(body: Content) -> Request<Content> {
    signed(&HmacScheme::payments(), "one", body)
}

/// What the layer answered, and whether the service was called.
async fn refused<K: FindKey>(
    layer: &SignatureVerifyLayer<HmacScheme, K>,
    request: Request<Content>,
) -> (u16, Option<Rejection>) {
    let probe = created();
    let seen = probe.handle();
    let response = layer.layer(probe).oneshot(request).await.unwrap();
    let rejection = response.extensions().get().copied();
    assert_eq!(seen.calls() == 0, rejection.is_some());
    seen.assert_quiescent();
    (response.status().as_u16(), rejection)
}

/// Keys behind something slow.
#[derive(Clone)]
struct Remote {
    wait: Duration,
    answer: Result<Option<Secrets>, Down>,
}

#[derive(Clone, Copy, Debug)]
struct Down;

impl std::fmt::Display for Down {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("down")
    }
}

impl std::error::Error for Down {}

impl FindKey for Remote {
    type Error = Down;

    async fn find(&self, _key_id: &str) -> Result<Option<Secrets>, Down> {
        sleep(self.wait).await;
        self.answer.clone()
    }
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
async fn s01_the_handler_reads_the_bytes_that_were_verified() {
    let trailers = HeaderMap::from_iter([(http::header::ETAG, HeaderValue::from_static("1"))]);
    let sent = trailers.clone();
    let probe: Probe = ServiceProbe::new(move |request: Request<Body<Content>>| {
        let sent = sent.clone();
        async move {
            let verified = request.extensions().get::<Verified>().unwrap().clone();
            assert_eq!(
                (verified.scheme(), verified.key_id()),
                ("payments", "key_1")
            );
            let freshness = verified.freshness().unwrap();
            assert_eq!(freshness.signed_at(), at(NOW));
            assert_eq!(freshness.until(), at(NOW + 30));
            assert_eq!(freshness.clock().now(), at(NOW));
            assert_eq!(verified.content().body(), "one");
            let body = request.into_body().collect().await.unwrap();
            assert_eq!(body.trailers(), Some(&sent));
            assert_eq!(body.to_bytes(), "one");
            Ok(Response::new(ChunkedBody::new(["done"])))
        }
    });
    for chunks in [vec!["one"], vec!["o", "", "n", "e"]] {
        let body = ChunkedBody::new(chunks)
            .trailers(trailers.clone())
            .pending();
        let service = layer(HmacScheme::payments()).layer(probe.clone());
        let response = service.oneshot(payments(body)).await.unwrap();
        assert_eq!(response.status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn s05_every_401_looks_the_same_and_says_how_to_do_better() {
    let layer = layer(HmacScheme::payments());
    let good = || payments(ChunkedBody::new(["one"]));
    let with = |name: &'static str, value: &'static str| {
        let mut request = good();
        request
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
        request
    };
    let without = |name: &str| {
        let mut request = good();
        request.headers_mut().remove(name);
        request
    };
    let mut first = None;
    for (request, reason) in [
        (without("x-signature"), Reason::Missing),
        (without("x-nonce"), Reason::Missing),
        (with("x-signature", "abc"), Reason::Malformed),
        (with("x-timestamp", "abc"), Reason::Malformed),
        (with("x-timestamp", "1600000000000"), Reason::Stale),
        (with("x-timestamp", "1800000000000"), Reason::Early),
        (with("x-nonce", "another"), Reason::Mismatch),
        (with("x-key-id", "nobody"), Reason::UnknownKey),
        (payments(ChunkedBody::new(["two"])), Reason::Mismatch),
        (payments(ChunkedBody::new(["one", "x"])), Reason::Mismatch),
        (payments(ChunkedBody::new([""; 0])), Reason::Mismatch),
    ] {
        let probe = created();
        let seen = probe.handle();
        let response = layer.layer(probe).oneshot(request).await.unwrap();
        assert_eq!(response.status(), 401);
        assert_eq!(seen.calls(), 0);
        let rejection = response.extensions().get();
        assert_eq!(rejection, Some(&Rejection::Unauthorized(reason)));
        assert_eq!(response.headers()["www-authenticate"], "Signature");
        let head = response.headers().clone();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let answer = (head, body);
        assert_eq!(first.get_or_insert_with(|| answer.clone()), &answer);
    }
}

#[tokio::test(start_paused = true)]
async fn pitfall_27_a_body_over_the_cap_is_refused_whatever_it_announces() {
    let layer = layer(HmacScheme::payments()).max_body(3);
    let fits = payments(ChunkedBody::new(["one"]));
    assert_eq!(refused(&layer, fits).await, (201, None));
    let mut lying = payments(ChunkedBody::new(["one"]));
    lying.headers_mut().insert("content-length", 4.into());
    let announced = payments(ChunkedBody::new(["one", "x"]).exact());
    let chunked = payments(ChunkedBody::new(["one", "x"]));
    for request in [lying, announced, chunked] {
        let meter = request.body().meter();
        let refused = refused(&layer, request).await;
        assert_eq!(refused, (413, Some(Rejection::BodyTooLarge)));
        assert!(meter.is_dropped());
    }
    // Without a signature nothing of it is read.
    let mut unsigned = payments(ChunkedBody::new(["one", "x"]));
    unsigned.headers_mut().remove("x-signature");
    let meter = unsigned.body().meter();
    assert_eq!(refused(&layer, unsigned).await.0, 401);
    assert_eq!(meter.polls(), 0);
}

#[tokio::test(start_paused = true)]
async fn s05_a_body_that_breaks_off_is_400() {
    let layer = layer(HmacScheme::payments());
    let refused = refused(&layer, payments(ChunkedBody::new(["one"]).error("cut"))).await;
    assert_eq!(refused, (400, Some(Rejection::BodyUnreadable)));
}

#[tokio::test(start_paused = true)]
async fn pitfall_34_a_body_is_not_waited_for_past_its_timestamp() {
    let start = tokio::time::Instant::now();
    let tolerant = layer(HmacScheme::payments()).read_timeout(Duration::from_secs(3600));
    let stalled = || payments(ChunkedBody::new(["on"]).stall());
    let stale = refused(&tolerant.clone().clock(running()), stalled()).await;
    assert_eq!(stale, (401, Some(Rejection::Unauthorized(Reason::Stale))));
    let waited = start.elapsed();
    assert!(
        waited > Duration::from_secs(30) && waited < Duration::from_secs(31),
        "{waited:?}"
    );
    // The wall clock stands still: the other limit holds.
    let late = refused(&tolerant, stalled()).await;
    assert_eq!(late, (408, Some(Rejection::BodyTimeout)));
}

#[tokio::test(start_paused = true)]
async fn s05_a_scheme_without_timestamps_has_its_timeout() {
    let layer = layer(HmacScheme::github()).read_timeout(Duration::from_secs(5));
    let request = signed(
        &HmacScheme::github(),
        "one",
        ChunkedBody::new(["on"]).stall(),
    );
    assert_eq!(
        refused(&layer, request).await,
        (408, Some(Rejection::BodyTimeout))
    );
}

#[tokio::test(start_paused = true)]
async fn pitfall_34_freshness_is_judged_again_behind_the_body() {
    let hand = Hand::new();
    let layer = layer(HmacScheme::payments()).clock(hand.clock());
    let probe = created();
    let seen = probe.handle();
    let body = ChunkedBody::new(["one"]).pending();
    let mut call = task::spawn(layer.layer(probe).oneshot(payments(body)));
    assert_pending!(call.poll());
    hand.turn(31);
    let response = call.await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(seen.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn s05_keys_that_cannot_be_asked_are_503_and_nothing_passes() {
    let known = Ok(Some(secret().into()));
    for (wait, answer, status) in [
        (0, known.clone(), 201),
        (1, known.clone(), 201),
        (3, known, 503),
        (0, Err(Down), 503),
        (1, Ok(None), 401),
    ] {
        let wait = Duration::from_secs(wait);
        let keys = Remote { wait, answer };
        let layer = SignatureVerifyLayer::new(HmacScheme::payments(), keys).clock(frozen());
        let request = payments(ChunkedBody::new(["one"]));
        assert_eq!(refused(&layer, request).await.0, status);
    }
    let none = KeyRing::new([("", Secrets::from(secret()))].into_iter().take(0)).unwrap();
    let layer = SignatureVerifyLayer::new(HmacScheme::payments(), none).clock(frozen());
    assert_eq!(
        refused(&layer, payments(ChunkedBody::new(["one"]))).await.0,
        401
    );
}

#[tokio::test(start_paused = true)]
async fn pitfall_35_an_unsigned_handshake_passes_where_it_is_said_so() {
    let layer = layer(HmacScheme::meta()).skip_when(|head| {
        let query = head.uri.query().unwrap_or_default();
        head.method == http::Method::GET && query.starts_with("hub.mode=subscribe")
    });
    let probe: Probe = ServiceProbe::new(|request: Request<Body<Content>>| async move {
        assert!(request.extensions().get::<Verified>().is_none());
        Ok(Response::new(ChunkedBody::new(["1158201444"])))
    });
    let seen = probe.handle();
    let mut service = layer.layer(probe);
    ready(&mut service).await.unwrap();
    let handshake = Request::get("/?hub.mode=subscribe&hub.challenge=1158201444");
    let response = service.call(handshake.body(ChunkedBody::new([""])).unwrap());
    assert_eq!(
        (seen.calls(), seen.unused_reservations()),
        (1, 0),
        "the very instance"
    );
    assert_eq!(response.await.unwrap().status(), 200);
    for other in [Request::post("/?hub.mode=subscribe"), Request::get("/")] {
        let other = other.body(ChunkedBody::new([""])).unwrap();
        assert_eq!(refused(&layer, other).await.0, 401);
    }
    drop(service);
    seen.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn a_key_can_be_named_by_the_path() {
    let scheme = HmacScheme::github;
    let keys = KeyRing::new([("orders", Secrets::from(secret()))]).unwrap();
    let layer = SignatureVerifyLayer::new(scheme(), keys)
        .clock(frozen())
        .key_id(|head| head.uri.path().strip_prefix('/').map(str::to_owned));
    let request = |path: &'static str| {
        let mut request = signed(&scheme(), "one", ChunkedBody::new(["one"]));
        *request.uri_mut() = path.parse().unwrap();
        request
    };
    assert_eq!(refused(&layer, request("/orders")).await, (201, None));
    let unknown = (401, Some(Rejection::Unauthorized(Reason::UnknownKey)));
    assert_eq!(refused(&layer, request("/others")).await, unknown);
    let nameless = layer.key_id(|_| None);
    assert_eq!(refused(&nameless, request("/orders")).await, unknown);
}

#[tokio::test(start_paused = true)]
async fn pitfall_36_a_scheme_chosen_at_run_time_verifies_too() {
    let schemes: [Arc<dyn steadfast_signature::Scheme>; 2] = [
        Arc::new(HmacScheme::github()),
        Arc::new(SecretToken::gitlab()),
    ];
    for scheme in schemes {
        let layer = SignatureVerifyLayer::new(scheme, ring());
        let mut request = signed(&HmacScheme::github(), "one", ChunkedBody::new(["one"]));
        let token = HeaderValue::from_static("a secret of 26 bytes or so");
        request.headers_mut().insert("x-gitlab-token", token);
        let response = layer.layer(created()).oneshot(request).await.unwrap();
        assert_eq!(response.status(), 201);
    }
}

#[tokio::test(start_paused = true)]
async fn readiness_is_that_of_the_service_inside_and_the_handler_is_readied_anew() {
    let probe: Probe = ServiceProbe::script([]).fail_ready(|| "dead");
    let mut dead = layer(HmacScheme::payments()).layer(probe);
    assert_eq!(ready(&mut dead).await, Err("dead"));

    let probe = created().pending_first(2);
    let seen = probe.handle();
    let mut service = layer(HmacScheme::payments()).layer(probe);
    ready(&mut service).await.unwrap();
    assert_eq!(seen.live_reservations(), 1);
    let call = service.call(payments(ChunkedBody::new(["one"])));
    assert_eq!((seen.live_reservations(), seen.calls()), (0, 0));
    assert_eq!(call.await.unwrap().status(), 201);
    assert_eq!((seen.calls(), seen.unused_reservations()), (1, 1));

    ready(&mut service).await.unwrap();
    let unsigned = Request::post("/").body(ChunkedBody::new([""])).unwrap();
    let refused = service.call(unsigned);
    assert_eq!(seen.live_reservations(), 0, "a refusal gives it back");
    assert_eq!(refused.await.unwrap().status(), 401);
    drop(service);
    seen.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn others_get_through_while_a_body_is_read() {
    let inner = ConcurrencyLimit::new(created(), 1);
    let layer = layer(HmacScheme::payments()).skip_when(|head| head.uri.path() == "/open");
    let mut service: VerifySignature<ConcurrencyLimit<Probe>, _, _> = layer.layer(inner);
    ready(&mut service).await.unwrap();
    let stalled = payments(ChunkedBody::new(["o"]).stall());
    let mut reading = task::spawn(service.call(stalled));
    assert_pending!(reading.poll());
    let open = Request::get("/open").body(ChunkedBody::new([""])).unwrap();
    let other = tokio::time::timeout(Duration::from_secs(1), service.oneshot(open)).await;
    assert_eq!(
        other.expect("the place is not taken").unwrap().status(),
        201
    );
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
        let wait = Duration::from_secs(1);
        let answer = Ok(Some(secret().into()));
        let keys = Remote { wait, answer };
        let layer = SignatureVerifyLayer::new(HmacScheme::payments(), keys).clock(frozen());
        let body = ChunkedBody::new(["o", "ne"]).pending();
        let meter = body.meter();
        let call: std::pin::Pin<Box<dyn Future<Output = _> + Send>> =
            Box::pin(layer.layer(probe).oneshot(payments(body)));
        (call, (seen, meter))
    };
    let places = drop_at_every_await(setup, async |(seen, meter): (ProbeHandle, _)| {
        let meter: steadfast_testing::BodyMeter = meter;
        assert_eq!(seen.completed(), 0);
        assert!(meter.is_dropped());
        seen.assert_quiescent();
    })
    .await;
    assert!(places >= 6, "{places}");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_service_is_the_callers() {
    let probe: Probe = ServiceProbe::new(|_request| std::future::ready(Err("refused")));
    let call = layer(HmacScheme::payments()).layer(probe);
    let error = call.oneshot(payments(ChunkedBody::new(["one"]))).await;
    assert_eq!(error.unwrap_err(), "refused");
}
