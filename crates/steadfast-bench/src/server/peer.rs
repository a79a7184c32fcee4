use std::{convert::Infallible, sync::Arc};

use axum::body::Body;
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use http::{Request, Response};
use ruts::{CookieOptions, SessionLayer, store::moka::MokaStore};
use tower::{Service, ServiceBuilder, service_fn};
use tower_cookies::CookieManagerLayer;

use super::growth;
use crate::{
    Case,
    case::{Calls, call},
    message::{Keys, handle, key, post_with_key},
};

/// The layers that axum-idempotent asks for, without itself.
pub(super) fn sessions(request: fn() -> Request<Body>) -> Box<dyn Case> {
    let stack = || {
        ServiceBuilder::new()
            .layer(CookieManagerLayer::new())
            .layer(session_layer())
            .service(service_fn(handle::<Body, Body>))
    };
    Box::new(Calls::new(stack, request))
}

/// Calls to axum-idempotent over a session with so many live keys, without new ones.
pub(super) fn calls(live: usize, request: fn() -> Request<Body>) -> Box<dyn Case> {
    Box::new(Calls::new(move || filled(live), request))
}

/// Calls with a new key each.
pub(super) fn fresh(live: usize) -> Box<dyn Case> {
    let mut keys = Keys::default();
    let calls = Calls::new(move || filled(live), move || post_with_key(keys.next()));
    Box::new(calls.endurance(growth(live)))
}

fn filled(live: usize) -> impl PeerService {
    /// Far from those of the measured calls.
    const FIRST: u64 = 1 << 40;

    let mut stack = ServiceBuilder::new()
        .layer(CookieManagerLayer::new())
        .layer(session_layer())
        .layer(IdempotentLayer::<MokaStore>::new(options()))
        .service(service_fn(handle::<Body, Body>));
    for number in (FIRST..).take(live) {
        drop(call(&mut stack, post_with_key(key(number))));
    }
    stack
}

trait PeerService: Service<Request<Body>, Response = Response<Body>, Error = Infallible> {}

impl<S> PeerService for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
{
}

fn session_layer() -> SessionLayer<MokaStore> {
    SessionLayer::new(Arc::new(MokaStore::builder().build()))
        .with_cookie_options(CookieOptions::build().name("session"))
}

/// By key, as its README shows it: its other mode knows no request without one, and hashes each.
fn options() -> IdempotentOptions {
    IdempotentOptions::default()
        .use_idempotency_key_header(Some("Idempotency-Key"), false)
        .expire_after(24 * 60 * 60)
}
