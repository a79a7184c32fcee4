use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    future::{Future, pending},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use steadfast_idempotency::{
    Claim, Claimed, Fingerprint, MemoryStore, Record, RecordId, Settled, Store, Token, Tombstone,
    TombstoneReason,
};

/// A memory store that fails, hangs and lies on demand.
#[derive(Clone)]
pub(crate) struct Faulty {
    memory: MemoryStore,
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    next: HashMap<Op, VecDeque<Fault>>,
    always: HashMap<Op, Fault>,
    log: Vec<Op>,
    last: Option<RecordId>,
}

/// A step of the store.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Op {
    Claim,
    Complete,
    Hold,
    Release,
    Renew,
    Tombstone,
}

/// What goes wrong with a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It fails and is not done.
    Error,
    /// It is not done, and no answer ever comes.
    Hang,
    /// It is done, and no answer ever comes.
    LoseReply,
    /// An answer is written down as a later version would.
    NewerVersion,
    /// It says that there is no room.
    NoRoom,
    /// It lets other tasks run, before it is done and after.
    Pause,
    /// It is done after this long.
    Slow(Duration),
    /// It says that the key is somebody else's.
    Stale,
    /// A claim finds a record that it cannot read.
    Unreadable,
    /// A claim is lost to a record that is gone.
    Vanished,
}

/// The store cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error("the store is down")]
pub(crate) struct Down;

/// What the store holds for a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    Claimed,
    Completed,
    /// Absent, expired, or left by an owner whose lease is over.
    Free,
    Gone(u16, TombstoneReason),
    Held,
}

impl Default for Faulty {
    fn default() -> Self {
        Self::new(MemoryStore::new(100, 8 * 1024 * 1024))
    }
}

impl Faulty {
    pub(crate) fn new(memory: MemoryStore) -> Self {
        Self {
            memory,
            script: Arc::default(),
        }
    }

    /// Lets the next of these steps go wrong; several calls queue up.
    pub(crate) fn once(&self, op: Op, fault: Fault) {
        self.script().next.entry(op).or_default().push_back(fault);
    }

    /// Lets all of these steps go wrong until [`heal`](Self::heal).
    pub(crate) fn always(&self, op: Op, fault: Fault) {
        self.script().always.insert(op, fault);
    }

    pub(crate) fn heal(&self, op: Op) {
        self.script().always.remove(&op);
    }

    /// The steps that were begun, in order.
    pub(crate) fn log(&self) -> Vec<Op> {
        self.script().log.clone()
    }

    pub(crate) fn count(&self, op: Op) -> usize {
        self.log().into_iter().filter(|done| *done == op).count()
    }

    /// What the store holds for the key that was claimed last, read without a fault and without a trace.
    pub(crate) async fn state(&self) -> State {
        let Some(id) = self.script().last else {
            return State::Free;
        };
        let token = Token::random();
        let claim = Claim {
            id,
            fingerprint: Fingerprint::new([0; 32]),
            token,
            lease: Duration::from_secs(1),
            ttl: Duration::from_secs(1),
        };
        let Ok(claimed) = self.memory.claim(claim).await;
        match claimed {
            Claimed::Won(_) => {
                let Ok(released) = self.memory.release(id, token).await;
                assert_eq!(released, Settled::Applied);
                State::Free
            }
            Claimed::Running { .. } => State::Claimed,
            Claimed::Completed { .. } => State::Completed,
            Claimed::Tombstone { tombstone, .. } => State::Gone(tombstone.status, tombstone.reason),
            Claimed::Held { .. } => State::Held,
            other => panic!("no memory store says so: {other:?}"),
        }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, op: Op, id: RecordId) -> Option<Fault> {
        let mut script = self.script();
        script.log.push(op);
        script.last = Some(id);
        let queued = script.next.get_mut(&op).and_then(VecDeque::pop_front);
        queued.or_else(|| script.always.get(&op).copied())
    }

    async fn settle<F>(
        &self,
        op: Op,
        id: RecordId,
        step: impl FnOnce() -> F,
    ) -> Result<Settled, Down>
    where
        F: Future<Output = Result<Settled, Infallible>>,
    {
        match self.begin(op, id) {
            Some(Fault::Stale) => Ok(Settled::Stale),
            Some(Fault::NoRoom) => Ok(Settled::NoRoom),
            fault => disturbed(fault, step).await,
        }
    }
}

async fn disturbed<T, F>(fault: Option<Fault>, step: impl FnOnce() -> F) -> Result<T, Down>
where
    F: Future<Output = Result<T, Infallible>>,
{
    match fault {
        Some(Fault::Error) => return Err(Down),
        Some(Fault::Hang) => pending().await,
        Some(Fault::Slow(wait)) => tokio::time::sleep(wait).await,
        Some(Fault::Pause) => tokio::task::yield_now().await,
        _ => {}
    }
    let Ok(done) = step().await;
    match fault {
        Some(Fault::LoseReply) => pending().await,
        Some(Fault::Pause) => tokio::task::yield_now().await,
        _ => {}
    }
    Ok(done)
}

impl Store for Faulty {
    type Error = Down;

    async fn claim(&self, claim: Claim) -> Result<Claimed, Down> {
        match self.begin(Op::Claim, claim.id) {
            Some(Fault::Vanished) => Ok(Claimed::Vanished),
            Some(Fault::Unreadable) => Ok(Claimed::Unreadable),
            fault => disturbed(fault, || self.memory.claim(claim)).await,
        }
    }

    async fn renew(
        &self,
        id: RecordId,
        token: Token,
        lease: Duration,
        ttl: Duration,
    ) -> Result<Settled, Down> {
        let step = || self.memory.renew(id, token, lease, ttl);
        self.settle(Op::Renew, id, step).await
    }

    async fn complete(
        &self,
        id: RecordId,
        token: Token,
        record: Record,
        ttl: Duration,
    ) -> Result<Settled, Down> {
        match self.begin(Op::Complete, id) {
            Some(Fault::Stale) => Ok(Settled::Stale),
            Some(Fault::NoRoom) => Ok(Settled::NoRoom),
            fault => {
                let record = match fault {
                    Some(Fault::NewerVersion) => newer(&record),
                    _ => record,
                };
                disturbed(fault, || self.memory.complete(id, token, record, ttl)).await
            }
        }
    }

    async fn tombstone(
        &self,
        id: RecordId,
        token: Token,
        tombstone: Tombstone,
        ttl: Duration,
    ) -> Result<Settled, Down> {
        let step = || self.memory.tombstone(id, token, tombstone, ttl);
        self.settle(Op::Tombstone, id, step).await
    }

    async fn hold(&self, id: RecordId, token: Token, ttl: Duration) -> Result<Settled, Down> {
        let step = || self.memory.hold(id, token, ttl);
        self.settle(Op::Hold, id, step).await
    }

    async fn release(&self, id: RecordId, token: Token) -> Result<Settled, Down> {
        let step = || self.memory.release(id, token);
        self.settle(Op::Release, id, step).await
    }

    async fn purge(&self, limit: usize) -> Result<usize, Down> {
        let Ok(purged) = self.memory.purge(limit).await;
        Ok(purged)
    }
}

/// The first byte of a record is its version.
fn newer(record: &Record) -> Record {
    let mut bytes = record.as_bytes().to_vec();
    bytes[0] += 1;
    Record::from(Bytes::from(bytes))
}
