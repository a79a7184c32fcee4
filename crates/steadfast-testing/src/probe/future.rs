//! The probe's response future.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::Response;

use super::handle::ProbeHandle;

pub(crate) type BoxAnswer<R, E> =
    Pin<Box<dyn Future<Output = Result<Response<R>, E>> + Send + 'static>>;

/// Response future of [`ServiceProbe`](crate::ServiceProbe).
///
/// # Cancellation
///
/// Dropped before its end, it counts as [dropped](ProbeHandle::dropped); dropped after its answer panicked, as
/// [panicked](ProbeHandle::panicked).
#[must_use = "futures do nothing unless they are polled"]
pub struct ProbeFuture<R, E> {
    answer: Option<BoxAnswer<R, E>>,
    in_flight: InFlight,
}

impl<R, E> ProbeFuture<R, E> {
    /// Counts a call, and makes its answer.
    pub(crate) fn new(handle: ProbeHandle, answer: impl FnOnce() -> BoxAnswer<R, E>) -> Self {
        handle.call();
        // Before the answer is made, so that a panic in the making is counted.
        let mut in_flight = InFlight {
            handle,
            running: true,
            done: false,
        };
        let answer = answer();
        in_flight.running = false;
        Self {
            answer: Some(answer),
            in_flight,
        }
    }
}

impl<R, E> Future for ProbeFuture<R, E> {
    type Output = Result<Response<R>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(answer) = this.answer.as_mut() else {
            this.in_flight.handle.breach("future polled after its end");
        };
        this.in_flight.running = true;
        let poll = answer.as_mut().poll(cx);
        this.in_flight.running = false;
        if poll.is_ready() {
            this.answer = None;
            this.in_flight.done = true;
            this.in_flight.handle.complete();
        }
        poll
    }
}

impl<R, E> fmt::Debug for ProbeFuture<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeFuture")
            .field("done", &self.in_flight.done)
            .finish_non_exhaustive()
    }
}

struct InFlight {
    handle: ProbeHandle,
    // Still set when dropped only if the foreign code did not return.
    running: bool,
    done: bool,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.done {
            self.handle.abandon(self.running);
        }
    }
}
