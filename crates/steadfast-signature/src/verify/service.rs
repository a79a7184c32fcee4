use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, request::Parts};
use steadfast_core::Body;
use tower_service::Service;

use super::{
    config::Config,
    flow::{self, Call},
    future::ResponseFuture,
    rejection::Rejection,
};
use crate::{FindKey, Presented, Scheme};

/// Middleware that lets only requests through whose signature is good (S01, S02, S05).
///
/// Made by [`SignatureVerifyLayer`](crate::SignatureVerifyLayer). See the [crate docs](crate).
///
/// The request's extensions then hold [`Verified`](steadfast_core::facts::Verified), and its body is the very bytes that
/// were verified, with their trailers.
///
/// # Readiness
///
/// Ready when the inner service is. A request that is not verified is passed to the readied instance. For one that is,
/// the reservation is given back while its key is looked up and its body read, and the handler runs on a clone that is
/// readied anew. One that is refused gives it back too.
///
/// # Cancellation
///
/// Dropping the future drops the request, or the handler's call.
#[derive(Debug)]
pub struct VerifySignature<S, Sc, K> {
    inner: S,
    scheme: Arc<Sc>,
    keys: K,
    config: Arc<Config>,
}

impl<S, Sc, K> VerifySignature<S, Sc, K> {
    pub(super) const fn new(inner: S, scheme: Arc<Sc>, keys: K, config: Arc<Config>) -> Self {
        Self {
            inner,
            scheme,
            keys,
            config,
        }
    }
}

impl<S: Clone, Sc, K: Clone> Clone for VerifySignature<S, Sc, K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            scheme: Arc::clone(&self.scheme),
            keys: self.keys.clone(),
            config: Arc::clone(&self.config),
        }
    }
}

impl<S, Sc, K, ReqBody, ResBody> Service<Request<ReqBody>> for VerifySignature<S, Sc, K>
where
    S: Service<Request<Body<ReqBody>>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    Sc: Scheme,
    K: FindKey,
    ReqBody: http_body::Body + Send + 'static,
    ReqBody::Error: Send,
    ResBody: http_body::Body + 'static,
{
    type Response = Response<Body<ResBody>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, ResBody, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let (head, body) = request.into_parts();
        if self.config.skips(&head) {
            let request = Request::from_parts(head, Body::inner(body));
            return ResponseFuture::forward(self.inner.call(request));
        }
        // From here on nothing is called before the body was read, if ever: the reservation goes back.
        let clone = self.inner.clone();
        drop(mem::replace(&mut self.inner, clone));
        let config = &self.config;
        let presented = match present(&*self.scheme, config, &head, &body) {
            Ok(presented) => presented,
            Err(rejection) => {
                return ResponseFuture::answered(config.reject(self.scheme.name(), rejection));
            }
        };
        ResponseFuture::flow(Box::pin(flow::run(Call {
            inner: self.inner.clone(),
            scheme: Arc::clone(&self.scheme),
            keys: self.keys.clone(),
            config: Arc::clone(&self.config),
            presented,
            head,
            body,
        })))
    }
}

/// What can be refused without a look at the body.
fn present<Sc: Scheme, B: http_body::Body>(
    scheme: &Sc,
    config: &Config,
    head: &Parts,
    body: &B,
) -> Result<Presented, Rejection> {
    let presented = scheme.present(head, (config.original_uri)(head))?;
    if config.announces_too_much(head, body) {
        return Err(Rejection::BodyTooLarge);
    }
    if let Some(window) = &presented.window {
        window.judge(config.clock.now())?;
    }
    Ok(presented)
}
