use std::time::Duration;

use steadfast::{idempotency, replay};

/// What runs behind the layers, also without its clients.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) calls: idempotency::Drain,
    pub(super) events: replay::Drain,
}

impl Running {
    /// Waits at most for `limit`. Whether all has ended.
    pub(super) async fn wait(&self, limit: Duration) -> bool {
        let waited = tokio::join!(self.calls.wait(limit), self.events.wait(limit));
        matches!(waited, (idempotency::Drained::All, replay::Drained::All))
    }
}
