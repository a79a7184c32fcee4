use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::time::{Instant, sleep, timeout};

use super::owner::Owner;
use crate::store::{Settled, Store};

/// The claim that a handler runs under. In the request's extensions.
///
/// A handler that writes to a system which checks fences passes [`fence`](Lease::fence) along, so that a late owner's
/// writes are refused. One that runs long can look at [`is_lost`](Lease::is_lost) before it acts.
#[derive(Clone, Debug)]
pub struct Lease {
    fence: u64,
    lost: Arc<AtomicBool>,
}

impl Lease {
    pub(super) fn new(fence: u64) -> Self {
        Self {
            fence,
            lost: Arc::default(),
        }
    }

    /// Higher than that of every earlier run of this key.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// Whether the lease may be over: it could not be renewed in time, or somebody else has the key by now.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    fn lose(&self) {
        if !self.lost.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                event = "lease_lost",
                fence = self.fence,
                "idempotency lease lost"
            );
        }
    }
}

impl<St: Store> Owner<St> {
    /// Renews the lease for as long as it is polled.
    ///
    /// A renewal that fails is tried again at the next third of the lease. When none was known to succeed for a whole
    /// lease, the lease counts as lost, though a later renewal may still save it.
    pub(super) async fn renew_forever(&self, lease: &Lease) -> Infallible {
        let timing = &self.config.timing;
        let mut sure_until = self.claimed_at + timing.lease();
        loop {
            sleep(timing.renewal()).await;
            let sent = Instant::now();
            match timeout(timing.timeout().min(timing.renewal()), self.renew()).await {
                Ok(Ok(Settled::Applied)) => sure_until = sent + timing.lease(),
                Ok(Ok(_)) => {
                    lease.lose();
                    return pending().await;
                }
                Ok(Err(_)) | Err(_) => {}
            }
            if Instant::now() >= sure_until {
                lease.lose();
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
