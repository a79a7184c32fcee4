use std::{
    borrow::Cow,
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, request::Parts};
use percent_encoding::percent_decode_str;
use steadfast_core::{
    Body, Detach, KeyFrom, Refusal,
    facts::{Freshness, Verified},
};
use tower_service::Service;

use crate::{
    flow::{self, Owner},
    future::{EventFuture, OneShotFuture},
    identity,
    layer::{Config, Events, OneShot},
    rejection::Rejection,
    store::{EventId, Once, Store, Token},
};

/// Middleware that takes a signed request once, or processes an event once.
///
/// Made by [`ReplayGuardLayer`](crate::ReplayGuardLayer). See the [crate docs](crate).
///
/// # Readiness
///
/// Ready when the inner service is. A request that is skipped is passed to the readied instance. For every other one
/// the reservation is given back while the store answers, and the handler runs on a clone that is readied anew.
///
/// # Cancellation
///
/// One-shot: dropping the future drops the call, and may leave the signature used up. Events: dropping it before the
/// event is claimed drops the call; from the claim on, the handler and the commit go on without the caller. Whoever
/// holds the future without polling it stops the handler and the renewal of the lease.
#[derive(Clone, Debug)]
pub struct ReplayGuard<S, St, M> {
    inner: S,
    store: St,
    config: Arc<Config<M>>,
}

impl<S, St, M> ReplayGuard<S, St, M> {
    pub(crate) const fn new(inner: S, store: St, config: Arc<Config<M>>) -> Self {
        Self {
            inner,
            store,
            config,
        }
    }
}

impl<S: Clone, St, M> ReplayGuard<S, St, M> {
    /// Nothing is called before the store has answered, if ever: the reservation goes back.
    fn give_back(&mut self) {
        let clone = self.inner.clone();
        drop(mem::replace(&mut self.inner, clone));
    }
}

/// Why a request is not asked about at the store.
enum Refused {
    By(Refusal),
    For(Rejection),
}

impl Refused {
    fn into_response<M, B: http_body::Body>(self, config: &Config<M>) -> Response<Body<B>> {
        match self {
            Self::By(refusal) => refusal.into_response().map(Body::full),
            Self::For(rejection) => config.reject(rejection),
        }
    }
}

fn verified(parts: &Parts) -> Result<&Verified, Refused> {
    parts
        .extensions
        .get()
        .ok_or(Refused::For(Rejection::Unverified))
}

fn once(mode: &OneShot, parts: &Parts) -> Result<(Once, Option<Freshness>), Refused> {
    let verified = verified(parts)?;
    let freshness = verified.freshness().cloned();
    let life = identity::life(verified.freshness(), mode.undated).map_err(Refused::For)?;
    let Some(scope) = &mode.scope else {
        return Ok((identity::once(&[], verified, life), freshness));
    };
    let scope = scope.key_from(parts).map_err(Refused::By)?;
    let once = identity::once(scope.as_bytes(), verified, life);
    Ok((once, freshness))
}

fn event(mode: &Events, parts: &Parts) -> Result<EventId, Refused> {
    let verified = verified(parts)?;
    let trust = mode.trust_unsigned_ids;
    let Some(source) = &mode.source else {
        // Decoded as routers decode it for their handlers: no other spelling of a path is another source.
        let path: Cow<'_, [u8]> = percent_decode_str((mode.original)(parts).path()).into();
        let source = [verified.scheme().as_bytes(), &path];
        return Ok(identity::event(source, verified, trust));
    };
    let source = source.key_from(parts).map_err(Refused::By)?;
    Ok(identity::event(
        [b"given", source.as_bytes()],
        verified,
        trust,
    ))
}

impl<S, St, ReqBody, ResBody> Service<Request<ReqBody>> for ReplayGuard<S, St, OneShot>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    St: Store,
    ResBody: http_body::Body,
{
    type Response = Response<Body<ResBody>>;
    type Error = S::Error;
    type Future = OneShotFuture<S, St, Request<ReqBody>, ResBody>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let (parts, body) = request.into_parts();
        if self.config.skips(&parts) {
            return OneShotFuture::forward(self.inner.call(Request::from_parts(parts, body)));
        }
        self.give_back();
        match once(&self.config.mode, &parts) {
            Ok((once, freshness)) => OneShotFuture::recording(
                self.store.record(once),
                freshness,
                Arc::clone(&self.config),
                self.inner.clone(),
                Request::from_parts(parts, body),
            ),
            Err(refused) => OneShotFuture::answered(refused.into_response(&self.config)),
        }
    }
}

impl<S, St, ReqBody, ResBody> Service<Request<ReqBody>> for ReplayGuard<S, St, Events>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Error: Send + 'static,
    S::Future: Send,
    St: Store,
    ReqBody: Send + 'static,
    ResBody: http_body::Body + Send + 'static,
    ResBody::Error: Send,
{
    type Response = Response<Body<ResBody>>;
    type Error = S::Error;
    type Future = EventFuture<S::Future, ResBody, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let (parts, body) = request.into_parts();
        if self.config.skips(&parts) {
            return EventFuture::forward(self.inner.call(Request::from_parts(parts, body)));
        }
        self.give_back();
        let event = match event(&self.config.mode, &parts) {
            Ok(event) => event,
            Err(refused) => return EventFuture::answered(refused.into_response(&self.config)),
        };
        let owner = Owner {
            store: self.store.clone(),
            config: Arc::clone(&self.config),
            event,
            token: Token::random(),
        };
        let inner = self.inner.clone();
        let request = Request::from_parts(parts, body);
        let tracker = &self.config.mode.tracker;
        let flow = Detach::new(tracker, |arm| flow::run(owner, inner, request, arm));
        EventFuture::flow(flow)
    }
}
