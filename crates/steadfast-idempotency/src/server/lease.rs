use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep_until, timeout};

use super::owner::Owner;
use crate::store::{Settled, Store};

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
    pub(super) fn new(fence: u64, claimed_at: Instant, lease: Duration) -> Self {
        Self {
            fence,
            claimed_at,
            sure_for: Arc::new(AtomicU64::new(nanos(lease))),
        }
    }

    /// Higher than that of every earlier run of this key.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// Whether the lease may be over: it was not renewed in time, or somebody else has the key by now.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        nanos(self.claimed_at.elapsed()) >= self.sure_for.load(Ordering::Relaxed)
    }

    /// When the renewal that is known to have succeeded was sent, or the claim.
    fn renewed_at(&self, lease: Duration) -> Instant {
        let sure_for = Duration::from_nanos(self.sure_for.load(Ordering::Relaxed));
        self.claimed_at + sure_for.saturating_sub(lease)
    }

    fn prolong(&self, until: Instant) {
        let sure_for = nanos(until.duration_since(self.claimed_at));
        self.sure_for.store(sure_for, Ordering::Relaxed);
    }

    fn lose(&self) {
        self.sure_for.store(0, Ordering::Relaxed);
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl<St: Store> Owner<St> {
    /// Renews the lease for as long as it is polled.
    ///
    /// A renewal that fails is tried again at the next third of the lease. When none was known to succeed for a whole
    /// lease, the lease counts as lost, though a later renewal may still save it.
    pub(super) async fn renew_forever(&self, lease: &Lease) -> Infallible {
        let timing = &self.config.timing;
        let mut due = lease.claimed_at + timing.renewal();
        let mut told = false;
        loop {
            sleep_until(due).await;
            let sent = Instant::now();
            due = sent + timing.renewal();
            let stale = match timeout(timing.timeout().min(timing.renewal()), self.renew()).await {
                Ok(Ok(Settled::Applied)) => {
                    lease.prolong(sent + timing.lease());
                    false
                }
                Ok(Ok(_)) => {
                    lease.lose();
                    true
                }
                Ok(Err(_)) | Err(_) => false,
            };
            if lease.is_lost() && !told {
                told = true;
                tracing::warn!(
                    event = "lease_lost",
                    key = %self.key,
                    fence = lease.fence,
                    "idempotency lease lost"
                );
            }
            if stale {
                return pending().await;
            }
        }
    }

    /// Renews the lease for as long as it is polled, while the claim is being ended. A renewal that arrives after the
    /// end is refused, which is no loss: nothing is told.
    pub(super) async fn renew_quietly(&self, lease: &Lease) -> Infallible {
        let timing = &self.config.timing;
        let mut due = lease.renewed_at(timing.lease()) + timing.renewal();
        loop {
            sleep_until(due).await;
            let sent = Instant::now();
            due = sent + timing.renewal();
            let limit = timing.timeout().min(timing.renewal());
            if let Ok(Ok(Settled::Applied)) = timeout(limit, self.renew()).await {
                lease.prolong(sent + timing.lease());
            }
        }
    }

    pub(super) async fn renew(&self) -> Result<Settled, St::Error> {
        let timing = &self.config.timing;
        self.store
            .renew(self.id, self.token, timing.lease(), timing.ttl())
            .await
    }
}
