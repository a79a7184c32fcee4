use std::time::Duration;

/// How long claims and answers last, checked against each other.
///
/// | | default |
/// |---|---|
/// | lease | 30 s |
/// | ttl | 24 h |
/// | wait | none |
/// | store timeout | 2 s |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timing {
    lease: Duration,
    ttl: Duration,
    wait_for: Duration,
    store_timeout: Duration,
}

/// Spans that make no sense together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError {
    /// The lease is zero, or so short that a third of it is no time at all.
    #[error("the lease is shorter than 3 ms")]
    LeaseTooShort,
    /// The lease is longer than the ttl.
    #[error("the lease is longer than the ttl")]
    LeaseOverTtl,
    /// The wait is longer than the lease.
    #[error("the wait for a running call is longer than the lease")]
    WaitOverLease,
    /// The ttl is zero.
    #[error("the ttl is zero")]
    TtlZero,
    /// The store has no time to answer.
    #[error("the store timeout is zero")]
    StoreTimeoutZero,
}

impl Timing {
    /// A claim is good for `lease` without a renewal; an answer is kept for `ttl` from its completion (I11).
    ///
    /// The lease bounds how long a key stays blocked when the process that runs it is killed. It is renewed every third
    /// of it while the handler runs, so it need not be as long as the handler takes.
    ///
    /// Spans over a hundred years count as a hundred years.
    ///
    /// # Errors
    ///
    /// When the ttl is zero, the lease is under 3 ms, or the lease is longer than the ttl.
    pub const fn new(lease: Duration, ttl: Duration) -> Result<Self, TimingError> {
        if ttl.is_zero() {
            return Err(TimingError::TtlZero);
        }
        if lease.as_millis() < 3 {
            return Err(TimingError::LeaseTooShort);
        }
        if lease.as_nanos() > ttl.as_nanos() {
            return Err(TimingError::LeaseOverTtl);
        }
        Ok(Self {
            lease: within_a_century(lease),
            ttl: within_a_century(ttl),
            wait_for: Duration::ZERO,
            store_timeout: Duration::from_secs(2),
        })
    }

    /// How long a duplicate waits for the answer of the running call before it gets 409 (I13). Default: not at all.
    ///
    /// # Errors
    ///
    /// When the wait is longer than the lease.
    pub const fn wait_for(mut self, wait: Duration) -> Result<Self, TimingError> {
        if within_a_century(wait).as_nanos() > self.lease.as_nanos() {
            return Err(TimingError::WaitOverLease);
        }
        self.wait_for = within_a_century(wait);
        Ok(self)
    }

    /// How long each step of the store may take. Default: 2 s.
    ///
    /// # Errors
    ///
    /// When it is zero.
    pub const fn store_timeout(mut self, timeout: Duration) -> Result<Self, TimingError> {
        if timeout.is_zero() {
            return Err(TimingError::StoreTimeoutZero);
        }
        self.store_timeout = timeout;
        Ok(self)
    }

    pub(super) const fn lease(&self) -> Duration {
        self.lease
    }

    pub(super) const fn ttl(&self) -> Duration {
        self.ttl
    }

    pub(super) const fn wait(&self) -> Duration {
        self.wait_for
    }

    pub(super) const fn timeout(&self) -> Duration {
        self.store_timeout
    }

    /// Two renewals may fail before the lease is over.
    pub(super) fn renewal(&self) -> Duration {
        self.lease / 3
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            ttl: Duration::from_secs(24 * 60 * 60),
            wait_for: Duration::ZERO,
            store_timeout: Duration::from_secs(2),
        }
    }
}

/// A span that can be added to any instant.
const fn within_a_century(span: Duration) -> Duration {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    if span.as_nanos() > CENTURY.as_nanos() {
        CENTURY
    } else {
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn nonsense_does_not_construct() {
        assert_eq!(
            Timing::new(Duration::ZERO, S),
            Err(TimingError::LeaseTooShort)
        );
        assert_eq!(Timing::new(S, Duration::ZERO), Err(TimingError::TtlZero));
        assert_eq!(Timing::new(2 * S, S), Err(TimingError::LeaseOverTtl));
        let timing = Timing::new(S, S).unwrap();
        assert_eq!(timing.wait_for(2 * S), Err(TimingError::WaitOverLease));
        assert_eq!(
            timing.store_timeout(Duration::ZERO),
            Err(TimingError::StoreTimeoutZero)
        );
    }

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let timing = Timing::default();
        assert_eq!(timing.lease(), 30 * S);
        assert_eq!(timing.ttl(), 24 * 3600 * S);
        assert_eq!(timing.wait(), Duration::ZERO);
        assert_eq!(timing.timeout(), 2 * S);
        assert_eq!(timing.renewal(), 10 * S);
        assert_eq!(Timing::new(30 * S, 24 * 3600 * S), Ok(timing));
    }
}
