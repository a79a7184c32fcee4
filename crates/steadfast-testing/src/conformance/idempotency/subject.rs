//! A store under test, and the words in which the properties speak of it.

use std::time::Duration;

use bytes::Bytes;
use steadfast_idempotency::{
    Claim, Claimed, Fingerprint, Record, RecordId, Settled, Store, Token, Tombstone,
    TombstoneReason,
};

/// A fresh store, and the clock it goes by.
#[derive(Clone, Debug)]
pub struct Subject<St, A> {
    store: St,
    advance: A,
    edge: Duration,
}

impl<St, A> Subject<St, A>
where
    St: Store,
    A: AsyncFn(Duration),
{
    /// A subject whose clock moves by `advance` alone.
    pub const fn new(store: St, advance: A) -> Self {
        Self {
            store,
            advance,
            edge: Duration::from_millis(1),
        }
    }

    /// Sets how near to an instant the clock can be set. The default is 1 ms.
    #[must_use]
    pub const fn edge(mut self, edge: Duration) -> Self {
        self.edge = edge;
        self
    }

    pub(super) const fn store(&self) -> &St {
        &self.store
    }

    pub(super) async fn advance(&self, by: Duration) {
        (self.advance)(by).await;
    }

    /// Moves to shortly before the end of `span`.
    pub(super) async fn advance_just_within(&self, span: Duration) {
        self.advance(span.saturating_sub(self.edge)).await;
    }

    /// Moves from shortly before the end to the end itself.
    pub(super) async fn advance_to_the_end(&self) {
        self.advance(self.edge).await;
    }

    /// Claims, again where the store asks for that.
    pub(super) async fn claim(&self, claim: Claim) -> Claimed {
        for _ in 0..3 {
            match answer(self.store.claim(claim).await) {
                Claimed::Vanished => {}
                claimed => return claimed,
            }
        }
        panic!("the record vanished three times, and nobody removes any");
    }

    /// Claims, and wins: the fence.
    pub(super) async fn win(&self, claim: Claim) -> u64 {
        match self.claim(claim).await {
            Claimed::Won(won) => won.fence,
            other => panic!("not won: {other:?}"),
        }
    }

    /// What somebody else's claim finds. It must not win, as then it would change what it looks at.
    pub(super) async fn look(&self, id: RecordId) -> View {
        let claimed = self.claim(claim(id, Owner::stranger())).await;
        View::of(&claimed).unwrap_or_else(|| panic!("nothing live is there: {claimed:?}"))
    }

    /// Checks that the key is free by claiming it.
    pub(super) async fn assert_free(&self, id: RecordId) {
        let claimed = self.claim(claim(id, Owner::stranger())).await;
        assert!(matches!(claimed, Claimed::Won(_)), "not free: {claimed:?}");
    }

    /// Does a step that needs the claim.
    pub(super) async fn step(&self, id: RecordId, token: Token, step: Step) -> Settled {
        let store = &self.store;
        answer(match step {
            Step::Complete => store.complete(id, token, step.record(), TTL).await,
            Step::Hold => store.hold(id, token, TTL).await,
            Step::Release => store.release(id, token).await,
            Step::Renew => store.renew(id, token, LEASE, TTL).await,
            Step::Tombstone => store.tombstone(id, token, TOMBSTONE, TTL).await,
        })
    }

    /// Does a step, for which the claim is there.
    pub(super) async fn apply(&self, id: RecordId, token: Token, step: Step) {
        assert_eq!(
            self.step(id, token, step).await,
            Settled::Applied,
            "{step:?}"
        );
    }
}

/// What the store answered. A store that fails has no property.
pub(super) fn answer<T, E: std::error::Error>(result: Result<T, E>) -> T {
    result.expect("the store answers")
}

pub(super) const LEASE: Duration = Duration::from_secs(2);
pub(super) const TTL: Duration = Duration::from_secs(10);
pub(super) const TOMBSTONE: Tombstone = Tombstone {
    status: 201,
    reason: TombstoneReason::TooLarge,
};

/// Who claims, and for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) token: Token,
    pub(super) fingerprint: Fingerprint,
}

impl Owner {
    /// Somebody new with a request of its own.
    pub(super) fn stranger() -> Self {
        Self {
            token: Token::random(),
            fingerprint: Fingerprint::new(random()),
        }
    }
}

/// A claim with the usual lease and ttl.
pub(super) const fn claim(id: RecordId, owner: Owner) -> Claim {
    Claim {
        id,
        fingerprint: owner.fingerprint,
        token: owner.token,
        lease: LEASE,
        ttl: TTL,
    }
}

/// A key that nobody used before, of a tenant of its own.
pub(super) fn fresh_id() -> RecordId {
    RecordId::new(random(), random())
}

pub(super) fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    fastrand::fill(&mut bytes);
    bytes
}

/// The steps that need the claim.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    Complete,
    Hold,
    Release,
    Renew,
    Tombstone,
}

impl Step {
    pub(super) const ALL: [Self; 5] = [
        Self::Complete,
        Self::Hold,
        Self::Release,
        Self::Renew,
        Self::Tombstone,
    ];

    /// Those after which something is there that is not claimed.
    pub(super) const SETTLING: [Self; 3] = [Self::Complete, Self::Hold, Self::Tombstone];

    /// The answer that [`Self::Complete`] keeps.
    pub(super) fn record(self) -> Record {
        debug_assert_eq!(self, Self::Complete);
        Record::from(Bytes::from_static(b"the answer"))
    }

    /// What others find after this step of `owner`; `None` if nothing.
    pub(super) fn leaves(self, owner: Owner) -> Option<View> {
        let fingerprint = owner.fingerprint;
        Some(match self {
            Self::Complete => View::Completed(fingerprint, self.record()),
            Self::Hold => View::Held(fingerprint),
            Self::Release => return None,
            Self::Renew => View::Running(fingerprint),
            Self::Tombstone => View::Tombstone(fingerprint, TOMBSTONE),
        })
    }
}

/// What is there for somebody whose claim is not won.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum View {
    Completed(Fingerprint, Record),
    Held(Fingerprint),
    Running(Fingerprint),
    Tombstone(Fingerprint, Tombstone),
}

impl View {
    /// `None` if the claim was won, or was refused for other reasons than a record.
    pub(super) fn of(claimed: &Claimed) -> Option<Self> {
        Some(match claimed.clone() {
            Claimed::Completed {
                fingerprint,
                record,
            } => Self::Completed(fingerprint, record),
            Claimed::Held { fingerprint } => Self::Held(fingerprint),
            Claimed::Running { fingerprint } => Self::Running(fingerprint),
            Claimed::Tombstone {
                fingerprint,
                tombstone,
            } => Self::Tombstone(fingerprint, tombstone),
            _ => return None,
        })
    }
}
