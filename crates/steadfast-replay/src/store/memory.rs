use std::{
    convert::Infallible,
    fmt,
    future::{Future, Ready, ready},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use self::{
    claims::Claims,
    room::Room,
    table::{Entry, Table},
};
use super::{Claim, Claimed, Digest, EventId, Life, Once, Recorded, Settled, Store, Token};

mod claims;
mod room;
mod table;

/// The memory store cannot fail.
pub type MemoryStoreError = Infallible;

/// Must be a power of two of at most 256: a byte of the digest picks the part.
const CLAIM_PARTS: usize = 16;

/// How many expired entries a step removes, wherever they are, when there is no room.
const ROOM_PER_STEP: usize = 64;

/// Remembers requests and events in this process.
///
/// All clones share the entries. What it holds is gone with the process: a request that was good in the last seconds
/// before a restart is good once more after it, and events are processed again.
///
/// # How large
///
/// ```text
/// entries = (signed requests per second) × (tolerance before + tolerance after, in seconds)
///         + (events per second) × (identities: 1 or 2) × (retention in seconds)
/// memory  ≤ entries × 64 bytes
///         + (identities of events in work, or whose owner was killed) × 320 bytes
/// ```
///
/// At 1,000 requests a second and ±30 s that is 60,000 entries. When it is full, what is new is refused with 503. An
/// entry that is alive is never removed. An entry lives up to a second longer than it must.
/// What a burst took is given back when its entries have expired and others come, or when they are purged.
///
/// # Time
///
/// Signed timestamps are judged on the clock that judged their freshness. Layers that share a store share one clock:
/// where one is ahead, its entries push those of the others out early, and what cannot be told any more is refused.
/// Spans are measured with [`tokio::time::Instant`], which no clock correction moves.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    /// What lives up to a moment on the clock of the requests.
    dated: Table,
    /// What lives for a span.
    spans: Table,
    /// The claims of each source are in one part, whose lock makes each step on them atomic.
    claims: Box<[Mutex<Claims>]>,
    room: Room,
    started: Instant,
}

impl MemoryStore {
    /// A store for `entries` entries.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        Self::with_room(Room::new(entries, None))
    }

    /// A store in which each key may have at most `per_key` of the `entries` entries of one-shot requests. By default
    /// one key may have them all.
    #[must_use]
    pub fn with_quota(entries: usize, per_key: usize) -> Self {
        Self::with_room(Room::new(entries, Some(per_key)))
    }

    fn with_room(room: Room) -> Self {
        let claims = (0..CLAIM_PARTS).map(|_| Mutex::default()).collect();
        Self {
            shared: Arc::new(Shared {
                dated: Table::dated(),
                spans: Table::spans(),
                claims,
                room,
                started: Instant::now(),
            }),
        }
    }

    /// How many entries it holds, expired ones that were not removed yet included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.room.used()
    }

    /// Whether it holds no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Shared {
    fn record(&self, once: &Once) -> Recorded {
        let (table, now, until) = match once.life {
            Life::Until { now, until, .. } => (&self.dated, since_epoch(now), since_epoch(until)),
            Life::For(span) => {
                let now = self.started.elapsed();
                (&self.spans, now, now.saturating_add(span))
            }
        };
        let (now, until) = (ceil(now), ceil(until));
        let entry = Entry::new(&once.digest, &once.owner, until);
        let recorded = table.record(entry, now, &self.room);
        if recorded == Recorded::Full && self.make_room() > 0 {
            return table.record(entry, now, &self.room);
        }
        recorded
    }

    fn claims(&self, event: &EventId) -> MutexGuard<'_, Claims> {
        lock(&self.claims[usize::from(event.source().as_bytes()[31]) % CLAIM_PARTS])
    }

    fn claim(&self, claim: &Claim) -> Claimed {
        let claimed = self.try_claim(claim);
        if claimed == Claimed::Full && self.make_room() > 0 {
            return self.try_claim(claim);
        }
        claimed
    }

    fn try_claim(&self, claim: &Claim) -> Claimed {
        let mut claims = self.claims(&claim.event);
        let now = self.started.elapsed();
        let is_done = |identity: &Digest| self.spans.contains(identity, ceil(now));
        if claim.event.identities().any(is_done) {
            return Claimed::Done;
        }
        claims.claim(claim, now, &self.room)
    }

    fn commit(&self, event: &EventId, token: Token, retention: Duration) -> Settled {
        let mut claims = self.claims(event);
        if !claims.end(event, token) {
            return Settled::Stale;
        }
        let now = self.started.elapsed();
        let until = ceil(now.saturating_add(retention));
        for identity in event.identities() {
            let entry = Entry::unowned(identity, until);
            self.spans.keep(entry, ceil(now), &self.room);
        }
        Settled::Applied
    }

    fn release(&self, event: &EventId, token: Token) -> Settled {
        if !self.claims(event).end(event, token) {
            return Settled::Stale;
        }
        self.room.give_back(event.identities().count());
        Settled::Applied
    }

    /// Removes some of what has expired. Not all at once: a whole store that expired together would hold up one request.
    fn make_room(&self) -> usize {
        self.purge(ROOM_PER_STEP)
    }

    fn purge(&self, limit: usize) -> usize {
        let now = self.started.elapsed();
        let mut removed = self.dated.sweep_as_of_last(limit, &self.room);
        removed += self.spans.sweep(ceil(now), limit - removed, &self.room);
        for claims in &self.claims {
            removed += lock(claims).sweep(now, limit - removed, &self.room);
        }
        removed
    }
}

impl Store for MemoryStore {
    type Error = MemoryStoreError;
    type Record = Ready<Result<Recorded, Infallible>>;

    fn record(&self, once: Once) -> Self::Record {
        ready(Ok(self.shared.record(&once)))
    }

    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed, Infallible>> + Send {
        ready(Ok(self.shared.claim(&claim)))
    }

    fn renew(
        &self,
        event: EventId,
        token: Token,
        lease: Duration,
        retention: Duration,
    ) -> impl Future<Output = Result<Settled, Infallible>> + Send {
        let now = self.shared.started.elapsed();
        let mut claims = self.shared.claims(&event);
        ready(Ok(claims.renew(&event, token, now, lease, retention)))
    }

    fn commit(
        &self,
        event: EventId,
        token: Token,
        retention: Duration,
    ) -> impl Future<Output = Result<Settled, Infallible>> + Send {
        ready(Ok(self.shared.commit(&event, token, retention)))
    }

    fn release(
        &self,
        event: EventId,
        token: Token,
    ) -> impl Future<Output = Result<Settled, Infallible>> + Send {
        ready(Ok(self.shared.release(&event, token)))
    }

    fn purge(&self, limit: usize) -> impl Future<Output = Result<usize, Infallible>> + Send {
        ready(Ok(self.shared.purge(limit)))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

fn since_epoch(at: SystemTime) -> Duration {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Whole seconds, rounded up: an entry that lives up to and including `ceil(until)` outlives `until`.
fn ceil(time: Duration) -> u32 {
    let seconds = time
        .as_secs()
        .saturating_add(u64::from(time.subsec_nanos() > 0));
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// Nothing under these locks can panic half way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
