use std::time::Duration;

use steadfast_core::Arm;
use tokio::time::{Instant, sleep};

use super::{
    lease::Lease,
    owner::{Owner, StepError},
    rejection::Rejection,
};
use crate::store::{Claim, Claimed, Fingerprint, Record, Store};

/// What to do with a call.
pub(super) enum Admission {
    Refuse(Rejection),
    Replay(Record),
    Run(Lease),
    RunUnprotected,
}

/// Pauses between two looks at a running call: the first, doubled each time up to the last.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LAST_LOOK: Duration = Duration::from_millis(250);

/// How often a claim that came to nothing, through a record that was gone or an answer that came too late, is tried.
const TRIES: u32 = 3;

/// What one claim came to.
enum Answer {
    Final(Admission),
    /// The same call runs elsewhere.
    Running,
    /// Won, but the answer took longer than the lease: somebody else may have the key by now.
    Late,
    /// Lost to a record that is gone.
    Vanished,
}

impl<St: Store> Owner<St> {
    /// Claims the key (I13). A duplicate of a running call waits as long as it may.
    ///
    /// The flow is armed while a claim may have been taken, and only then: a caller who goes away during a wait takes
    /// the call along.
    pub(super) async fn claim(&self, fingerprint: Fingerprint, arm: &Arm) -> Admission {
        let wait = self.config.timing.wait();
        let mut give_up = None;
        let mut pause = FIRST_LOOK;
        let mut failed = 0;
        loop {
            arm.arm();
            let answer = self.try_claim(fingerprint).await;
            if !matches!(answer, Answer::Final(Admission::Run(_))) {
                arm.disarm();
            }
            match answer {
                Answer::Final(admission) => return admission,
                Answer::Late | Answer::Vanished if failed + 1 < TRIES => failed += 1,
                Answer::Running if !wait.is_zero() => {
                    let now = Instant::now();
                    let left = give_up
                        .get_or_insert(now + wait)
                        .saturating_duration_since(now);
                    if left.is_zero() {
                        return Admission::Refuse(Rejection::InProgress);
                    }
                    sleep(pause.min(left)).await;
                    pause = pause.saturating_mul(2).min(LAST_LOOK);
                }
                Answer::Late => {
                    self.release_soon();
                    return Admission::Refuse(Rejection::InProgress);
                }
                Answer::Running | Answer::Vanished => {
                    return Admission::Refuse(Rejection::InProgress);
                }
            }
        }
    }

    async fn try_claim(&self, fingerprint: Fingerprint) -> Answer {
        let timing = &self.config.timing;
        let claim = Claim {
            id: self.id,
            fingerprint,
            token: self.token,
            lease: timing.lease(),
            ttl: timing.ttl(),
        };
        let claimed_at = Instant::now();
        let claimed = match self.step(self.store.claim(claim)).await {
            Ok(claimed) => claimed,
            Err(error) => return Answer::Final(self.without_store(&error)),
        };
        let same = |of: Fingerprint| of == fingerprint;
        Answer::Final(match claimed {
            Claimed::Won(won) => {
                let lease = Lease::new(won.fence, claimed_at, timing.lease());
                if lease.is_lost() {
                    return Answer::Late;
                }
                Admission::Run(lease)
            }
            Claimed::Running { fingerprint } if same(fingerprint) => return Answer::Running,
            Claimed::Vanished => return Answer::Vanished,
            Claimed::Completed {
                fingerprint,
                record,
            } if same(fingerprint) => Admission::Replay(record),
            Claimed::Tombstone {
                fingerprint,
                tombstone,
            } if same(fingerprint) => Admission::Refuse(Rejection::ResultUnavailable(tombstone)),
            Claimed::Held { fingerprint } if same(fingerprint) => {
                Admission::Refuse(Rejection::OutcomeUnknown)
            }
            Claimed::Running { .. }
            | Claimed::Completed { .. }
            | Claimed::Tombstone { .. }
            | Claimed::Held { .. } => Admission::Refuse(Rejection::KeyReuse),
            Claimed::Full => Admission::Refuse(Rejection::StoreFull),
            Claimed::Unreadable => Admission::Refuse(Rejection::RecordUnreadable),
        })
    }

    fn without_store(&self, error: &StepError<St::Error>) -> Admission {
        tracing::warn!(
            event = "store_unavailable",
            key = %self.key,
            error = error as &dyn std::error::Error,
            "the idempotency store did not take a claim"
        );
        if self.config.run_without_store {
            return Admission::RunUnprotected;
        }
        // The claim may have arrived all the same.
        self.release_soon();
        Admission::Refuse(Rejection::StoreUnavailable)
    }

    /// Gives a claim up under which nobody will run, so that nobody waits for its lease.
    fn release_soon(&self) {
        let owner = self.clone();
        self.config.tracker.spawn(async move {
            let released = owner.step(owner.store.release(owner.id, owner.token)).await;
            if let Err(error) = released {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "an idempotency key may stay claimed until its lease is over"
                );
            }
        });
    }
}
