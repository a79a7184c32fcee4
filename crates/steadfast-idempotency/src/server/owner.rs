use std::{
    fmt,
    future::Future,
    hash::{BuildHasher as _, RandomState},
    pin::pin,
    sync::{Arc, OnceLock},
    task::Poll,
    time::Duration,
};

use futures_util::poll;
use steadfast_headers::IdempotencyKey;
use tokio::time::{error::Elapsed, timeout};

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
    pub(super) async fn step<T>(
        &self,
        step: impl Future<Output = Result<T, St::Error>>,
    ) -> Result<T, StepError<St::Error>> {
        match within(self.config.timing.timeout(), step).await {
            Ok(result) => result.map_err(StepError::Failed),
            Err(_) => Err(StepError::TooLate),
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

/// A timeout that costs nothing when the future is ready at once, as those of a memory store are.
async fn within<F: Future>(limit: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    match poll!(&mut future) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => timeout(limit, future).await,
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
