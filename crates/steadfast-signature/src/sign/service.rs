use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use steadfast_core::Body;
use tower_service::Service;

use super::{
    config::Config,
    flow::{self, Call},
    future::ResponseFuture,
};
use crate::{Scheme, SigningKeys};

/// Middleware that signs each request with a timestamp, and a nonce, of its own (S03, R12).
///
/// Made by [`SignRequestLayer`](crate::SignRequestLayer). See the [crate docs](crate).
///
/// The body is read into memory, and its very bytes are signed and sent. Headers of an earlier attempt are replaced.
/// The response's extensions hold the
/// [`CredentialGeneration`](steadfast_core::facts::CredentialGeneration) that signed the request, which tells a retry
/// around this layer that a 401 may be answered by signing again. The key source hears of every 401.
///
/// # Readiness
///
/// Ready when the inner service is. The reservation is given back while the body is read and the key fetched; the
/// request is sent on a clone that is readied anew.
///
/// # Cancellation
///
/// Dropping the future drops the request. How long a key is waited for is up to its source, and to the timeout around
/// each attempt.
#[derive(Debug)]
pub struct SignRequest<S, Sc, K> {
    inner: S,
    scheme: Arc<Sc>,
    keys: K,
    config: Arc<Config>,
}

impl<S, Sc, K> SignRequest<S, Sc, K> {
    pub(super) const fn new(inner: S, scheme: Arc<Sc>, keys: K, config: Arc<Config>) -> Self {
        Self {
            inner,
            scheme,
            keys,
            config,
        }
    }
}

impl<S: Clone, Sc, K: Clone> Clone for SignRequest<S, Sc, K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            scheme: Arc::clone(&self.scheme),
            keys: self.keys.clone(),
            config: Arc::clone(&self.config),
        }
    }
}

impl<S, Sc, K, ReqBody, ResBody> Service<Request<ReqBody>> for SignRequest<S, Sc, K>
where
    S: Service<Request<Body<ReqBody>>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    Sc: Scheme,
    K: SigningKeys,
    ReqBody: http_body::Body + Send + 'static,
    ReqBody::Error: Send,
    ResBody: http_body::Body + 'static,
{
    type Response = Response<Body<ResBody>>;
    type Error = S::Error;
    type Future = ResponseFuture<ResBody, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let clone = self.inner.clone();
        drop(mem::replace(&mut self.inner, clone));
        let (head, body) = request.into_parts();
        ResponseFuture::new(Box::pin(flow::run(Call {
            inner: self.inner.clone(),
            scheme: Arc::clone(&self.scheme),
            keys: self.keys.clone(),
            config: Arc::clone(&self.config),
            head,
            body,
        })))
    }
}
