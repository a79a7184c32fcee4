use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    response::{IntoResponse as _, Response},
    routing::any,
};
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use steadfast::core::Clock;
use steadfast::signature::{KeyRing, Scheme, SignatureVerifyLayer};

use super::args::Args;
use crate::{
    keys::{self, Keys},
    scheme::{SQUARE, SignatureScheme},
};

/// The body that the handler saw.
#[derive(Debug, Serialize)]
struct Seen {
    sha256: String,
    len: u64,
}

type VerifyLayer = SignatureVerifyLayer<Arc<dyn Scheme>, KeyRing>;

/// `ANY /verify/{scheme}`, for each scheme there is.
pub(super) fn routes(args: &Args, keys: &Keys, clock: &Clock) -> Router {
    let mut router = Router::new();
    for (name, layer) in layers(args, keys, clock) {
        router = router.route(&format!("/verify/{name}"), any(seen).layer(layer));
    }
    router
}

/// The layer of each scheme.
pub(super) fn layers(
    args: &Args,
    keys: &Keys,
    clock: &Clock,
) -> impl Iterator<Item = (&'static str, VerifyLayer)> {
    SignatureScheme::names().filter_map(move |name| {
        let (url, ring) = match (&args.public_url, name) {
            // Without its URL the scheme would sign the body alone.
            (None, SQUARE) => ("", keys::no_keys()),
            (url, _) => (url.as_deref().unwrap_or_default(), keys.of(name)),
        };
        let scheme = SignatureScheme::named(name, url)?.into_scheme();
        let layer = SignatureVerifyLayer::new(scheme, ring)
            .clock(clock.clone())
            .max_body(args.max_body);
        Some((name, layer))
    })
}

async fn seen(mut body: Body) -> Response {
    let (mut sha256, mut len) = (Sha256::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return (StatusCode::BAD_REQUEST, "the body broke off\n").into_response();
        };
        if let Some(data) = frame.data_ref() {
            sha256.update(data);
            len += data.len() as u64;
        }
    }
    let sha256 = base16ct::lower::encode_string(&sha256.finalize());
    Json(Seen { sha256, len }).into_response()
}
