use std::time::Duration;

use tokio_util::task::TaskTracker;

/// Waits for the events that are processed under a layer, at shutdown.
///
/// Stop accepting connections first, then wait here: events whose senders have gone are processed too. What is still
/// running at the limit is left to its lease, which lapses by itself; it is not released, since it may have had its
/// effect.
#[derive(Clone, Debug)]
pub struct Drain(TaskTracker);

/// How a drain ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
#[must_use]
pub enum Drained {
    /// Nothing runs any more.
    All,
    /// This many events were still running at the limit.
    Running(usize),
}

impl Drain {
    pub(crate) const fn new(tracker: TaskTracker) -> Self {
        Self(tracker)
    }

    /// How many events are processed.
    #[must_use]
    pub fn running(&self) -> usize {
        self.0.len()
    }

    /// Waits until nothing runs, at most for `limit`.
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    pub async fn wait(&self, limit: Duration) -> Drained {
        self.0.close();
        match tokio::time::timeout(limit, self.0.wait()).await {
            Ok(()) => Drained::All,
            Err(_) => Drained::Running(self.0.len()),
        }
    }
}
