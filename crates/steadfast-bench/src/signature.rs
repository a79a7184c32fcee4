use std::convert::Infallible;

use axum::body::Body;
use base16ct::lower;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::BodyExt as _;
use sha2::Sha256;
use steadfast::signature::{HmacScheme, KeyRing, SignatureVerifyLayer};
use tower::{ServiceBuilder, service_fn};

use crate::{
    Case, Scenario,
    Target::{NoAllocation, OfBare, OverBare},
    case::Calls,
    message::{handle, request},
};

const GROUP: &str = "signature";

/// Verified requests with bodies of several sizes, and what the hash alone takes.
pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario("bare-get", || {
        Box::new(Calls::new(|| service_fn(handle::<Body, Body>), get))
    }),
    scenario("skipped-get", || {
        Box::new(Calls::new(
            || {
                ServiceBuilder::new()
                    .layer(layer())
                    .service(service_fn(handle::<steadfast::core::Body<Body>, Body>))
            },
            get,
        ))
    })
    .over("bare-get")
    .within(&[OverBare(50.0), NoAllocation]),
    scenario("raw-64", || raw(64)),
    scenario("verify-64", || verify(64))
        .over("raw-64")
        .within(&[OverBare(500.0)]),
    scenario("raw-1k", || raw(1 << 10)),
    scenario("verify-1k", || verify(1 << 10)).over("raw-1k"),
    scenario("raw-16k", || raw(1 << 14)).bulk(),
    scenario("verify-16k", || verify(1 << 14))
        .over("raw-16k")
        .within(AT_RATE)
        .bulk(),
    scenario("raw-1m", || raw(1 << 20)).bulk(),
    scenario("verify-1m", || verify(1 << 20))
        .over("raw-1m")
        .within(AT_RATE)
        .bulk(),
];

/// 95 % of the rate.
const AT_RATE: &[crate::Target] = &[OfBare(1.0 / 0.95)];

const fn scenario(name: &'static str, case: fn() -> Box<dyn Case>) -> Scenario {
    Scenario::new(GROUP, name, case)
}

const SECRET: &str = "It's a Secret to Everybody";
const SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");

fn get() -> Request<Body> {
    request(Method::GET, Body::empty())
}

fn layer() -> SignatureVerifyLayer<HmacScheme, KeyRing> {
    let scheme = HmacScheme::github();
    let secret = scheme.secret(SECRET).expect("it is not empty");
    SignatureVerifyLayer::new(scheme, KeyRing::single(secret))
        .max_body(1 << 20)
        .skip_when(|head| head.method == Method::GET)
}

fn verify(len: usize) -> Box<dyn Case> {
    let stack = || {
        ServiceBuilder::new()
            .layer(layer())
            .service(service_fn(handle::<steadfast::core::Body<Body>, Body>))
    };
    Box::new(Calls::new(stack, signed(len)))
}

/// The least that anybody has to do: the body in one piece, one hash, one comparison.
fn raw(len: usize) -> Box<dyn Case> {
    let stack = || {
        let keyed = keyed();
        service_fn(move |request: Request<Body>| compare(keyed.clone(), request))
    };
    Box::new(Calls::new(stack, signed(len)))
}

async fn compare(
    mut mac: Hmac<Sha256>,
    request: Request<Body>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("it is in memory").to_bytes();
    mac.update(&body);
    let text = head.headers[&SIGNATURE].as_bytes();
    let mut expected = [0; 32];
    lower::decode(&text["sha256=".len()..], &mut expected).expect("it was encoded here");
    mac.verify_slice(&expected).expect("it was signed here");
    handle(Request::from_parts(head, Body::from(body))).await
}

fn signed(len: usize) -> impl FnMut() -> Request<Body> {
    let body = Bytes::from(vec![b'a'; len]);
    let mut mac = keyed();
    mac.update(&body);
    let hex = lower::encode_string(&mac.finalize().into_bytes());
    let signature = HeaderValue::try_from(format!("sha256={hex}")).expect("hexadecimal digits");
    move || {
        let mut request = request(Method::POST, Body::from(body.clone()));
        request.headers_mut().insert(SIGNATURE, signature.clone());
        request
    }
}

fn keyed() -> Hmac<Sha256> {
    Hmac::new_from_slice(SECRET.as_bytes()).expect("a key of any length is taken")
}
