use std::time::Duration;

/// The shortest wait of the client's own. A server that named no time is never asked again in the same instant.
const SHORTEST: Duration = Duration::from_millis(1);

/// How long the client waits where the server names no time (R07).
///
/// The n-th wait is `base · 2ⁿ`, at most `max`, and jittered so that a fleet does not come back in one instant.
/// Waits are whole milliseconds, rounded up, and never under one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Backoff {
    base: Duration,
    max: Duration,
    jitter: Jitter,
    first: First,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Jitter {
    /// Between one half of the wait and all of it.
    UpperHalf,
    /// The wait and up to this many percent of it.
    Above { percent: u32 },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum First {
    Exact,
    Jittered,
}

impl Backoff {
    /// Doubles from `base` up to `max`; each wait is drawn from its upper half.
    #[must_use]
    pub const fn exponential(base: Duration, max: Duration) -> Self {
        Self {
            base,
            max,
            jitter: Jitter::UpperHalf,
            first: First::Jittered,
        }
    }

    /// Makes the first wait exactly `base`. Default: it is jittered like the others.
    #[must_use]
    pub const fn first_exact(mut self) -> Self {
        self.first = First::Exact;
        self
    }

    /// Draws each wait from the doubled value up to this many percent above it, `max` at most. Default: from the upper
    /// half of the doubled value.
    #[must_use]
    pub const fn jitter_above(mut self, percent: u32) -> Self {
        self.jitter = Jitter::Above { percent };
        self
    }

    /// The longest wait.
    #[must_use]
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// The wait before the retry that follows `retries` earlier ones.
    pub(crate) fn wait(&self, retries: u32, draw: Draw) -> Duration {
        let doubled = doubled(self.base, retries).min(self.max);
        if retries == 0 && self.first == First::Exact {
            return settle(doubled, self.max);
        }
        let wait = match self.jitter {
            Jitter::UpperHalf => doubled - draw.short_of(doubled / 2),
            Jitter::Above { percent } => doubled.saturating_add(draw.of_percent(doubled, percent)),
        };
        settle(wait, self.max)
    }
}

/// What is done to the waits a server names (R04, R05). By default nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NamedWaits {
    /// Doubles on each further 429 of a call, up to this.
    pub(crate) doubling_to: Option<Duration>,
    /// Adds up to this many percent.
    pub(crate) jitter_percent: u32,
}

impl NamedWaits {
    pub(crate) const EXACT: Self = Self {
        doubling_to: None,
        jitter_percent: 0,
    };

    /// The wait for a server that asked for `ask`, never less than that. `doublings` counts the 429s of the call
    /// before this one, and is zero for any other status.
    pub(crate) fn wait(&self, ask: Duration, doublings: u32, draw: Draw) -> Duration {
        let wait = match self.doubling_to {
            Some(most) => doubled(ask, doublings).min(most.max(ask)),
            None => ask,
        };
        wait.saturating_add(draw.of_percent(wait, self.jitter_percent))
    }
}

/// A random fraction, drawn by the caller so that a wait is a function of its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw(pub(crate) u32);

impl Draw {
    pub(crate) fn random() -> Self {
        Self(fastrand::u32(..))
    }

    /// Between nothing (at the largest draw) and all of `span`.
    fn short_of(self, span: Duration) -> Duration {
        Self(u32::MAX - self.0).of(span)
    }

    /// Between nothing and `percent` of `whole`.
    fn of_percent(self, whole: Duration, percent: u32) -> Duration {
        let nanos = whole.as_nanos().saturating_mul(u128::from(percent)) / 100;
        self.of(from_nanos(nanos))
    }

    /// `span · draw / (2³² − 1)`: nothing at the smallest draw, all of it at the largest.
    fn of(self, span: Duration) -> Duration {
        let part = span.as_nanos().saturating_mul(u128::from(self.0)) / u128::from(u32::MAX);
        from_nanos(part)
    }
}

fn doubled(base: Duration, times: u32) -> Duration {
    base.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX))
}

/// Rounds up to a whole millisecond, within what is allowed.
fn settle(wait: Duration, max: Duration) -> Duration {
    let millis = wait.as_nanos().div_ceil(1_000_000);
    from_nanos(millis.saturating_mul(1_000_000))
        .min(max)
        .max(SHORTEST)
}

