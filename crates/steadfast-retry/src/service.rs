use std::{
    fmt, mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use steadfast_core::{Body, ReplayBody};
use tower::retry::Retry;
use tower_service::Service;

use crate::{
    ClassifyError, KnownErrors, ResponseFuture,
    attempt::Attempt,
    config::Config,
    license::{License, key_of},
    policy::Policy,
    report::Report,
    watch::Watch,
};

/// A client that repeats what may be repeated, and waits as long as the server asks.
///
/// Made by [`RateLimitAwareRetryLayer`](crate::RateLimitAwareRetryLayer). See the [crate docs](crate).
///
/// # Readiness
///
/// Ready when the inner service is. The instance that was readied sends the first attempt; each further attempt readies
/// again, and nothing is held while it waits.
///
/// # Panics
///
/// The future waits on tokio's timer: it panics outside of a runtime that has it on.
///
/// # Cancellation
///
/// Dropping the future ends the call at once, in the request or in the pause (R11). A retry that was not sent yet gives
/// its tokens back to the budget.
pub struct RateLimitAwareRetry<S, C = KnownErrors> {
    inner: S,
    config: Arc<Config<C>>,
}

impl<S, C> RateLimitAwareRetry<S, C> {
    pub(crate) const fn new(inner: S, config: Arc<Config<C>>) -> Self {
        Self { inner, config }
    }
}

impl<S, C, B, ResB> Service<Request<B>> for RateLimitAwareRetry<S, C>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<ResB>> + Clone,
    C: ClassifyError<S::Error>,
    B: http_body::Body,
    ResB: http_body::Body,
{
    type Response = Response<Body<ResB>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, C, B, ResB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let config = &self.config;
        let key = key_of(&request);
        let license = License::of(&request, key.is_some(), &config.operations);
        let deadline = config.ends();
        let report = Report::begin(request.extensions(), key, deadline.is_some());
        let watch = Watch::over(&request, config, license, &report, deadline);
        let policy = Policy::new(Arc::clone(config), license, report, deadline);
        let limits = config.attempt_limits();

        let clone = self.inner.clone();
        let readied = mem::replace(&mut self.inner, clone);
        let mut attempts = Retry::new(policy, Attempt::new(readied, limits));
        let (head, body) = request.into_parts();
        let body = self.config.replay(body, license);
        ResponseFuture::new(attempts.call(Request::from_parts(head, body)), watch)
    }
}

impl<S: Clone, C> Clone for RateLimitAwareRetry<S, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
        }
    }
}

impl<S: fmt::Debug, C> fmt::Debug for RateLimitAwareRetry<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitAwareRetry")
            .field("inner", &self.inner)
            .field("config", &self.config)
            .finish()
    }
}
