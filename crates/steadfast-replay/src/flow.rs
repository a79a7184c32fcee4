use std::{
    future::Future,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt as _;
use http::{Request, Response, StatusCode};
use steadfast_core::{Arm, Body};
use tokio::time::{Instant, sleep};
use tower_service::Service;

use crate::{
    handler::Handler,
    layer::{Config, Events},
    lease::Lease,
    rejection::Rejection,
    renewal::Renewal,
    step::{Step, StepError},
    store::{Claim, Claimed, EventId, Settled, Store, Token},
};

/// Who claims an event, and what is needed to end the claim.
#[derive(Clone)]
pub(crate) struct Owner<St> {
    pub(crate) store: St,
    pub(crate) config: Arc<Config<Events>>,
    pub(crate) event: EventId,
    pub(crate) token: Token,
}

/// An error of the service inside.
pub(crate) enum ServiceError<E> {
    /// It was called, and may have done anything.
    Called(E),
    /// It was never called: it is dead.
    NotReady(E),
}

/// Claims, runs, and commits or releases. Armed from the claim on, so that the rest outlives the sender's connection.
pub(crate) async fn run<S, St, ReqBody, ResBody>(
    owner: Owner<St>,
    inner: S,
    mut request: Request<ReqBody>,
    arm: Arm,
) -> Result<Response<Body<ResBody>>, S::Error>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    St: Store,
    ResBody: http_body::Body,
{
    // A claim may have been taken as soon as the store was asked.
    arm.arm();
    let lease = match owner.claim().await {
        Ok(lease) => lease,
        Err(Unclaimed::Done) => return Ok(owner.duplicate()),
        Err(Unclaimed::For(rejection)) => return Ok(owner.config.reject(rejection)),
    };
    request.extensions_mut().insert(lease.clone());
    // In a box of its own, for which duplicates and refusals have no use.
    let handler = Box::pin(Handler::new(inner, request));
    // A panic goes on unwinding, but not before the claim has been ended. Whatever is unwinding through here afterwards
    // is not looked at again, so nothing broken is seen.
    let handled = AssertUnwindSafe(handler).catch_unwind();
    let handled = owner.renewing(&lease, Renewal::Told, handled).await;
    match handled {
        Ok(Ok(response)) => {
            if response.status().is_success() {
                owner.commit(&lease).await;
            } else {
                owner.release().await;
            }
            Ok(response.map(Body::inner))
        }
        Ok(Err(ServiceError::Called(error) | ServiceError::NotReady(error))) => {
            owner.release().await;
            Err(error)
        }
        Err(panic) => {
            owner.release().await;
            resume_unwind(panic)
        }
    }
}

/// Why the handler is not run.
enum Unclaimed {
    Done,
    For(Rejection),
}

/// How often a claim whose answer came too late is tried.
const TRIES: u32 = 3;

/// How long to wait before a failed commit is tried again for the first time; doubled each time, up to a third of the
/// lease.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

impl<St: Store> Owner<St> {
    /// Claims the event. An answer that took longer than the lease is worth nothing, since somebody else may have the
    /// event by then: the same token asks again.
    async fn claim(&self) -> Result<Lease, Unclaimed> {
        for _ in 0..TRIES {
            let span = self.config.mode.lease;
            let claimed_at = Instant::now();
            let fence = self.try_claim().await?;
            let lease = Lease::new(fence, claimed_at, span);
            if !lease.is_lost() {
                return Ok(lease);
            }
        }
        self.release_soon();
        Err(Unclaimed::For(Rejection::InProgress))
    }

    async fn try_claim(&self) -> Result<u64, Unclaimed> {
        let mode = &self.config.mode;
        let claim = Claim {
            event: self.event,
            token: self.token,
            lease: mode.lease,
            retention: mode.retention,
        };
        match self.step(self.store.claim(claim)).await {
            Ok(Claimed::Won { fence }) => Ok(fence),
            Ok(Claimed::Running) => Err(Unclaimed::For(Rejection::InProgress)),
            Ok(Claimed::Done) => Err(Unclaimed::Done),
            Ok(Claimed::Full) => Err(Unclaimed::For(Rejection::StoreFull)),
            Err(error) => {
                tracing::warn!(
                    event = "store_unavailable",
                    error = &error as &dyn std::error::Error,
                    "the replay store did not take a claim"
                );
                // The claim may have arrived all the same.
                self.release_soon();
                Err(Unclaimed::For(Rejection::StoreUnavailable))
            }
        }
    }

    /// The event is done: its sender may stop.
    fn duplicate<B: http_body::Body>(&self) -> Response<Body<B>> {
        tracing::debug!("duplicate event dropped");
        let (name, value) = self.config.mode.duplicate.clone();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::OK;
        response.headers_mut().insert(name, value);
        response.extensions_mut().insert(Duplicate);
        response
    }

    /// Remembers that the event was processed. Whatever fails here, the claim is never freed by it: a redelivery would
    /// be processed again. The handler's answer goes out meanwhile, since the event is not lost.
    async fn commit(&self, lease: &Lease) {
        if self
            .renewing(lease, Renewal::Quiet, self.try_commit())
            .await
        {
            return;
        }
        tracing::warn!(
            event = "save_failed",
            fence = lease.fence(),
            "an event was not committed"
        );
        let (owner, lease) = (self.clone(), lease.clone());
        self.config.mode.tracker.spawn(async move {
            owner
                .renewing(&lease, Renewal::Quiet, owner.commit_repeatedly())
                .await;
        });
    }

    async fn commit_repeatedly(&self) {
        let give_up = Instant::now() + self.config.mode.retention;
        let longest = self.config.mode.lease / 3;
        let mut pause = FIRST_PAUSE.min(longest);
        while Instant::now() < give_up {
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(longest);
            if self.try_commit().await {
                return;
            }
        }
    }

    /// Whether it came to an end.
    async fn try_commit(&self) -> bool {
        let retention = self.config.mode.retention;
        let commit = self.store.commit(self.event, self.token, retention);
        match self.step(commit).await {
            Ok(Settled::Applied) => true,
            Ok(Settled::Stale) => {
                tracing::warn!(event = "lease_lost", "another owner has the event");
                true
            }
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "an event was not committed"
                );
                false
            }
        }
    }

    /// Frees the event for its redelivery (G04). Where that fails, it is free when the lease is over.
    async fn release(&self) {
        tracing::debug!("event released: it was not processed");
        let release = self.store.release(self.event, self.token);
        if let Err(error) = self.step(release).await {
            tracing::warn!(
                event = "release_failed",
                error = &error as &dyn std::error::Error,
                "an event may stay claimed until its lease is over"
            );
        }
    }

    /// Gives a claim up under which nobody will run, so that nobody waits for its lease.
    fn release_soon(&self) {
        let owner = self.clone();
        self.config
            .mode
            .tracker
            .spawn(async move { owner.release().await });
    }

    async fn step<T>(
        &self,
        step: impl Future<Output = Result<T, St::Error>>,
    ) -> Result<T, StepError<St::Error>> {
        Step::new(step, self.config.store_timeout).await
    }
}

/// The event was processed before: the handler was not called. In the extensions of the 200.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Duplicate;
