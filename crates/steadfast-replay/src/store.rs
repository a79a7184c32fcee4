//! Where requests and events are remembered: the contract of a store, and the memory store.

use std::{
    fmt,
    future::Future,
    time::{Duration, SystemTime},
};

use uuid::Uuid;

mod boxed;
mod memory;

pub use self::{
    boxed::{BoxStore, BoxStoreError},
    memory::{MemoryStore, MemoryStoreError},
};

/// Remembers what was seen.
///
/// Each method is **one atomic step**, which a single script or statement can do. [`record`](Store::record) is all that
/// the one-shot mode needs; the other steps are for events, of which a store knows each identity by itself:
///
/// ```text
/// absent ──claim──▶ claimed ──commit──▶ done ──retention──▶ absent
///                      ├────release──▶ absent
///                      └─ lease over: the next claim takes it, with a higher fence
/// ```
///
/// What holds for every store:
///
/// * A digest is recorded by one of all racing calls. It is then [`Recorded::Seen`] for at least the time that its
///   [`Life`] says, whatever clock is set back meanwhile.
/// * At most one lease of an identity is live. A claim takes **all** identities of its event or none.
/// * [`renew`](Store::renew), [`commit`](Store::commit) and [`release`](Store::release) change an event only while all
///   its identities are claimed with the same token, and otherwise answer [`Settled::Stale`] and change nothing. A lease
///   that is over does not end a claim that nobody has taken since.
/// * A claim with the token that holds the event is won again, with the same fence: a lost reply does not lock the owner
///   out.
/// * A claim that is not won changes nothing.
/// * A full store refuses what is new. It never removes an entry that is alive.
///
/// A clone shares the entries.
///
/// # Cancellation
///
/// Dropping a future before it has answered leaves it open whether the step was done.
pub trait Store: Clone + Send + Sync + 'static {
    /// Why a step could not be done at all: the store cannot be reached, or does not answer sensibly.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The future of [`record`](Store::record).
    type Record: Future<Output = Result<Recorded, Self::Error>> + Send + 'static;

    /// Remembers a digest, unless it is remembered already.
    fn record(&self, once: Once) -> Self::Record;

    /// Takes all identities of an event if each is absent, expired, left by an owner whose lease is over, or held by
    /// the same token. Otherwise says what is there: [`Claimed::Done`] if any of them is done, [`Claimed::Running`] if
    /// not.
    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed, Self::Error>> + Send;

    /// Makes the lease last `lease` from now, and the claim `retention` longer than that.
    fn renew(
        &self,
        event: EventId,
        token: Token,
        lease: Duration,
        retention: Duration,
    ) -> impl Future<Output = Result<Settled, Self::Error>> + Send;

    /// Remembers for `retention` from now that the event was processed, under each of its identities.
    fn commit(
        &self,
        event: EventId,
        token: Token,
        retention: Duration,
    ) -> impl Future<Output = Result<Settled, Self::Error>> + Send;

    /// Frees all identities of the event at once.
    fn release(
        &self,
        event: EventId,
        token: Token,
    ) -> impl Future<Output = Result<Settled, Self::Error>> + Send;

    /// Removes up to `limit` expired entries and says how many. Stores that expire by themselves answer 0.
    fn purge(&self, limit: usize) -> impl Future<Output = Result<usize, Self::Error>> + Send;
}

/// A SHA-256 digest: no signature, no id and no body ever reaches a store.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Digest([u8; 32]);

impl Digest {
    /// A digest of these bytes.
    #[must_use]
    pub const fn new(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

/// What [`Store::record`] is asked.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "stores are written against its fields"
)]
pub struct Once {
    /// What to remember.
    pub digest: Digest,
    /// Whose it is, by which a store can cap: a digest over scheme, scope and key id.
    pub owner: Digest,
    /// For how long.
    pub life: Life,
}

/// How long a digest is remembered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Life {
    /// Up to and including `until`, on the clock that says that it is `now`. `now` is not later than `until`.
    ///
    /// That clock may be set back. A store that goes by it must not forget an entry and then take it for new: it
    /// answers [`Recorded::Expired`] where it cannot tell. A store with a clock of its own keeps the digest for `keep`,
    /// which is twice the tolerance, or what is left of the time if that is longer, and some seconds for servers whose
    /// clocks differ.
    Until {
        /// The time.
        now: SystemTime,
        /// The last moment at which the request would be taken for fresh.
        until: SystemTime,
        /// How long a store with a clock of its own keeps it.
        keep: Duration,
    },
    /// From now on, on the store's clock.
    For(Duration),
}

/// What [`Store::record`] found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Recorded {
    /// Nothing: it is remembered from now on.
    New,
    /// It was remembered already.
    Seen,
    /// Whether it was seen cannot be told: entries that are good as long as this one would be have been removed, after
    /// the end of their time on a clock that was then set back. Nothing was changed.
    Expired,
    /// There is no room. Nothing was changed.
    Full,
    /// Its owner has as many entries as it may. Nothing was changed.
    OverQuota,
}

/// Which event: its source, and the one or two identities by which it is known again.
///
/// The identities are digests over the source too. All entries of a source can be kept in one place by
/// [`source`](Self::source), so that one step can take two of them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct EventId {
    source: Digest,
    first: Digest,
    second: Option<Digest>,
}

impl EventId {
    /// An event with one identity.
    #[must_use]
    pub const fn new(source: Digest, identity: Digest) -> Self {
        Self {
            source,
            first: identity,
            second: None,
        }
    }

    /// Adds a second identity. One that equals the first adds nothing.
    #[must_use]
    pub fn or(mut self, identity: Digest) -> Self {
        self.second = (identity != self.first).then_some(identity);
        self
    }

    /// The source's digest.
    #[must_use]
    pub const fn source(&self) -> &Digest {
        &self.source
    }

    /// The identities, which differ from each other.
    pub fn identities(&self) -> impl Iterator<Item = &Digest> + Clone {
        [Some(&self.first), self.second.as_ref()]
            .into_iter()
            .flatten()
    }
}

/// Names one owner of one claim.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Token(u128);

impl Token {
    /// A token that nobody else has.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4().as_u128())
    }

    /// The token with this value.
    #[must_use]
    pub const fn from_u128(value: u128) -> Self {
        Self(value)
    }

    /// Its value.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

/// What [`Store::claim`] is asked.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "stores are written against its fields"
)]
pub struct Claim {
    /// Which event.
    pub event: EventId,
    /// Who claims.
    pub token: Token,
    /// How long the claim is good without a renewal.
    pub lease: Duration,
    /// How much longer than its lease the claim is kept.
    pub retention: Duration,
}

/// What [`Store::claim`] found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Claimed {
    /// The event is the claimant's.
    Won {
        /// Higher than the fence of every earlier claim of any of the event's identities. Writes that are conditional
        /// on it cannot be overtaken.
        fence: u64,
    },
    /// Another owner's lease is live.
    Running,
    /// The event was processed.
    Done,
    /// There is no room for it.
    Full,
}

/// What became of a step that needs the claim.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Settled {
    /// It was done.
    Applied,
    /// The event is not claimed with this token: nothing was changed.
    Stale,
}
