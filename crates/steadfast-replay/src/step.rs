use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::{
    task::coop::{Unconstrained, unconstrained},
    time::{Sleep, sleep},
};

/// Why a step of the store was not done, or is not known to be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError<E> {
    #[error(transparent)]
    Failed(E),
    #[error("the store did not answer in time")]
    TooLate,
}

pin_project! {
    /// A step of the store, and the time it may take.
    ///
    /// The timer is set when the step is found to be unfinished: those of a memory store never are, and pay for none.
    #[must_use = "futures do nothing unless polled"]
    pub(crate) struct Step<F> {
        #[pin]
        step: F,
        limit: Duration,
        late: Option<Pin<Box<Unconstrained<Sleep>>>>,
    }
}

impl<F> Step<F> {
    pub(crate) const fn new(step: F, limit: Duration) -> Self {
        Self {
            step,
            limit,
            late: None,
        }
    }
}

impl<F, T, E> Future for Step<F>
where
    F: Future<Output = Result<T, E>>,
{
    type Output = Result<T, StepError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(result) = this.step.poll(cx) {
            return Poll::Ready(result.map_err(StepError::Failed));
        }
        // Unconstrained, so that a store which uses up the task's budget cannot hold up its own limit.
        let limit = *this.limit;
        let late = this
            .late
            .get_or_insert_with(|| Box::pin(unconstrained(sleep(limit))));
        late.as_mut().poll(cx).map(|()| Err(StepError::TooLate))
    }
}
