use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use pin_project_lite::pin_project;
use steadfast_core::{Body, ReplayBody};
use tower_service::Service;

use crate::{ClassifyError, attempt::Attempt, policy::Policy, watch::Watch};

type Attempts<S, C, B> =
    tower::retry::future::ResponseFuture<Policy<C>, Attempt<S>, Request<ReplayBody<B>>>;

pin_project! {
    /// Response future of [`RateLimitAwareRetry`](crate::RateLimitAwareRetry).
    pub struct ResponseFuture<S, C, B, ResB>
    where
        S: Service<Request<ReplayBody<B>>, Response = Response<ResB>>,
        C: ClassifyError<S::Error>,
        B: http_body::Body,
        ResB: http_body::Body,
    {
        #[pin]
        attempts: Option<Attempts<S, C, B>>,
        watch: Option<Box<Watch<C>>>,
    }
}

impl<S, C, B, ResB> ResponseFuture<S, C, B, ResB>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<ResB>>,
    C: ClassifyError<S::Error>,
    B: http_body::Body,
    ResB: http_body::Body,
{
    pub(crate) const fn new(attempts: Attempts<S, C, B>, watch: Option<Box<Watch<C>>>) -> Self {
        Self {
            attempts: Some(attempts),
            watch,
        }
    }
}

impl<S, C, B, ResB> Future for ResponseFuture<S, C, B, ResB>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<ResB>> + Clone,
    C: ClassifyError<S::Error>,
    B: http_body::Body,
    ResB: http_body::Body,
{
    type Output = Result<Response<Body<ResB>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let attempts = this.attempts.as_mut().as_pin_mut();
        if let Poll::Ready(result) = attempts.expect("polled after completion").poll(cx) {
            this.attempts.set(None);
            if let Some(watch) = this.watch.take() {
                watch.dismiss();
            }
            return Poll::Ready(result.map(|attempted| attempted.response));
        }
        match this.watch.take_if(|watch| watch.is_due(cx)) {
            Some(watch) => {
                // What the attempt holds is given back before the caller hears of its end.
                this.attempts.set(None);
                Poll::Ready(Ok(watch.end()))
            }
            None => Poll::Pending,
        }
    }
}

impl<S, C, B, ResB> fmt::Debug for ResponseFuture<S, C, B, ResB>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<ResB>>,
    C: ClassifyError<S::Error>,
    B: http_body::Body,
    ResB: http_body::Body,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
