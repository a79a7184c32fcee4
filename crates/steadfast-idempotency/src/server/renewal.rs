use std::{
    convert::Infallible,
    fmt,
    future::{Future, pending},
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use tokio::time::{Instant, sleep_until, timeout};

use super::{lease::Lease, owner::Owner};
use crate::store::{Settled, Store};

/// Who is told that a lease was lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Renewal {
    /// The handler, through its lease, and the log.
    Told,
    /// Nobody: the claim is being ended, and a renewal that arrives after the end is refused, which is no loss.
    Quiet,
}

impl<St: Store> Owner<St> {
    /// Does `work`, and renews the lease whenever it is due.
    pub(super) const fn renewing<'a, F: Future>(
        &'a self,
        lease: &'a Lease,
        renewal: Renewal,
        work: F,
    ) -> Renewing<'a, St, F> {
        Renewing {
            work,
            owner: self,
            lease,
            renewal,
            renew: None,
        }
    }

    /// Renews the lease for as long as it is polled.
    ///
    /// A renewal that fails is tried again at the next third of the lease. When none was known to succeed for a whole
    /// lease, the lease counts as lost, though a later renewal may still save it.
    async fn renew_forever(&self, lease: &Lease, renewal: Renewal) -> Infallible {
        let timing = &self.config.timing;
        let mut due = lease.renewed_at(timing.lease()) + timing.renewal();
        let mut told = renewal == Renewal::Quiet;
        loop {
            sleep_until(due).await;
            let sent = Instant::now();
            due = sent + timing.renewal();
            let stale = match timeout(timing.timeout().min(timing.renewal()), self.renew()).await {
                Ok(Ok(Settled::Applied)) => {
                    lease.prolong(sent + timing.lease());
                    false
                }
                Ok(Ok(_)) => renewal == Renewal::Told,
                Ok(Err(_)) | Err(_) => false,
            };
            if stale {
                lease.lose();
            }
            if !told && lease.is_lost() {
                told = true;
                tracing::warn!(
                    event = "lease_lost",
                    key = %self.key,
                    fence = lease.fence(),
                    "idempotency lease lost"
                );
            }
            if stale {
                return pending().await;
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

pin_project! {
    /// Work, and the renewal of the lease meanwhile.
    ///
    /// The renewal is made when the work is found unfinished: a handler that answers at once pays for none. It looks at
    /// the lease for when it is due, so that it does not matter when it is made.
    #[must_use = "futures do nothing unless polled"]
    pub(super) struct Renewing<'a, St, F> {
        #[pin]
        work: F,
        owner: &'a Owner<St>,
        lease: &'a Lease,
        renewal: Renewal,
        renew: Option<Pin<Box<dyn Future<Output = Infallible> + Send + 'a>>>,
    }
}

impl<St: Store, F: Future> Future for Renewing<'_, St, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.work.poll(cx) {
            return Poll::Ready(output);
        }
        let (owner, lease, renewal) = (*this.owner, *this.lease, *this.renewal);
        let renew = this
            .renew
            .get_or_insert_with(|| Box::pin(owner.renew_forever(lease, renewal)));
        match renew.as_mut().poll(cx) {
            Poll::Ready(never) => match never {},
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<St, F> fmt::Debug for Renewing<'_, St, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewing")
            .field("lease", &self.lease)
            .field("renewal", &self.renewal)
            .finish_non_exhaustive()
    }
}
