//! What Tower, and this workspace, ask of every service, asked of the two of this crate.

mod sign;
mod verify;

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use http::{Request, Response};
use steadfast_core::{Body, Clock};
use steadfast_signature::{HmacScheme, Scheme as _, Secret, SigningKey, Stamp};
use steadfast_testing::{ChunkedBody, ServiceProbe};
use tower::Service;

/// The body of requests and of responses.
type Content = ChunkedBody<&'static str>;
type Probe<E = &'static str> = ServiceProbe<Body<Content>, Content, E>;

const NOW: u64 = 1_700_000_000;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn secret() -> Secret {
    Secret::from_bytes("a secret of 26 bytes or so").unwrap()
}

fn key() -> SigningKey {
    SigningKey::new("key_1", secret())
}

/// A wall clock that tests turn.
#[derive(Clone)]
struct Hand(Arc<Mutex<SystemTime>>);

impl Hand {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(at(NOW))))
    }

    fn turn(&self, seconds: u64) {
        *self.0.lock().unwrap() += Duration::from_secs(seconds);
    }

    fn clock(&self) -> Clock {
        let hand = self.clone();
        Clock::from_fn(move || *hand.0.lock().unwrap())
    }
}

fn frozen() -> Clock {
    Clock::from_fn(|| at(NOW))
}

/// A wall clock that goes with the runtime's.
fn running() -> Clock {
    let start = tokio::time::Instant::now();
    Clock::from_fn(move || at(NOW) + start.elapsed())
}

/// A probe that answers 201 at once.
fn created() -> Probe {
    ServiceProbe::new(|_request| async {
        let body = ChunkedBody::new(["done"]);
        Ok(Response::builder().status(201).body(body).unwrap())
    })
}

/// A request that is signed over `signed`, with `body`.
fn signed(scheme: &HmacScheme, signed: &'static str, body: Content) -> Request<Content> {
    let request = Request::post("/orders?dry_run=1").body(body).unwrap();
    let (mut head, body) = request.into_parts();
    head.headers
        .insert("webhook-id", http::HeaderValue::from_static("msg_1"));
    let stamp = Stamp::random(at(NOW));
    scheme
        .sign(&mut head, &signed.into(), &key(), &stamp)
        .unwrap();
    Request::from_parts(head, body)
}

async fn ready<S: Service<Request<Content>>>(service: &mut S) -> Result<(), S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await
}
