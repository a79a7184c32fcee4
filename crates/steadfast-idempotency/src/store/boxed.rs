use std::{error::Error, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use super::{Claim, Claimed, Record, RecordId, Settled, Store, Token, Tombstone};

/// A store that is chosen at run time.
///
/// ```
/// use steadfast_idempotency::{BoxStore, MemoryStore};
///
/// let store = BoxStore::new(MemoryStore::new(10_000, 64 * 1024 * 1024));
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
#[error("the idempotency store failed")]
pub struct BoxStoreError(#[source] Box<dyn Error + Send + Sync>);

type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T, BoxStoreError>> + Send + 'a>>;

trait DynStore: Send + Sync {
    fn claim(&self, claim: Claim) -> Step<'_, Claimed>;
    fn renew(
        &self,
        id: RecordId,
        token: Token,
        lease: Duration,
        ttl: Duration,
    ) -> Step<'_, Settled>;
    fn complete(
        &self,
        id: RecordId,
        token: Token,
        record: Record,
        ttl: Duration,
    ) -> Step<'_, Settled>;
    fn tombstone(
        &self,
        id: RecordId,
        token: Token,
        tombstone: Tombstone,
        ttl: Duration,
    ) -> Step<'_, Settled>;
    fn hold(&self, id: RecordId, token: Token, ttl: Duration) -> Step<'_, Settled>;
    fn release(&self, id: RecordId, token: Token) -> Step<'_, Settled>;
    fn purge(&self, limit: usize) -> Step<'_, usize>;
}

fn step<'a, T, E>(future: impl Future<Output = Result<T, E>> + Send + 'a) -> Step<'a, T>
where
    E: Error + Send + Sync + 'static,
{
    Box::pin(async { future.await.map_err(|error| BoxStoreError(Box::new(error))) })
}

impl<St: Store> DynStore for St {
    fn claim(&self, claim: Claim) -> Step<'_, Claimed> {
        step(Store::claim(self, claim))
    }

    fn renew(
        &self,
        id: RecordId,
        token: Token,
        lease: Duration,
        ttl: Duration,
    ) -> Step<'_, Settled> {
        step(Store::renew(self, id, token, lease, ttl))
    }

    fn complete(
        &self,
        id: RecordId,
        token: Token,
        record: Record,
        ttl: Duration,
    ) -> Step<'_, Settled> {
        step(Store::complete(self, id, token, record, ttl))
    }

    fn tombstone(
        &self,
        id: RecordId,
        token: Token,
        tombstone: Tombstone,
        ttl: Duration,
    ) -> Step<'_, Settled> {
        step(Store::tombstone(self, id, token, tombstone, ttl))
    }

    fn hold(&self, id: RecordId, token: Token, ttl: Duration) -> Step<'_, Settled> {
        step(Store::hold(self, id, token, ttl))
    }

    fn release(&self, id: RecordId, token: Token) -> Step<'_, Settled> {
        step(Store::release(self, id, token))
    }

    fn purge(&self, limit: usize) -> Step<'_, usize> {
        step(Store::purge(self, limit))
    }
}

impl Store for BoxStore {
    type Error = BoxStoreError;

    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed, BoxStoreError>> + Send {
        self.0.claim(claim)
    }

    fn renew(
        &self,
        id: RecordId,
        token: Token,
        lease: Duration,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, BoxStoreError>> + Send {
        self.0.renew(id, token, lease, ttl)
    }

    fn complete(
        &self,
        id: RecordId,
        token: Token,
        record: Record,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, BoxStoreError>> + Send {
        self.0.complete(id, token, record, ttl)
    }

    fn tombstone(
        &self,
        id: RecordId,
        token: Token,
        tombstone: Tombstone,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, BoxStoreError>> + Send {
        self.0.tombstone(id, token, tombstone, ttl)
    }

    fn hold(
        &self,
        id: RecordId,
        token: Token,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, BoxStoreError>> + Send {
        self.0.hold(id, token, ttl)
    }

    fn release(
        &self,
        id: RecordId,
        token: Token,
    ) -> impl Future<Output = Result<Settled, BoxStoreError>> + Send {
        self.0.release(id, token)
    }

    fn purge(&self, limit: usize) -> impl Future<Output = Result<usize, BoxStoreError>> + Send {
        self.0.purge(limit)
    }
}
