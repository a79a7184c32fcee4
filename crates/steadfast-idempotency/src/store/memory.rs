use std::{
    convert::Infallible,
    fmt,
    future::{Future, ready},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use self::{
    room::{Room, TenantRoom},
    shard::{Found, Shard, Step},
};
use super::{Claim, Claimed, Record, RecordId, Settled, Store, Token, Tombstone, Won};

mod room;
mod shard;

/// The memory store cannot fail.
pub type MemoryStoreError = Infallible;

/// Must be a power of two of at most 256: a byte of the digest picks the shard.
const SHARDS: usize = 64;

/// How many expired records a claim removes in passing. Two for each one it may add: the store catches up.
const SWEEP_PER_CLAIM: usize = 2;

/// Keeps claims and answers in this process.
///
/// All clones share the records: give clones of one store to every layer whose keys must not be forgotten by another.
/// What it holds is gone with the process, so after a restart a key is free.
///
/// # How large
///
/// Capacity counts records in every state, and the bytes of the stored answers. A record lives for the ttl from its
/// completion, so
///
/// ```text
/// entries = (calls with a key per second) × (ttl in seconds)
/// bytes   = entries × (head and body of an answer)
/// memory  ≈ bytes + entries × 0.3 KB
/// ```
///
/// At 10 calls a second and a ttl of 24 h that is 864,000 entries: about 0.7 KB each with small answers. When it is
/// full, new keys are refused with 503 while known ones are still served; a record that has not expired is never
/// removed. An answer for which there are no bytes left is replaced by a tombstone: the operation is not run again.
///
/// # Time
///
/// [`tokio::time::Instant`]: no clock correction moves it, and tests can pause it.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    shards: Box<[Mutex<Shard>]>,
    room: Room,
    /// Fences rise across the whole store, so those of one key rise too, whatever became of its records.
    fence: AtomicU64,
}

impl MemoryStore {
    /// A store for `entries` records, whose answers take `bytes` bytes in all.
    #[must_use]
    pub fn new(entries: usize, bytes: usize) -> Self {
        Self::with_room(Room::new(entries, bytes, None))
    }

    /// A store in which one tenant may have at most `per_tenant` of the `entries` records. By default a tenant may
    /// have them all.
    #[must_use]
    pub fn with_tenant_cap(entries: usize, bytes: usize, per_tenant: usize) -> Self {
        Self::with_room(Room::new(entries, bytes, Some(TenantRoom::new(per_tenant))))
    }

    fn with_room(room: Room) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::default())).collect();
        Self {
            shared: Arc::new(Shared {
                shards,
                room,
                fence: AtomicU64::new(0),
            }),
        }
    }

    /// How many records it holds, expired ones that were not removed yet included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.room.entries()
    }

    /// Whether it holds no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shard of a record. The map inside a shard uses the first eight bytes of the digest: picking the shard by
    /// others keeps a shard's records spread over its whole table.
    fn shard(&self, id: &RecordId) -> MutexGuard<'_, Shard> {
        let shard = usize::from(id.key()[31]) % SHARDS;
        lock(&self.shared.shards[shard])
    }

    fn claim_now(&self, claim: &Claim) -> Claimed {
        let shared = &*self.shared;
        let now = Instant::now();
        let fence = || shared.fence.fetch_add(1, Ordering::Relaxed) + 1;
        let mut shard = self.shard(&claim.id);
        shard.sweep(now, SWEEP_PER_CLAIM, &shared.room);
        match shard.find(claim, now) {
            Found::Live(claimed) => return claimed,
            Found::Owned { fence } => {
                let Claim { lease, ttl, .. } = *claim;
                shard.step(
                    &claim.id,
                    claim.token,
                    Step::Renew { lease, ttl },
                    now,
                    &shared.room,
                );
                return Claimed::Won(Won::new(fence));
            }
            Found::Reclaimable => {
                let fence = fence();
                shard.take_over(claim, fence, now, &shared.room);
                return Claimed::Won(Won::new(fence));
            }
            Found::Absent => {}
        }
        if !shared.room.take_entry(&claim.id) {
            drop(shard);
            return self.claim_when_full(claim, now);
        }
        let fence = fence();
        shard.insert(claim, fence, now);
        Claimed::Won(Won::new(fence))
    }

    /// There was no room: removes what has expired anywhere, until there is room or nothing expired is left. What went
    /// first may all have been other tenants'.
    fn claim_when_full(&self, claim: &Claim, now: Instant) -> Claimed {
        let mut shard = loop {
            if self.sweep(now, SHARDS) == 0 {
                return Claimed::Full;
            }
            let shard = self.shard(&claim.id);
            // Another claim may have come between.
            if let Found::Live(claimed) = shard.find(claim, now) {
                return claimed;
            }
            if shard.contains(&claim.id) || self.shared.room.take_entry(&claim.id) {
                break shard;
            }
        };
        let fence = self.shared.fence.fetch_add(1, Ordering::Relaxed) + 1;
        if shard.contains(&claim.id) {
            shard.take_over(claim, fence, now, &self.shared.room);
        } else {
            shard.insert(claim, fence, now);
        }
        Claimed::Won(Won::new(fence))
    }

    fn sweep(&self, now: Instant, limit: usize) -> usize {
        let mut removed = 0;
        for shard in &self.shared.shards {
            if removed >= limit {
                break;
            }
            removed += lock(shard).sweep(now, limit - removed, &self.shared.room);
        }
        removed
    }

    fn step(&self, id: &RecordId, token: Token, step: Step) -> Settled {
        self.shard(id)
            .step(id, token, step, Instant::now(), &self.shared.room)
    }
}

impl Store for MemoryStore {
    type Error = MemoryStoreError;

    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed, Infallible>> + Send {
        ready(Ok(self.claim_now(&claim)))
    }

    fn renew(
        &self,
        id: RecordId,
        token: Token,
        lease: Duration,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, Infallible>> + Send {
        ready(Ok(self.step(&id, token, Step::Renew { lease, ttl })))
    }

    fn complete(
        &self,
        id: RecordId,
        token: Token,
        record: Record,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, Infallible>> + Send {
        ready(Ok(self.step(&id, token, Step::Complete { record, ttl })))
    }

    fn tombstone(
        &self,
        id: RecordId,
        token: Token,
        tombstone: Tombstone,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, Infallible>> + Send {
        ready(Ok(self.step(
            &id,
            token,
            Step::Tombstone { tombstone, ttl },
        )))
    }

    fn hold(
        &self,
        id: RecordId,
        token: Token,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, Infallible>> + Send {
        ready(Ok(self.step(&id, token, Step::Hold { ttl })))
    }

    fn release(
        &self,
        id: RecordId,
        token: Token,
    ) -> impl Future<Output = Result<Settled, Infallible>> + Send {
        ready(Ok(self.step(&id, token, Step::Release)))
    }

    fn purge(&self, limit: usize) -> impl Future<Output = Result<usize, Infallible>> + Send {
        ready(Ok(self.sweep(Instant::now(), limit)))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// Nothing under these locks can panic half way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
