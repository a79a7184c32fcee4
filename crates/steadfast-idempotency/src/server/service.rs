use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use steadfast_core::{Body, Detach};
use steadfast_headers::IdempotencyKey;
use tower_service::Service;

use super::{
    config::Config,
    flow::{self, Call},
    future::ResponseFuture,
    identity,
    owner::Owner,
    rejection::Rejection,
};
use crate::store::Store;

/// Middleware that runs a call at most once for each idempotency key and answers repeats with the stored response.
///
/// Made by [`IdempotencyLayer`](crate::IdempotencyLayer). See the [crate docs](crate).
///
/// # Readiness
///
/// Ready when the inner service is. A request that is not covered is passed to the readied instance. For one that is,
/// the reservation is given back while the body is read and the store answers, and the handler runs on a clone that is
/// readied anew. One that is refused gives it back too.
///
/// # Cancellation
///
/// Dropping the future before the key is claimed drops the call. From the claim on, the claim, the handler and the
/// saving of its answer go on without the caller (I15). Whoever holds the future without polling it stops the handler
/// and the renewal of the lease.
#[derive(Clone, Debug)]
pub struct Idempotency<S, St> {
    inner: S,
    store: St,
    config: Arc<Config>,
}

impl<S, St> Idempotency<S, St> {
    pub(super) const fn new(inner: S, store: St, config: Arc<Config>) -> Self {
        Self {
            inner,
            store,
            config,
        }
    }
}

impl<S, St, ReqBody, ResBody> Service<Request<ReqBody>> for Idempotency<S, St>
where
    S: Service<Request<Body<ReqBody>>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Error: Send + 'static,
    S::Future: Send,
    St: Store,
    ReqBody: http_body::Body + Send + 'static,
    ReqBody::Error: Send,
    ResBody: http_body::Body + Send + 'static,
    ResBody::Error: Send,
{
    type Response = Response<Body<ResBody>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, ResBody, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        match self.config.key_of(request.method(), request.headers()) {
            None => ResponseFuture::forward(self.inner.call(request.map(Body::inner))),
            Some(key) => self.guard(request, key),
        }
    }
}

impl<S, St> Idempotency<S, St> {
    /// Apart from `call`, which is short so that it becomes a part of its caller: a request that is not concerned then
    /// moves no further than it must.
    #[inline(never)]
    fn guard<ReqBody, ResBody>(
        &mut self,
        request: Request<ReqBody>,
        key: Result<IdempotencyKey, Rejection>,
    ) -> ResponseFuture<S::Future, ResBody, S::Error>
    where
        S: Service<Request<Body<ReqBody>>, Response = Response<ResBody>> + Clone + Send + 'static,
        S::Error: Send + 'static,
        S::Future: Send,
        St: Store,
        ReqBody: http_body::Body + Send + 'static,
        ReqBody::Error: Send,
        ResBody: http_body::Body + Send + 'static,
        ResBody::Error: Send,
    {
        // Nothing is called before the body was read and the store has answered, if ever: the reservation goes back.
        let clone = self.inner.clone();
        drop(mem::replace(&mut self.inner, clone));
        let config = &self.config;
        let key = match key {
            Ok(key) => key,
            Err(rejection) => return ResponseFuture::answered(config.reject(rejection)),
        };
        let (parts, body) = request.into_parts();
        let tenant = match config.scope.tenant_of(&parts) {
            Ok(tenant) => tenant,
            Err(refusal) => {
                return ResponseFuture::answered(refusal.into_response().map(Body::full));
            }
        };
        let id = identity::record_id(&config.scope, tenant, &parts, &key);
        let call = Call {
            inner: self.inner.clone(),
            owner: Owner::new(self.store.clone(), Arc::clone(config), id, key),
            parts,
            body,
        };
        ResponseFuture::flow(Detach::new(&config.tracker, |arm| flow::run(call, arm)))
    }
}
