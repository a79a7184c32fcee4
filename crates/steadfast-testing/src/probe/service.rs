//! The probe itself.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt,
    future::{Future, ready},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;

use super::{
    future::{BoxAnswer, ProbeFuture},
    handle::ProbeHandle,
};

/// An inner service that notices how a layer treats it.
///
/// It answers as it is told, and holds its caller to Tower's contract: each call needs a reservation, taken by
/// `poll_ready` on the very instance that is called. What it saw is read from its [`handle`](Self::handle).
///
/// `B` is the body of the requests, `R` that of the responses, `E` the error.
///
/// # Readiness
///
/// Ready at once, unless [`pending_first`](Self::pending_first), [`fail_ready`](Self::fail_ready) or
/// [`ProbeHandle::block`] say otherwise. Being polled again while ready takes no second reservation.
///
/// # Clone
///
/// A clone starts without a reservation and shares answers and handle.
///
/// # Panics
///
/// Calling an instance that holds no reservation, or polling its future after the end, panics. As a layer may catch a
/// panic, the breach is also kept for [`ProbeHandle::assert_quiescent`].
///
/// # Examples
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::Full;
/// use steadfast_testing::ServiceProbe;
/// use tower_service::Service as _;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut service = ServiceProbe::respond(|_request: Request<()>| Response::new(Full::<Bytes>::default()));
/// let probe = service.handle();
///
/// std::future::poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
/// assert_eq!(probe.live_reservations(), 1);
///
/// service.call(Request::new(())).await.unwrap();
/// assert_eq!(probe.calls(), 1);
/// probe.assert_quiescent();
/// # }
/// ```
#[must_use = "a service does nothing until it is called"]
pub struct ServiceProbe<B, R = Full<Bytes>, E = Infallible> {
    answer: Arc<AnswerFn<B, R, E>>,
    ready_error: Option<Arc<ReadyErrorFn<E>>>,
    pending_first: usize,
    pending_left: usize,
    reserved: bool,
    handle: ProbeHandle,
}

type AnswerFn<B, R, E> = dyn Fn(Request<B>) -> BoxAnswer<R, E> + Send + Sync;
type ReadyErrorFn<E> = dyn Fn() -> E + Send + Sync;

impl<B, R, E> ServiceProbe<B, R, E> {
    /// Creates a probe that answers each request with the future `answer` makes of it.
    pub fn new<A, F>(answer: A) -> Self
    where
        A: Fn(Request<B>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Response<R>, E>> + Send + 'static,
    {
        Self {
            answer: Arc::new(move |request| Box::pin(answer(request))),
            ready_error: None,
            pending_first: 0,
            pending_left: 0,
            reserved: false,
            handle: ProbeHandle::default(),
        }
    }

    /// Creates a probe that gives the n-th call, over all clones, the n-th of `answers`.
    ///
    /// # Panics
    ///
    /// A call for which no answer is left panics, and is kept as a breach.
    pub fn script<I>(answers: I) -> Self
    where
        I: IntoIterator<Item = Result<Response<R>, E>>,
        R: Send + 'static,
        E: Send + 'static,
    {
        let answers = Mutex::new(answers.into_iter().collect::<VecDeque<_>>());
        let handle = ProbeHandle::default();
        let breaches = handle.clone();
        let mut probe = Self::new(move |_request| {
            let next = answers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            match next {
                Some(answer) => ready(answer),
                None => breaches.breach("called more often than there are answers in the script"),
            }
        });
        probe.handle = handle;
        probe
    }

    /// Makes each reservation take `polls` polls that are pending, each waking its task at once. By default none is.
    pub const fn pending_first(mut self, polls: usize) -> Self {
        self.pending_first = polls;
        self.pending_left = polls;
        self
    }

    /// Makes readiness fail with what `error` returns: the service is dead. By default it is not.
    pub fn fail_ready<G>(mut self, error: G) -> Self
    where
        G: Fn() -> E + Send + Sync + 'static,
    {
        self.ready_error = Some(Arc::new(error));
        self
    }

    /// The handle that tells what this probe and its clones saw.
    #[must_use]
    pub fn handle(&self) -> ProbeHandle {
        self.handle.clone()
    }
}

impl<B, R> ServiceProbe<B, R, Infallible>
where
    R: Send + 'static,
{
    /// Creates a probe that answers at once with what `answer` returns, and never fails.
    pub fn respond<A>(answer: A) -> Self
    where
        A: Fn(Request<B>) -> Response<R> + Send + Sync + 'static,
    {
        Self::new(move |request| ready(Ok(answer(request))))
    }
}

impl<B, R, E> Service<Request<B>> for ServiceProbe<B, R, E> {
    type Response = Response<R>;
    type Error = E;
    type Future = ProbeFuture<R, E>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        if self.reserved {
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = &self.ready_error {
            return Poll::Ready(Err(error()));
        }
        if self.handle.is_blocked(cx.waker()) {
            return Poll::Pending;
        }
        if self.pending_left > 0 {
            self.pending_left -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.reserved = true;
        self.handle.reserve();
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !self.reserved {
            self.handle
                .breach("called without a reservation: this very instance was not readied");
        }
        self.reserved = false;
        self.pending_left = self.pending_first;
        ProbeFuture::new(self.handle.clone(), || (self.answer)(request))
    }
}

impl<B, R, E> Clone for ServiceProbe<B, R, E> {
    fn clone(&self) -> Self {
        Self {
            answer: Arc::clone(&self.answer),
            ready_error: self.ready_error.clone(),
            pending_first: self.pending_first,
            pending_left: self.pending_first,
            reserved: false,
            handle: self.handle.clone(),
        }
    }
}

impl<B, R, E> Drop for ServiceProbe<B, R, E> {
    fn drop(&mut self) {
        if self.reserved {
            self.handle.give_back();
        }
    }
}

impl<B, R, E> fmt::Debug for ServiceProbe<B, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceProbe")
            .field("reserved", &self.reserved)
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
