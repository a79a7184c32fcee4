//! The guard behind the layer that verifies: what is signed once is good once, however its signature is spelled.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use steadfast_core::{Body, Clock};
use steadfast_replay::{Duplicate, MemoryStore, Rejection, ReplayGuardLayer};
use steadfast_signature::{
    HmacScheme, KeyRing, Scheme as _, Secret, Secrets, SignatureVerifyLayer, SigningKey, Stamp,
};
use tower::{Layer as _, Service, ServiceExt as _, service_fn, util::BoxCloneService};

type Content = Full<Bytes>;
type Server = BoxCloneService<Request<Content>, Answer, Infallible>;
type Answer = Response<Body<Body<Content>>>;

const NOW: u64 = 1_700_000_000;

/// A server with a wall clock that tests turn, and a handler that counts.
struct Guarded {
    scheme: HmacScheme,
    now: Arc<Mutex<Duration>>,
    keys: KeyRing,
    runs: Arc<AtomicUsize>,
    server: Server,
}

#[derive(Clone, Copy)]
enum Mode {
    OneShot,
    Events,
}

fn secret(n: u8) -> Secret {
    Secret::from_bytes(vec![n; 32]).unwrap()
}

impl Guarded {
    fn new(scheme: HmacScheme, key_id: Option<&'static str>, mode: Mode) -> Self {
        let now = Arc::new(Mutex::new(Duration::from_secs(NOW)));
        let both = Secrets::new([secret(1), secret(2)]).unwrap();
        let keys = match key_id {
            Some(id) => KeyRing::new([(id, both)]).unwrap(),
            None => KeyRing::single(both),
        };
        let hand = Arc::clone(&now);
        let verify = SignatureVerifyLayer::new(scheme.clone(), keys.clone()).clock(Clock::from_fn(
            move || SystemTime::UNIX_EPOCH + *hand.lock().unwrap(),
        ));
        let runs = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&runs);
        let handler = service_fn(move |_request| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, Infallible>(Response::new(Content::default())) }
        });
        let store = MemoryStore::new(1_000);
        let server = match mode {
            Mode::OneShot => boxed(verify.layer(ReplayGuardLayer::one_shot(store).layer(handler))),
            Mode::Events => boxed(verify.layer(ReplayGuardLayer::events(store).layer(handler))),
        };
        Self {
            scheme,
            now,
            keys,
            runs,
            server,
        }
    }

    fn turn(&self, seconds: u64) {
        *self.now.lock().unwrap() += Duration::from_secs(seconds);
    }

    /// Signed now by this one of the two secrets.
    fn signed(&self, by: u8, id: Option<(&'static str, &'static str)>) -> Request<Bytes> {
        let body = Bytes::from_static(b"{\"n\":1}");
        let mut request = Request::post("/hook?a=1").body(body).unwrap();
        if let Some((name, id)) = id {
            let name = HeaderName::from_static(name);
            request
                .headers_mut()
                .insert(name, HeaderValue::from_static(id));
        }
        let (mut head, body) = request.into_parts();
        let at = SystemTime::UNIX_EPOCH + *self.now.lock().unwrap();
        let key = SigningKey::new("key_1", secret(by));
        let stamp = Stamp::new(at, "nonce-1");
        self.scheme.sign(&mut head, &body, &key, &stamp).unwrap();
        Request::from_parts(head, body)
    }

    async fn call(&self, request: &Request<Bytes>) -> Got {
        let before = self.runs();
        let request = request.clone().map(Full::new);
        let answer = self.server.clone().oneshot(request).await.unwrap();
        let ran = self.runs() > before;
        if ran {
            return Got::Ran;
        }
        if let Some(rejection) = answer.extensions().get::<Rejection>() {
            return Got::Refused(*rejection);
        }
        match answer.extensions().get::<Duplicate>() {
            Some(_) if answer.status() == 200 => Got::Duplicate,
            _ => Got::Unverified(answer.status().as_u16()),
        }
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }
}

