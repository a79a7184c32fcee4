use std::{error::Error, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use super::{Claim, Claimed, EventId, Once, Recorded, Settled, Store, Token};

/// A store that is chosen at run time. Each step costs an allocation.
///
/// ```
/// use steadfast_replay::{BoxStore, MemoryStore};
///
/// let store = BoxStore::new(MemoryStore::new(10_000));
/// # let _ = store;
/// ```
#[derive(Clone)]
pub struct BoxStore(Arc<dyn DynStore>);

impl BoxStore {
    /// Erases the type of a store.
    pub fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }
}

impl fmt::Debug for BoxStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxStore(..)")
    }
}

/// The error of the store inside, which is its source.
#[derive(Debug, thiserror::Error)]
#[error("the replay store failed")]
pub struct BoxStoreError(#[source] Box<dyn Error + Send + Sync>);

type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T, BoxStoreError>> + Send + 'a>>;

trait DynStore: Send + Sync {
    fn record(&self, once: Once) -> Step<'static, Recorded>;
    fn claim(&self, claim: Claim) -> Step<'_, Claimed>;
    fn renew(
        &self,
        event: EventId,
        token: Token,
        lease: Duration,
        retention: Duration,
    ) -> Step<'_, Settled>;
    fn commit(&self, event: EventId, token: Token, retention: Duration) -> Step<'_, Settled>;
    fn release(&self, event: EventId, token: Token) -> Step<'_, Settled>;
    fn purge(&self, limit: usize) -> Step<'_, usize>;
}

fn step<'a, T, E>(future: impl Future<Output = Result<T, E>> + Send + 'a) -> Step<'a, T>
where
    E: Error + Send + Sync + 'static,
{
    Box::pin(async { future.await.map_err(|error| BoxStoreError(Box::new(error))) })
}

impl<St: Store> DynStore for St {
    fn record(&self, once: Once) -> Step<'static, Recorded> {
        step(Store::record(self, once))
    }

    fn claim(&self, claim: Claim) -> Step<'_, Claimed> {
        step(Store::claim(self, claim))
    }

    fn renew(
        &self,
        event: EventId,
        token: Token,
        lease: Duration,
        retention: Duration,
    ) -> Step<'_, Settled> {
        step(Store::renew(self, event, token, lease, retention))
    }

    fn commit(&self, event: EventId, token: Token, retention: Duration) -> Step<'_, Settled> {
        step(Store::commit(self, event, token, retention))
    }

    fn release(&self, event: EventId, token: Token) -> Step<'_, Settled> {
        step(Store::release(self, event, token))
    }

    fn purge(&self, limit: usize) -> Step<'_, usize> {
        step(Store::purge(self, limit))
    }
}

impl Store for BoxStore {
    type Error = BoxStoreError;
    type Record = Pin<Box<dyn Future<Output = Result<Recorded, BoxStoreError>> + Send>>;

    fn record(&self, once: Once) -> Self::Record {
        self.0.record(once)
    }

    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed, BoxStoreError>> + Send {
        self.0.claim(claim)
    }

    fn renew(
        &self,
        event: EventId,
        token: Token,
        lease: Duration,
        retention: Duration,
    ) -> impl Future<Output = Result<Settled, BoxStoreError>> + Send {
        self.0.renew(event, token, lease, retention)
    }

    fn commit(
        &self,
        event: EventId,
        token: Token,
        retention: Duration,
    ) -> impl Future<Output = Result<Settled, BoxStoreError>> + Send {
        self.0.commit(event, token, retention)
    }

    fn release(
        &self,
        event: EventId,
        token: Token,
    ) -> impl Future<Output = Result<Settled, BoxStoreError>> + Send {
        self.0.release(event, token)
    }

    fn purge(&self, limit: usize) -> impl Future<Output = Result<usize, BoxStoreError>> + Send {
        self.0.purge(limit)
    }
}
