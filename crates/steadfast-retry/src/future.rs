use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, StatusCode};
use pin_project_lite::pin_project;
use steadfast_core::{
    Body, ReplayBody,
    facts::{Outcome, Stopped},
};
use tower_service::Service;

use crate::{
    ClassifyError, Rejection,
    alarm::Alarm,
    attempt::{Attempt, Attempted},
    call::Call,
    policy::Policy,
};

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
        deadline: Option<Alarm>,
        ongoing: Ongoing<C>,
    }
}

impl<S, C, B, ResB> ResponseFuture<S, C, B, ResB>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<ResB>>,
    C: ClassifyError<S::Error>,
    B: http_body::Body,
    ResB: http_body::Body,
{
    pub(crate) fn new(attempts: Attempts<S, C, B>, call: Arc<Call<C>>) -> Self {
        Self {
            attempts: Some(attempts),
            deadline: call.deadline.map(Alarm::at),
            ongoing: Ongoing { call: Some(call) },
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
        let attempts = this
            .attempts
            .as_mut()
            .as_pin_mut()
            .expect("polled after completion");
        let result = match attempts.poll(cx) {
            Poll::Ready(result) => result.map(Some),
            Poll::Pending if Alarm::has_gone_off(this.deadline, cx) => Ok(None),
            Poll::Pending => return Poll::Pending,
        };
        // What an attempt still holds is given back here and now, whatever becomes of this future.
        this.attempts.set(None);
        let call = this.ongoing.finish();
        Poll::Ready(result.map(|attempted| call.answer(attempted)))
    }
}

impl<C> Call<C> {
    /// The response the caller gets, with the report; `None` stands for an attempt that the deadline ended.
    fn answer<B: http_body::Body>(&self, attempted: Option<Attempted<B>>) -> Response<Body<B>> {
        let mut response = match attempted {
            Some(Attempted::Answered { response, .. }) => response,
            Some(Attempted::TimedOut { .. }) => self.reject(Rejection::AttemptTimeout),
            None => {
                self.report
                    .update(|report| report.outcome = or_unknown(report.outcome));
                self.give_up(Stopped::Deadline, Some(StatusCode::GATEWAY_TIMEOUT));
                self.reject(Rejection::Deadline)
            }
        };
        let report = self.report.snapshot();
        response.extensions_mut().insert(report);
        response.extensions_mut().insert(self.report.clone());
        response
    }

    fn reject<B: http_body::Body>(&self, rejection: Rejection) -> Response<Body<B>> {
        rejection.into_response(&*self.config.make_rejection, self.license.is_repeatable())
    }
}

/// A call that has not come to its end. Dropped before, it was cancelled.
struct Ongoing<C> {
    call: Option<Arc<Call<C>>>,
}

impl<C> Ongoing<C> {
    fn finish(&mut self) -> Arc<Call<C>> {
        self.call.take().expect("polled after completion")
    }
}

impl<C> Drop for Ongoing<C> {
    fn drop(&mut self) {
        if let Some(call) = &self.call {
            call.report.update(|report| {
                report.stopped = Some(Stopped::Cancelled);
                report.outcome = or_unknown(report.outcome);
            });
        }
    }
}

/// What is known of an attempt that was broken off.
fn or_unknown(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Pending => Outcome::Unknown,
        known => known,
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