fn boxed<Sv>(service: Sv) -> Server
where
    Sv: Service<Request<Content>, Response = Answer, Error = Infallible> + Clone + Send + 'static,
    Sv::Future: Send,
{
    BoxCloneService::new(service)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Got {
    Ran,
    Duplicate,
    Refused(Rejection),
    Unverified(u16),
}

const REPLAYED: Got = Got::Refused(Rejection::Replayed);
const ID: Option<(&str, &str)> = Some(("webhook-id", "msg_1"));

fn with(request: &Request<Bytes>, name: &'static str, value: &str) -> Request<Bytes> {
    let mut request = request.clone();
    let value = HeaderValue::try_from(value).unwrap();
    request
        .headers_mut()
        .insert(HeaderName::from_static(name), value);
    request
}

fn header(request: &Request<Bytes>, name: &str) -> String {
    request.headers()[name].to_str().unwrap().to_owned()
}

/// The two signatures of one message under rotation, in each order and each alone.
fn rotated(guarded: &Guarded) -> Vec<Request<Bytes>> {
    let (old, new) = (guarded.signed(1, ID), guarded.signed(2, ID));
    let [a, b] = [&old, &new].map(|it| header(it, "webhook-signature"));
    assert_ne!(a, b);
    [
        format!("{a} {b}"),
        a.clone(),
        b.clone(),
        format!("{b} {a}"),
        format!("v1,AAAA {b}"),
        format!("{a} {a}"),
        format!("v2,x {a}"),
    ]
    .iter()
    .map(|signatures| with(&old, "webhook-signature", signatures))
    .collect()
}

#[tokio::test]
async fn g01_no_choice_and_no_order_of_the_signatures_of_a_rotation_gives_a_second_life() {
    let count = rotated(&Guarded::new(
        HmacScheme::standard_webhooks(),
        None,
        Mode::OneShot,
    ))
    .len();
    for first in 0..count {
        let guarded = Guarded::new(HmacScheme::standard_webhooks(), None, Mode::OneShot);
        let spellings = rotated(&guarded);
        assert_eq!(guarded.call(&spellings[first]).await, Got::Ran, "{first}");
        for (n, spelling) in spellings.iter().enumerate() {
            let got = guarded.call(spelling).await;
            assert_eq!(got, REPLAYED, "{n} after {first}");
        }
        assert_eq!(guarded.runs(), 1);
    }
}

#[tokio::test]
async fn g01_a_rotation_of_the_secrets_gives_no_second_life() {
    let guarded = Guarded::new(HmacScheme::standard_webhooks(), None, Mode::OneShot);
    let spellings = rotated(&guarded);
    assert_eq!(guarded.call(&spellings[1]).await, Got::Ran);
    let new = Secrets::new([secret(2)]).unwrap();
    guarded.keys.replace([("default", new)]).unwrap();
    assert_eq!(guarded.call(&spellings[1]).await, Got::Unverified(401));
    assert_eq!(guarded.call(&spellings[2]).await, REPLAYED);
}

#[tokio::test]
async fn g01_other_spellings_of_base64_give_no_second_life() {
    let guarded = Guarded::new(HmacScheme::standard_webhooks(), None, Mode::OneShot);
    let request = guarded.signed(1, ID);
    let signature = header(&request, "webhook-signature");
    assert_eq!(guarded.call(&request).await, Got::Ran);
    let text = signature.strip_prefix("v1,").unwrap().trim_end_matches('=');
    // The last letter before the padding has bits that carry nothing.
    let (head, last) = text.split_at(text.len() - 1);
    let next = char::from(last.as_bytes()[0] + 1);
    for spelling in [
        format!("v1,{text}"),
        format!("v1,{text}=="),
        format!("v1,{head}{next}="),
        format!("v1,{}=", text.replace('+', "-").replace('/', "_")),
        format!("v1, {text}="),
        format!("  v1,{text}=  "),
        format!("v1,{text}= "),
    ] {
        let got = guarded
            .call(&with(&request, "webhook-signature", &spelling))
            .await;
        assert!(
            [REPLAYED, Got::Unverified(401)].contains(&got),
            "{spelling}: {got:?}"
        );
    }
    assert_eq!(guarded.runs(), 1);
}

#[tokio::test]
async fn g01_other_spellings_of_hex_and_of_the_timestamp_give_no_second_life() {
    let guarded = Guarded::new(HmacScheme::payments(), Some("key_1"), Mode::OneShot);
    let request = guarded.signed(1, None);
    let (signature, at) = (
        header(&request, "x-signature"),
        header(&request, "x-timestamp"),
    );
    assert_eq!(guarded.call(&request).await, Got::Ran);
    assert_eq!(guarded.call(&request).await, REPLAYED);
    let variants = [
        with(&request, "x-signature", &signature.to_uppercase()),
        with(&request, "x-signature", &format!(" {signature}")),
        with(&request, "x-signature", &format!("{signature}00")),
        with(&request, "x-signature", &format!("sha256={signature}")),
        with(&request, "x-timestamp", &format!("0{at}")),
        with(&request, "x-timestamp", &format!("+{at}")),
        with(&request, "x-timestamp", &format!("{at}.0")),
        with(&request, "x-nonce", "nonce-2"),
        with(&request, "x-key-id", "KEY_1"),
        with(&request, "x-more", "1"),
    ];
    for variant in variants {
        let got = guarded.call(&variant).await;
        assert!(
            [REPLAYED, Got::Unverified(401)].contains(&got),
            "{variant:?}: {got:?}"
        );
    }
    assert_eq!(guarded.runs(), 1);
}

#[tokio::test]
async fn g02_a_request_captured_at_either_edge_of_the_window_is_good_once() {
    for (ahead, later) in [(30, 60), (0, 30), (30, 0)] {
        let guarded = Guarded::new(HmacScheme::payments(), Some("key_1"), Mode::OneShot);
        guarded.turn(ahead);
        let request = guarded.signed(1, None);
        *guarded.now.lock().unwrap() -= Duration::from_secs(ahead);
        assert_eq!(guarded.call(&request).await, Got::Ran, "{ahead} s ahead");
        guarded.turn(later);
        assert_eq!(guarded.call(&request).await, REPLAYED, "{later} s later");
        guarded.turn(ahead + 31 - later.min(ahead));
        let got = guarded.call(&request).await;
        assert_eq!(got, Got::Unverified(401));
        assert_eq!(guarded.runs(), 1);
    }
}

#[tokio::test]
async fn g01_what_is_signed_afresh_is_another_request() {
    let guarded = Guarded::new(HmacScheme::payments(), Some("key_1"), Mode::OneShot);
    assert_eq!(guarded.call(&guarded.signed(1, None)).await, Got::Ran);
    guarded.turn(1);
    assert_eq!(guarded.call(&guarded.signed(1, None)).await, Got::Ran);
}

#[tokio::test]
async fn g03_a_signed_id_under_a_new_timestamp_or_a_new_secret_is_a_duplicate() {
    let guarded = Guarded::new(HmacScheme::standard_webhooks(), None, Mode::Events);
    assert_eq!(guarded.call(&guarded.signed(1, ID)).await, Got::Ran);
    assert_eq!(guarded.call(&guarded.signed(1, ID)).await, Got::Duplicate);
    guarded.turn(3_600);
    assert_eq!(guarded.call(&guarded.signed(1, ID)).await, Got::Duplicate);
    assert_eq!(guarded.call(&guarded.signed(2, ID)).await, Got::Duplicate);
    let other = Some(("webhook-id", "msg_2"));
    assert_eq!(guarded.call(&guarded.signed(1, other)).await, Got::Ran);
    // An id that was not signed so is no id at all.
    let forged = with(&guarded.signed(1, ID), "webhook-id", "msg_3");
    assert_eq!(guarded.call(&forged).await, Got::Unverified(401));
}

#[tokio::test]
async fn g03_a_captured_delivery_with_an_unsigned_id_runs_once_under_whatever_id() {
    let guarded = Guarded::new(HmacScheme::botix(), None, Mode::Events);
    let id = Some(("x-botix-request-id", "1"));
    let request = guarded.signed(1, id);
    let signature = header(&request, "x-botix-signature");
    assert_eq!(guarded.call(&request).await, Got::Ran);
    for id in ["1", "2", "3", ""] {
        let swapped = with(&request, "x-botix-request-id", id);
        let got = guarded.call(&swapped).await;
        assert!(
            [Got::Duplicate, Got::Unverified(401)].contains(&got),
            "{id}: {got:?}"
        );
    }
    let mut bare = request.clone();
    bare.headers_mut().remove("x-botix-request-id");
    let got = guarded.call(&bare).await;
    assert!(
        [Got::Duplicate, Got::Unverified(401)].contains(&got),
        "{got:?}"
    );
    let upper = signature.to_uppercase().replace("SHA256", "sha256");
    let got = guarded
        .call(&with(&request, "x-botix-signature", &upper))
        .await;
    assert!([Got::Duplicate, Got::Unverified(401)].contains(&got));
    assert_eq!(guarded.call(&guarded.signed(2, id)).await, Got::Duplicate);
    assert_eq!(guarded.runs(), 1);
}

#[tokio::test]
async fn g01_a_scheme_that_signs_no_timestamp_is_no_one_shot_scheme() {
    let guarded = Guarded::new(HmacScheme::botix(), None, Mode::OneShot);
    let got = guarded.call(&guarded.signed(1, None)).await;
    assert_eq!(got, Got::Refused(Rejection::Undated));
}
