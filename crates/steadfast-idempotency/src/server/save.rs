use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{lease::Lease, owner::Owner, renewal::Renewal};
use crate::store::{Record, Settled, Store, Tombstone, TombstoneReason};

/// How a claim ends.
#[derive(Clone, Debug)]
pub(super) enum End {
    Complete { record: Record, status: u16 },
    Hold,
    Release,
    Tombstone(Tombstone),
}

/// How long to wait before a failed save is tried again for the first time; doubled each time, up to a third of the
/// lease.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// After so many failed attempts to store an answer while the lease could be renewed, the answer is given up and only
/// the fact that the operation is done is stored.
const SAVES_BEFORE_TOMBSTONE: u32 = 5;

impl<St: Store> Owner<St> {
    /// Ends the claim. Whatever fails here, the claim is never freed by it: a second run would be a second effect.
    ///
    /// The lease is renewed meanwhile: a step may take as long as the lease.
    pub(super) async fn settle(&self, lease: &Lease, end: End) {
        let unsaved = match self
            .renewing(lease, Renewal::Quiet, self.try_settle(&end))
            .await
        {
            Saved::Yes => return,
            Saved::Stale => {
                tracing::warn!(event = "lease_lost", key = %self.key, "another owner has the idempotency key");
                return;
            }
            Saved::No(end) => end,
        };
        tracing::warn!(event = "save_failed", key = %self.key, "an idempotency record was not saved");
        // A release that fails frees the key late, when the lease is over, and that is all.
        if !matches!(unsaved, End::Release) {
            let owner = self.clone();
            self.config
                .tracker
                .spawn(owner.save_later(lease.clone(), unsaved));
        }
    }

    async fn save_later(self, lease: Lease, end: End) {
        self.renewing(&lease, Renewal::Quiet, self.save_repeatedly(end))
            .await;
    }

    async fn save_repeatedly(&self, mut end: End) {
        let give_up = Instant::now() + self.config.timing.ttl();
        let longest = self.config.timing.renewal();
        let mut pause = FIRST_PAUSE.min(longest);
        let mut reachable = 0;
        while Instant::now() < give_up {
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(longest);
            match self.try_settle(&end).await {
                Saved::Yes | Saved::Stale => return,
                Saved::No(unsaved) => end = unsaved,
            }
            match self.step(self.renew()).await {
                Ok(Settled::Applied) => reachable += 1,
                Ok(_) => return,
                Err(_) => {}
            }
            if reachable >= SAVES_BEFORE_TOMBSTONE {
                end = end.without_answer();
            }
        }
    }

    async fn try_settle(&self, end: &End) -> Saved {
        let (store, id, token) = (&self.store, self.id, self.token);
        let ttl = self.config.timing.ttl();
        let step = async {
            match end.clone() {
                End::Complete { record, .. } => store.complete(id, token, record, ttl).await,
                End::Hold => store.hold(id, token, ttl).await,
                End::Release => store.release(id, token).await,
                End::Tombstone(tombstone) => store.tombstone(id, token, tombstone, ttl).await,
            }
        };
        match self.step(step).await {
            Ok(Settled::Applied) => Saved::Yes,
            Ok(Settled::Stale) => Saved::Stale,
            // What does not fit is done all the same.
            Ok(Settled::NoRoom) if matches!(end, End::Complete { .. }) => {
                Box::pin(self.try_settle(&end.clone().without_answer())).await
            }
            // No other step takes room, whatever the store says.
            Ok(Settled::NoRoom) => Saved::No(end.clone()),
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "an idempotency claim was not ended"
                );
                Saved::No(end.clone())
            }
        }
    }
}

enum Saved {
    No(End),
    Stale,
    Yes,
}

impl End {
    fn without_answer(self) -> Self {
        match self {
            Self::Complete { status, .. } => Self::Tombstone(Tombstone {
                status,
                reason: TombstoneReason::NotSaved,
            }),
            end @ (Self::Hold | Self::Release | Self::Tombstone(_)) => end,
        }
    }
}
