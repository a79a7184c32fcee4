use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Empty, Full};
use serde::Serialize;
use serde_json::Value;
use steadfast::core::Body;
use steadfast::signature::{KeyRing, Reason, Rejection, SignatureVerifyLayer};
use tower::{ServiceBuilder, ServiceExt as _};

use crate::{
    failure::Failure,
    lines::{self, BadLine},
    scheme::Side,
    signed::Message,
};

/// What the layer makes of a request.
#[derive(Debug, Serialize)]
struct Verdict {
    ok: bool,
    reason: Option<&'static str>,
}

/// Answers each request with whether the layer would let it pass, and else with its reason, which no client is told.
pub(crate) async fn run() -> Result<(), Failure> {
    lines::answer(verify).await
}

async fn verify(line: Value) -> Result<Verdict, BadLine> {
    let message = Message::read(line, Side::Verify)?;
    // A header that no message can carry is never part of a signed one.
    let Ok(headers) = message.headers() else {
        return Ok(Verdict::refused(Reason::Malformed.as_str()));
    };
    let request = message.request(headers, Full::new(message.body.clone()));
    let key_id = message.key_id;
    let keys = KeyRing::new([(key_id.clone(), message.secret.into())])?;
    let layer = SignatureVerifyLayer::new(message.scheme.into_scheme(), keys)
        .key_id(move |_| Some(key_id.clone()))
        .clock(message.clock)
        .max_body(usize::MAX);
    let service = ServiceBuilder::new().layer(layer).service_fn(passed);
    let Ok(response) = service.oneshot(request).await;
    Ok(match response.extensions().get() {
        None => Verdict {
            ok: true,
            reason: None,
        },
        Some(Rejection::Unauthorized(reason)) => Verdict::refused(reason.as_str()),
        Some(other) => Verdict::refused(other.code()),
    })
}

async fn passed(_: Request<Body<Full<Bytes>>>) -> Result<Response<Empty<Bytes>>, Infallible> {
    Ok(Response::new(Empty::new()))
}

impl Verdict {
    const fn refused(reason: &'static str) -> Self {
        Self {
            ok: false,
            reason: Some(reason),
        }
    }
}
