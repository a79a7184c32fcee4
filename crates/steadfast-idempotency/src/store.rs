//! Where claims and answers are kept: the contract of a store, and the memory store.

use std::{fmt, future::Future, time::Duration};

use bytes::Bytes;
use uuid::Uuid;

mod boxed;
mod memory;

pub use self::{
    boxed::{BoxStore, BoxStoreError},
    memory::{MemoryStore, MemoryStoreError},
};

/// Keeps claims and answers.
///
/// Each method is **one atomic step**, which a single script or statement can do. A store holds a record a key:
///
/// ```text
/// absent ──claim──▶ claimed ──complete──▶ completed ──ttl──▶ absent
///                      ├────tombstone──▶ tombstone ──ttl──▶ absent
///                      ├────hold──────▶ held ───────ttl──▶ absent
///                      ├────release───▶ absent
///                      └─ lease over: the next claim takes it, with a higher fence
/// ```
///
/// What holds for every store:
///
/// * At most one lease of a key is live. Time is the store's own: a record is live while `now < expiry`, and free from
///   the instant `now >= expiry` on.
/// * [`renew`](Store::renew), [`complete`](Store::complete), [`tombstone`](Store::tombstone),
///   [`hold`](Store::hold) and [`release`](Store::release) change a record only while it is claimed with the same token,
///   and otherwise answer [`Settled::Stale`] and change nothing.
/// * A claim with the token that holds the key is won again: a lost reply does not lock the owner out.
/// * The fingerprint of the claim stays with the record in every later state.
/// * A claimed record outlives its lease, so that the fence of whoever takes it over is higher.
/// * A full store refuses new keys ([`Claimed::Full`]). It never removes a record that has not expired.
///
/// A clone shares the records.
///
/// # Cancellation
///
/// Dropping a future before it has answered leaves it open whether the step was done.
pub trait Store: Clone + Send + Sync + 'static {
    /// Why a step could not be done at all: the store cannot be reached, or does not answer sensibly.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Takes the key if it is absent, expired, left by an owner whose lease is over, or held by the same token.
    /// Otherwise says what is there.
    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed, Self::Error>> + Send;

    /// Makes the lease last `lease` from now, and the record `ttl` longer than that.
    fn renew(
        &self,
        id: RecordId,
        token: Token,
        lease: Duration,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, Self::Error>> + Send;

    /// Keeps the answer for `ttl` from now.
    fn complete(
        &self,
        id: RecordId,
        token: Token,
        record: Record,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, Self::Error>> + Send;

    /// Remembers for `ttl` from now that the operation was done, without its answer.
    fn tombstone(
        &self,
        id: RecordId,
        token: Token,
        tombstone: Tombstone,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, Self::Error>> + Send;

    /// Blocks the key for `ttl` from now: whether the operation was done is unknown.
    fn hold(
        &self,
        id: RecordId,
        token: Token,
        ttl: Duration,
    ) -> impl Future<Output = Result<Settled, Self::Error>> + Send;

    /// Frees the key at once.
    fn release(
        &self,
        id: RecordId,
        token: Token,
    ) -> impl Future<Output = Result<Settled, Self::Error>> + Send;

    /// Removes up to `limit` expired records and says how many. Stores that expire by themselves answer 0.
    fn purge(&self, limit: usize) -> impl Future<Output = Result<usize, Self::Error>> + Send;
}

/// Which record: two SHA-256 digests, so that no key and no tenant's name ever reaches a store.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct RecordId {
    tenant: [u8; 32],
    key: [u8; 32],
}

impl RecordId {
    /// The record of `key`, a digest over tenant, method, endpoint and key, for `tenant`, a digest over the tenant alone.
    #[must_use]
    pub const fn new(tenant: [u8; 32], key: [u8; 32]) -> Self {
        Self { tenant, key }
    }

    /// The tenant's digest, by which a store can cap and list.
    #[must_use]
    pub const fn tenant(&self) -> &[u8; 32] {
        &self.tenant
    }

    /// The digest that identifies the record. It covers the tenant too.
    #[must_use]
    pub const fn key(&self) -> &[u8; 32] {
        &self.key
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordId(..)")
    }
}

/// What a request asks for, as a SHA-256 digest: two requests with one fingerprint are the same request.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// A fingerprint of these bytes.
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

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(..)")
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
    /// Which record.
    pub id: RecordId,
    /// What the request asks for. Written with the claim.
    pub fingerprint: Fingerprint,
    /// Who claims.
    pub token: Token,
    /// How long the claim is good without a renewal.
    pub lease: Duration,
    /// How much longer than its lease the claimed record is kept.
    pub ttl: Duration,
}

/// What [`Store::claim`] found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Claimed {
    /// The key is the claimant's.
    Won(Won),
    /// Another owner's lease is live.
    Running {
        /// What that owner was asked for.
        fingerprint: Fingerprint,
    },
    /// The operation is done and its answer is here.
    Completed {
        /// What was asked for.
        fingerprint: Fingerprint,
        /// The answer.
        record: Record,
    },
    /// The operation is done and its answer was not kept.
    Tombstone {
        /// What was asked for.
        fingerprint: Fingerprint,
        /// What is known of the answer.
        tombstone: Tombstone,
    },
    /// Whether the operation was done is unknown.
    Held {
        /// What was asked for.
        fingerprint: Fingerprint,
    },
    /// The claim was lost to a record that was gone when it was read. Claim again.
    Vanished,
    /// There is no room for a new record.
    Full,
    /// There is a record that this version cannot read.
    Unreadable,
}

/// A claim that was won.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Won {
    /// Higher than the fence of every earlier claim of this key. Writes that are conditional on it cannot be overtaken.
    pub fence: u64,
}

impl Won {
    /// A claim with this fence.
    #[must_use]
    pub const fn new(fence: u64) -> Self {
        Self { fence }
    }
}

/// What became of a step that needs the claim.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Settled {
    /// It was done.
    Applied,
    /// The key is not claimed with this token: nothing was changed.
    Stale,
    /// There is no room for this answer: nothing was changed, the claim stands. Only from [`Store::complete`].
    NoRoom,
}

/// An answer as bytes that only the layer reads.
#[derive(Clone, Eq, PartialEq)]
pub struct Record(Bytes);

impl Record {
    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

impl From<Bytes> for Record {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("len", &self.0.len())
            .finish()
    }
}

/// What is remembered of an operation whose answer was not kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "stores are written against its fields"
)]
pub struct Tombstone {
    /// The status of the answer.
    pub status: u16,
    /// Why the answer was not kept.
    pub reason: TombstoneReason,
}

/// Why an answer was not kept.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TombstoneReason {
    /// The body failed before it ended.
    BodyError,
    /// The store had no room, or could not keep the answer.
    NotSaved,
    /// The answer is a stream, or the handler asked that it is not stored.
    Streamed,
    /// The body is longer than what is stored.
    TooLarge,
}

impl TombstoneReason {
    /// The reason as it appears in records, answers and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BodyError => "body_error",
            Self::NotSaved => "not_saved",
            Self::Streamed => "streamed",
            Self::TooLarge => "too_large",
        }
    }

    /// The reason with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::BodyError,
            Self::NotSaved,
            Self::Streamed,
            Self::TooLarge,
        ]
        .into_iter()
        .find(|reason| reason.as_str() == name)
    }
}