fn from_nanos(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    let Ok(secs) = u64::try_from(nanos / SECOND) else {
        return Duration::MAX;
    };
    let subsec = u32::try_from(nanos % SECOND).expect("a remainder of 10⁹ fits");
    Duration::new(secs, subsec)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOW: Draw = Draw(0);
    const HIGH: Draw = Draw(u32::MAX);

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn bounds(backoff: Backoff, retries: u32) -> (u128, u128) {
        (
            backoff.wait(retries, LOW).as_millis(),
            backoff.wait(retries, HIGH).as_millis(),
        )
    }

    #[test]
    fn r07_half_a_second_doubles_to_eight() {
        let backoff = Backoff::exponential(ms(500), ms(8_000));
        let expected = [
            (250, 500),
            (500, 1_000),
            (1_000, 2_000),
            (2_000, 4_000),
            (4_000, 8_000),
            (4_000, 8_000),
        ];
        for (retries, bounds_expected) in (0..).zip(expected) {
            assert_eq!(bounds(backoff, retries), bounds_expected, "retry {retries}");
        }
        assert_eq!(bounds(backoff, u32::MAX), (4_000, 8_000));
    }

    #[test]
    fn r07_payments_waits_a_second_first_and_thirty_at_most() {
        let backoff = Backoff::exponential(ms(1_000), ms(30_000)).first_exact();
        let expected = [
            (1_000, 1_000),
            (1_000, 2_000),
            (2_000, 4_000),
            (4_000, 8_000),
            (8_000, 16_000),
            (15_000, 30_000),
        ];
        for (retries, bounds_expected) in (0..).zip(expected) {
            assert_eq!(bounds(backoff, retries), bounds_expected, "retry {retries}");
        }
    }

    #[test]
    fn r07_botix_adds_up_to_thirty_percent_within_sixty_seconds() {
        let backoff = Backoff::exponential(ms(1_000), ms(60_000)).jitter_above(30);
        let expected = [
            (1_000, 1_300),
            (2_000, 2_600),
            (4_000, 5_200),
            (8_000, 10_400),
        ];
        for (retries, bounds_expected) in (0..).zip(expected) {
            assert_eq!(bounds(backoff, retries), bounds_expected, "retry {retries}");
        }
        assert_eq!(bounds(backoff, 6), (60_000, 60_000));
    }

    #[test]
    fn a_wait_is_rounded_up_to_a_millisecond_and_is_never_nothing() {
        let backoff = Backoff::exponential(Duration::from_micros(2_100), ms(10)).first_exact();
        assert_eq!(backoff.wait(0, LOW), ms(3));
        let nothing = Backoff::exponential(Duration::ZERO, Duration::ZERO);
        assert_eq!(nothing.wait(3, HIGH), SHORTEST);
    }

    #[test]
    fn r04_a_named_wait_is_left_alone() {
        let ask = Duration::new(30, 1);
        assert_eq!(NamedWaits::EXACT.wait(ask, 5, HIGH), ask);
    }

    #[test]
    fn r05_botix_doubles_a_named_wait_on_each_further_429() {
        let named = NamedWaits {
            doubling_to: Some(ms(60_000)),
            jitter_percent: 0,
        };
        let waits = |ask: u64| [0, 1, 2, 3].map(|n| named.wait(ms(ask), n, HIGH).as_millis());
        assert_eq!(waits(13_000), [13_000, 26_000, 52_000, 60_000]);
        assert_eq!(waits(90_000), [90_000; 4]);
        assert_eq!(waits(0), [0; 4]);
    }

    proptest! {
        #[test]
        fn r05_jitter_on_a_named_wait_only_adds(
            ask in 0_u64..100_000,
            doublings in 0_u32..64,
            percent in 0_u32..1_000,
            doubling_to in prop::option::of((0_u64..100_000).prop_map(ms)),
            draw: u32,
        ) {
            let named = NamedWaits { doubling_to, jitter_percent: percent };
            let wait = named.wait(ms(ask), doublings, Draw(draw));
            prop_assert!(wait >= ms(ask));
        }

        #[test]
        fn r07_an_own_wait_stays_within_its_bounds(
            base in 0_u64..10_000,
            max in 1_u64..100_000,
            retries: u32,
            draw: u32,
            percent in prop::option::of(0_u32..500),
        ) {
            let mut backoff = Backoff::exponential(ms(base), ms(max));
            if let Some(percent) = percent {
                backoff = backoff.jitter_above(percent);
            }
            let wait = backoff.wait(retries, Draw(draw));
            prop_assert!(wait <= ms(max));
            prop_assert!(wait >= SHORTEST);
            prop_assert!(wait >= doubled(ms(base), retries).min(ms(max)) / 2);
        }

        #[test]
        fn no_arguments_overflow(secs: u64, nanos in 0_u32..1_000_000_000, n: u32, percent: u32, draw: u32) {
            let long = Duration::new(secs, nanos);
            let named = NamedWaits { doubling_to: Some(long), jitter_percent: percent };
            prop_assert!(named.wait(long, n, Draw(draw)) >= long);
            Backoff::exponential(long, Duration::MAX).jitter_above(percent).wait(n, Draw(draw));
        }
    }
}
