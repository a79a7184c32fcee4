//! Facts that layers hand to each other, and to the application, in the extensions of requests and responses.
//!
//! No layer knows another one: what one has found out, the next reads here.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use http::StatusCode;
use steadfast_headers::IdempotencyKey;

mod verified;

pub use self::verified::{Freshness, MessageId, SignedContent, Verified};

/// What a second identical request to this operation means (R01). In a request's extensions it overrides every table.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum OperationClass {
    /// It reads: any number of requests change nothing.
    Safe,
    /// It sets a named state: a second request leaves what the first one left.
    NaturallyIdempotent,
    /// It carries an idempotency key that the server honours: a second request is answered by a replay.
    RepeatableWithKey,
    /// A second request may be a second effect. No key changes that.
    NotRepeatable,
}

impl OperationClass {
    /// Whether a request of this class may be sent again.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        match self {
            Self::Safe | Self::NaturallyIdempotent | Self::RepeatableWithKey => true,
            Self::NotRepeatable => false,
        }
    }
}

/// When an idempotency key was made (I05). In a request's extensions.
///
/// The client layer sets it for the keys it mints. Who brings a key of an earlier process says here how old it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "it is one time and stays one")]
pub struct KeyCreated(pub SystemTime);

/// Whether the server answered with a stored response (I08). In the response's extensions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "it is one bit and stays one")]
pub struct Replayed(pub bool);

/// The answer was made on this side of the network because a wait would have been too long: nothing was sent. In the
/// response's extensions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Throttled {
    /// How long the wait would have been.
    pub wait: Duration,
}

impl Throttled {
    /// A refusal of a wait this long.
    #[must_use]
    pub const fn new(wait: Duration) -> Self {
        Self { wait }
    }
}

/// Which generation of the credentials signed the request that this answers. In the response's extensions.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_structs, reason = "it is one number and stays one")]
pub struct CredentialGeneration(pub u64);

/// A handle on what becomes of a call, filled while it runs (R15).
///
/// Put it into the request's extensions and keep a clone: it can be read while the call runs, and after an error or a
/// cancel, when there is no response to read from. Clones share the report.
#[derive(Clone, Default)]
pub struct CallReport {
    report: Arc<Mutex<RetryReport>>,
}

impl CallReport {
    /// A handle on an empty report.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The report as it stands.
    #[must_use]
    pub fn snapshot(&self) -> RetryReport {
        self.update(|report| report.clone())
    }

    /// Changes the report. For layers.
    pub fn update<T>(&self, change: impl FnOnce(&mut RetryReport) -> T) -> T {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for CallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallReport").field(&self.snapshot()).finish()
    }
}

/// What a call did: how often it was sent, how long it waited, why it ended (R15). In the response's extensions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RetryReport {
    /// How many requests were sent.
    pub attempts: u32,
    /// The waits between them, in order.
    pub waits: Vec<Duration>,
    /// Why the call ended with an outcome that a repeat might have changed. `None` while it runs, when it succeeded, and
    /// when the outcome is not one to repeat.
    pub stopped: Option<Stopped>,
    /// What the last response asked for in `Retry-After`, as far as it was valid.
    pub retry_after: Option<Duration>,
    /// What is known of the last attempt.
    pub outcome: Outcome,
    /// The key the call carries: with it the same call can be made again later.
    pub key: Option<IdempotencyKey>,
}

/// What is known of an attempt.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It runs, or was not begun.
    #[default]
    Pending,
    /// The server answered with this status.
    Answered(StatusCode),
    /// No answer arrived. The server may have acted all the same.
    Unknown,
}

/// Why a call was given up.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Stopped {
    /// All attempts were used.
    Attempts,
    /// The server asked for a longer wait than the cap.
    OverCap,
    /// The deadline of the whole call passed, or would have passed in the next wait.
    Deadline,
    /// The retry budget was spent.
    Budget,
    /// The call may not be sent again.
    NotRepeatable,
    /// A layer on this side refused to send.
    LocalBlock,
    /// The caller dropped the call.
    Cancelled,
}

impl Stopped {
    /// The reason as it appears in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::OverCap => "over_cap",
            Self::Deadline => "deadline",
            Self::Budget => "budget",
            Self::NotRepeatable => "not_repeatable",
            Self::LocalBlock => "local_block",
            Self::Cancelled => "cancelled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r15_clones_of_a_report_share_it() {
        let report = CallReport::new();
        let kept = report.clone();
        report.update(|report| report.attempts = 2);
        assert_eq!(kept.snapshot().attempts, 2);
    }

    #[test]
    fn c3_only_a_class_that_says_so_is_not_repeatable() {
        assert!(OperationClass::Safe.is_repeatable());
        assert!(OperationClass::RepeatableWithKey.is_repeatable());
        assert!(!OperationClass::NotRepeatable.is_repeatable());
    }
}
