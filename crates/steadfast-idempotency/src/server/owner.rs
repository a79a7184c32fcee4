use std::{
    fmt,
    future::Future,
    hash::{BuildHasher as _, RandomState},
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;
use steadfast_headers::IdempotencyKey;
use tokio::{
    task::coop::{Unconstrained, unconstrained},
    time::{Sleep, sleep},
};

use super::config::Config;
use crate::store::{RecordId, Store, Token};

/// Who claims a key, and what is needed to end the claim.
#[derive(Clone)]
pub(super) struct Owner<St> {
    pub(super) store: St,
    pub(super) config: Arc<Config>,
    pub(super) id: RecordId,
    pub(super) token: Token,
    pub(super) key: LoggedKey,
}

impl<St: Store> Owner<St> {
    pub(super) fn new(store: St, config: Arc<Config>, id: RecordId, key: IdempotencyKey) -> Self {
        Self {
            store,
            config,
            id,
            token: Token::random(),
            key: LoggedKey(key),
        }
    }

    /// Gives a step of the store the time it may take.
    pub(super) fn step<T, F>(&self, step: F) -> Step<F>
    where
        F: Future<Output = Result<T, St::Error>>,
    {
        Step {
            step,
            limit: self.config.timing.timeout(),
            late: None,
        }
    }
}

/// Why a step of the store was not done, or is not known to be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError<E> {
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
    pub(super) struct Step<F> {
        #[pin]
        step: F,
        limit: Duration,
        late: Option<Pin<Box<Unconstrained<Sleep>>>>,
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

/// A key as it may appear in logs: hashed with a seed of this process, so that lines about one call can be found and
/// the key cannot.
#[derive(Clone)]
pub(super) struct LoggedKey(IdempotencyKey);

impl fmt::Display for LoggedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        static SEED: OnceLock<RandomState> = OnceLock::new();
        let hash = SEED
            .get_or_init(RandomState::new)
            .hash_one(self.0.as_bytes());
        write!(f, "{hash:016x}")
    }
}
