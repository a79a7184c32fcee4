use std::{fmt, sync::Arc, time::Duration};

use steadfast_core::{Clock, MakeRejection, Operations, ProblemJson};
use tower_layer::Layer;

use crate::{
    Backoff, Budget, GiveUp, KnownErrors, Profile, RateLimitAwareRetry,
    config::Config,
    give_up::{Coalesced, GiveUps},
};

/// Applies [`RateLimitAwareRetry`] to a client.
///
/// See the [crate docs](crate) for examples and for all defaults.
///
/// # Clone
///
/// Clones, and the services made by them, share the budget and the coalescing of give-up events.
#[derive(Clone)]
#[must_use]
pub struct RateLimitAwareRetryLayer<C = KnownErrors> {
    config: Config<C>,
}

impl RateLimitAwareRetryLayer {
    /// Retries as [`Profile::new`] says.
    pub fn new() -> Self {
        Self::with_profile(Profile::new())
    }

    /// Retries as `profile` says.
    pub fn with_profile(profile: Profile) -> Self {
        Self {
            config: Config {
                profile,
                attempt_timeout: None,
                deadline: None,
                max_key_age: Duration::from_secs(23 * 60 * 60),
                replay_cap: 1024 * 1024,
                operations: Operations::new(),
                budget: Budget::new(),
                clock: Clock::system(),
                give_ups: GiveUps {
                    on_give_up: None,
                    coalesced: Coalesced::within(Duration::from_secs(60)),
                },
                make_rejection: Arc::new(ProblemJson::default()),
                classify: KnownErrors,
            },
        }
    }
}

impl<C> RateLimitAwareRetryLayer<C> {
    /// Sets how many requests may follow the first one (R08). Default: 2, or the profile's. More than 1,000 count as 1,000.
    pub fn retries(mut self, retries: u32) -> Self {
        self.config.profile.retries = retries.min(1_000);
        self
    }

