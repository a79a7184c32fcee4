use std::{
    convert::Infallible,
    future::{Future, pending},
    pin::pin,
};

use tokio::time::{Instant, sleep_until};

use crate::{
    flow::Owner,
    lease::Lease,
    step::Step,
    store::{Settled, Store},
};

/// Who is told that a lease was lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Renewal {
    /// The handler, through its lease, and the log.
    Told,
    /// Nobody: the claim is being ended, and a renewal that arrives after the end is refused, which is no loss.
    Quiet,
}

impl<St: Store> Owner<St> {
    /// Polls `work`, and renews the lease whenever it is due.
    pub(crate) async fn renewing<F: Future>(
        &self,
        lease: &Lease,
        renewal: Renewal,
        work: F,
    ) -> F::Output {
        let mut work = pin!(work);
        let renewal = pin!(self.renew_forever(lease, renewal));
        tokio::select! {
            biased;
            output = work.as_mut() => output,
            never = renewal => match never {},
        }
    }

    /// Renews the lease for as long as it is polled.
    ///
    /// A renewal that fails is tried again at the next third of the lease. When none was known to succeed for a whole
    /// lease, the lease counts as lost, though a later renewal may still save it.
    async fn renew_forever(&self, lease: &Lease, renewal: Renewal) -> Infallible {
        let span = self.config.mode.lease;
        let third = span / 3;
        let mut due = lease.renewed_at(span) + third;
        let mut told = renewal == Renewal::Quiet;
        loop {
            sleep_until(due).await;
            let sent = Instant::now();
            due = sent + third;
            let limit = self.config.store_timeout.min(third);
            let stale = match Step::new(self.renew(), limit).await {
                Ok(Settled::Applied) => {
                    lease.prolong(sent + span);
                    false
                }
                Ok(Settled::Stale) => renewal == Renewal::Told,
                Err(_) => false,
            };
            if stale {
                lease.lose();
            }
            if !told && lease.is_lost() {
                told = true;
                tracing::warn!(
                    event = "lease_lost",
                    fence = lease.fence(),
                    "event lease lost"
                );
            }
            if stale {
                return pending().await;
            }
        }
    }

    async fn renew(&self) -> Result<Settled, St::Error> {
        let mode = &self.config.mode;
        self.store
            .renew(self.event, self.token, mode.lease, mode.retention)
            .await
    }
}
