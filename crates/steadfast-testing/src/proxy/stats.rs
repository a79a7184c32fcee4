//! What the proxy did.

use super::faults::Fault;

/// What a [`FaultProxy`](crate::FaultProxy) did so far.
///
/// An exchange is counted when its fate is decided, that is, once the head of its request is read, and so before the
/// client can know of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct FaultStats {
    pub(super) counts: [u64; Fault::COUNT],
    pub(super) connections: u64,
    pub(super) after_commit: u64,
    pub(super) upstream_failures: u64,
}

impl FaultStats {
    /// How many exchanges there were, those that passed included.
    #[must_use]
    pub fn exchanges(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many exchanges were broken.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.exchanges() - self.count(Fault::Pass)
    }

    /// How many exchanges were given `fault`.
    #[must_use]
    pub const fn count(&self, fault: Fault) -> u64 {
        self.counts[fault.index()]
    }

    /// How many answers the server gave whole and the client did not get whole, because the proxy lost or cut them:
    /// the work was done and the client cannot know.
    #[must_use]
    pub const fn after_commit(&self) -> u64 {
        self.after_commit
    }

    /// How many connections clients made.
    #[must_use]
    pub const fn connections(&self) -> u64 {
        self.connections
    }

    /// How many exchanges broke because the server could not be reached, or ended the connection before the end of
    /// its answer. They are counted under the fault they were given as well.
    #[must_use]
    pub const fn upstream_failures(&self) -> u64 {
        self.upstream_failures
    }
}
