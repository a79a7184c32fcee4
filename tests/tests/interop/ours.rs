//! The layers, as a sender and as a receiver.

use std::{
    convert::Infallible,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Full};
use steadfast::{
    core::{Body, Clock},
    signature::{KeyRing, Secret, Secrets, SignRequestLayer, SignatureVerifyLayer, SigningKey},
};
use tower::{ServiceBuilder, ServiceExt as _};

use crate::{ID, Message, Vendor};

fn clock(seconds: u64) -> Clock {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Clock::from_fn(move || at)
}

fn secret(vendor: &Vendor, text: &str) -> Secret {
    (vendor.scheme)().secret(text).unwrap()
}

/// What the layer sends.
pub(crate) async fn sign(vendor: &Vendor, secret: &str, now: u64, body: &[u8]) -> Message {
    let key = SigningKey::from(self::secret(vendor, secret));
    let client = ServiceBuilder::new()
        .layer(SignRequestLayer::new((vendor.scheme)(), key).clock(clock(now)))
        .service_fn(|request: Request<Body<Full<Bytes>>>| async move {
            let (head, body) = request.into_parts();
            let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
            let headers = head.headers.iter();
            let sent = Message {
                headers: headers
                    .map(|(name, value)| (name.to_string(), text(value)))
                    .collect(),
                body: body.collect().await.unwrap().to_bytes().to_vec(),
            };
            let mut response = Response::new(Empty::<Bytes>::new());
            response.extensions_mut().insert(sent);
            Ok::<_, Infallible>(response)
        });
    let mut request = Request::post("/hook")
        .body(Full::from(body.to_vec()))
        .unwrap();
    if let Some(name) = vendor.id {
        request.headers_mut().insert(name, ID.parse().unwrap());
    }
    let response = client.oneshot(request).await.unwrap();
    response.extensions().get().cloned().expect("it was sent")
}

/// Whether the layer lets a message pass, with these secrets at this time.
pub(crate) async fn verify(vendor: &Vendor, secrets: &[&str], now: u64, message: &Message) -> bool {
    let secrets = secrets.iter().map(|text| secret(vendor, text));
    let keys = KeyRing::single(Secrets::new(secrets).unwrap());
    let handler = ServiceBuilder::new()
        .layer(SignatureVerifyLayer::new((vendor.scheme)(), keys).clock(clock(now)))
        .service_fn(|request: Request<Body<Full<Bytes>>>| async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            Ok::<_, Infallible>(Response::new(Full::new(body)))
        });
    let mut request = Request::post("/hook");
    for (name, value) in &message.headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::from(message.body.clone())).unwrap();
    let response = handler.oneshot(request).await.unwrap();
    match response.status() {
        StatusCode::OK => {
            let handled = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(handled, message.body, "what is verified is what is handled");
            true
        }
        StatusCode::UNAUTHORIZED => false,
        other => panic!("{other}"),
    }
}
