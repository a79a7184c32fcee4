use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// The claim that a handler runs under. In the request's extensions.
///
/// A handler that writes to a system which checks fences passes [`fence`](Lease::fence) along, so that a late owner's
/// writes are refused. One that runs long can look at [`is_lost`](Lease::is_lost) before it acts.
#[derive(Clone, Debug)]
pub struct Lease {
    fence: u64,
    /// Before the claim was sent: no store counts the lease from an earlier instant.
    claimed_at: Instant,
    /// Up to how many nanoseconds after the claim the lease is surely good. Compared with the clock by whoever asks: a
    /// handler that kept its thread for a whole lease is told, though no renewal could fail meanwhile.
    sure_for: Arc<AtomicU64>,
}

impl Lease {
    pub(crate) fn new(fence: u64, claimed_at: Instant, lease: Duration) -> Self {
        Self {
            fence,
            claimed_at,
            sure_for: Arc::new(AtomicU64::new(nanos(lease))),
        }
    }

    /// Higher than that of every earlier run of this event.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// Whether the lease may be over: it was not renewed in time, or somebody else has the event by now.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        nanos(self.claimed_at.elapsed()) >= self.sure_for.load(Ordering::Relaxed)
    }

    /// When the renewal that is known to have succeeded was sent, or the claim.
    pub(crate) fn renewed_at(&self, lease: Duration) -> Instant {
        let sure_for = Duration::from_nanos(self.sure_for.load(Ordering::Relaxed));
        self.claimed_at + sure_for.saturating_sub(lease)
    }

    pub(crate) fn prolong(&self, until: Instant) {
        let sure_for = nanos(until.duration_since(self.claimed_at));
        self.sure_for.store(sure_for, Ordering::Relaxed);
    }

    pub(crate) fn lose(&self) {
        self.sure_for.store(0, Ordering::Relaxed);
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