    /// Sets the longest wait a server may ask for (R06). Default: 60 s. Asked for more, the call ends with the response
    /// that asked.
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.config.profile.cap = cap;
        self
    }

    /// Sets how long the client waits where the server names no time (R07). Default: half a second doubling to 8 s, or
    /// the profile's.
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.config.profile.backoff = backoff;
        self
    }

    /// Waits up to this many percent longer than the server asked, so that a fleet does not wake in one instant (R05).
    /// Default: 0, exactly what it asked.
    pub const fn jitter_named_waits(mut self, percent: u32) -> Self {
        self.config.profile.named.jitter_percent = percent;
        self
    }

    /// Bounds each attempt (R10). Default: none, and an attempt takes as long as the client lets it.
    ///
    /// The attempt's time begins when it is sent; waiting for the client to be ready is bounded by
    /// [`deadline`](Self::deadline) alone. It runs until the head of the response, or until the end of its body where
    /// [`buffer_response`](Self::buffer_response) is set. An attempt that is timed out may have had its effect: it is
    /// repeated only where the call may be. If it was the last one, the answer is a 504 with
    /// [`Rejection::AttemptTimeout`](crate::Rejection::AttemptTimeout) in its extensions.
    pub const fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.config.attempt_timeout = Some(timeout);
        self
    }

    /// Bounds the whole call, its waits included (R10). Default: none.
    ///
    /// A wait that would pass the deadline is not begun: the last response or error is returned. An attempt that runs when it
    /// passes is dropped, and the answer is a 504 with [`Rejection::Deadline`](crate::Rejection::Deadline) in its
    /// extensions.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.config.deadline = Some(deadline);
        self
    }

    /// Reads responses into memory, up to `cap` bytes, before an attempt counts as answered. Default: responses stream,
    /// or the profile's.
    ///
    /// A response that hangs or breaks off is then a failure that is repeated. One that is longer than `cap` streams from
    /// there on, as do server-sent events and `multipart/x-mixed-replace` from the start.
    pub const fn buffer_response(mut self, cap: usize) -> Self {
        self.config.profile.buffer = Some(cap);
        self
    }

    /// Lets responses stream: an attempt is answered with the head of its response. Default, save in the profiles of the
    /// three APIs.
    pub const fn stream_response(mut self) -> Self {
        self.config.profile.buffer = None;
        self
    }

    /// Sets how much of a request's body is kept for a retry. Default: 1 MiB. A longer body is sent, and not repeated.
    pub const fn replay_cap(mut self, bytes: usize) -> Self {
        self.config.replay_cap = bytes;
        self
    }

    /// Sets how old an idempotency key may grow and still be sent again (I05). Default: 23 hours, an hour less than servers
    /// commonly remember one.
    ///
    /// The age is known from [`KeyCreated`](steadfast_core::facts::KeyCreated) in the request's extensions; a key without
    /// it counts as new.
    pub const fn max_key_age(mut self, age: Duration) -> Self {
        self.config.max_key_age = age;
        self
    }

    /// Declares which operations may be repeated (R01). Default: none. An
    /// [`OperationClass`](steadfast_core::facts::OperationClass) in the request's extensions beats the table, save that
    /// `RepeatableWithKey` does not beat `NotRepeatable`.
    pub fn operations(mut self, operations: Operations) -> Self {
        self.config.operations = operations;
        self
    }

    /// Sets what retries may cost (R13). Default: [`Budget::new`]. Give one budget to all clients of the same servers.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.config.budget = budget;
        self
    }

    /// Sets the clock by which HTTP dates and key ages are judged. Default: [`Clock::system`].
    pub fn clock(mut self, clock: Clock) -> Self {
        self.config.clock = clock;
        self
    }

    /// Calls `on_give_up` for each call that is given up, as far as its events are not
    /// [coalesced](Self::coalesce) (R09). Default: the `tracing` event alone.
    ///
    /// It is called in the call's own task: it must not block.
    pub fn on_give_up(mut self, on_give_up: impl Fn(&GiveUp<'_>) + Send + Sync + 'static) -> Self {
        self.config.give_ups.on_give_up = Some(Arc::new(on_give_up));
        self
    }

    /// Tells of the give-ups of one origin and reason at most once in `span`, with their number, so that an outage is not
    /// a million events. Default: 60 s. [`Duration::ZERO`] tells of each call.
    ///
    /// Calls that are held back are counted in the next event of their origin and reason, and logged at `INFO`.
    pub fn coalesce(mut self, span: Duration) -> Self {
        self.config.give_ups.coalesced = Coalesced::within(span);
        self
    }

    /// Sets how the layer writes the two answers it gives itself, on a timeout and past the deadline. Default:
    /// [`ProblemJson`].
    pub fn make_rejection(mut self, make: impl MakeRejection) -> Self {
        self.config.make_rejection = Arc::new(make);
        self
    }

    /// Sets how errors of the inner service are told apart. Default: [`KnownErrors`]. A closure
    /// `Fn(&S::Error) -> ErrorClass` does.
    pub fn classify_error<D>(self, classify: D) -> RateLimitAwareRetryLayer<D> {
        let Config {
            profile,
            attempt_timeout,
            deadline,
            max_key_age,
            replay_cap,
            operations,
            budget,
            clock,
            give_ups,
            make_rejection,
            classify: _,
        } = self.config;
        RateLimitAwareRetryLayer {
            config: Config {
                profile,
                attempt_timeout,
                deadline,
                max_key_age,
                replay_cap,
                operations,
                budget,
                clock,
                give_ups,
                make_rejection,
                classify,
            },
        }
    }
}

impl Default for RateLimitAwareRetryLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S, C: Clone> Layer<S> for RateLimitAwareRetryLayer<C> {
    type Service = RateLimitAwareRetry<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimitAwareRetry::new(inner, Arc::new(self.config.clone()))
    }
}

impl<C> fmt::Debug for RateLimitAwareRetryLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateLimitAwareRetryLayer")
            .field(&self.config)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r08_retries_have_a_limit_of_their_own() {
        let retries = |retries| {
            RateLimitAwareRetryLayer::new()
                .retries(retries)
                .config
                .profile
                .retries
        };
        assert_eq!(
            [0, 1_000, 1_001, u32::MAX].map(retries),
            [0, 1_000, 1_000, 1_000]
        );
    }
}
