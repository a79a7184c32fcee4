use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderMap, Response};
use steadfast_core::{Body, Clock, MakeRejection, Operations, ReplayBody};
use steadfast_headers::RetryAfter;
use tokio::time::Instant;

use crate::{
    Budget, Profile, Rejection, attempt::AttemptLimits, give_up::GiveUps, license::License,
};

/// What a layer was set to.
#[derive(Clone)]
pub(crate) struct Config<C> {
    pub(crate) profile: Profile,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) max_key_age: Duration,
    pub(crate) replay_cap: usize,
    pub(crate) operations: Operations,
    pub(crate) budget: Budget,
    pub(crate) clock: Clock,
    pub(crate) give_ups: GiveUps,
    pub(crate) make_rejection: Arc<dyn MakeRejection>,
    pub(crate) classify: C,
}

impl<C> Config<C> {
    pub(crate) const fn attempt_limits(&self) -> AttemptLimits {
        AttemptLimits {
            timeout: self.attempt_timeout,
            buffer: self.profile.buffer,
        }
    }

    /// When a call that begins now has to end. A deadline beyond the end of time is none.
    pub(crate) fn ends(&self) -> Option<Instant> {
        self.deadline
            .and_then(|deadline| Instant::now().checked_add(deadline))
    }

    /// The body of a request, kept where it may have to be sent again.
    pub(crate) fn replay<B: http_body::Body>(&self, body: B, license: License) -> ReplayBody<B> {
        if license.is_repeatable() {
            ReplayBody::new(body, self.replay_cap)
        } else {
            ReplayBody::once(body)
        }
    }

    /// What a response asks for in `Retry-After`, counted from the receipt of its head.
    pub(crate) fn named(&self, headers: &HeaderMap, received: Instant) -> Option<Duration> {
        // The body may have been read since then: a date judged by the clock of now would be that much too near.
        let now = self.clock.now();
        let then = now.checked_sub(received.elapsed()).unwrap_or(now);
        RetryAfter::from_headers(headers, then).map(RetryAfter::delay)
    }

    pub(crate) fn reject<B: http_body::Body>(
        &self,
        rejection: Rejection,
        license: License,
    ) -> Response<Body<B>> {
        rejection.into_response(&*self.make_rejection, license.is_repeatable())
    }
}

impl<C> fmt::Debug for Config<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("profile", &self.profile)
            .field("attempt_timeout", &self.attempt_timeout)
            .field("deadline", &self.deadline)
            .field("max_key_age", &self.max_key_age)
            .field("replay_cap", &self.replay_cap)
            .field("operations", &self.operations)
            .field("budget", &self.budget)
            .field("clock", &self.clock)
            .field("give_ups", &self.give_ups)
            .finish_non_exhaustive()
    }
}
