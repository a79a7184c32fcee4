use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderMap, Method, Request, StatusCode};
use steadfast_core::{
    Clock, MakeRejection, Operations,
    facts::{CallReport, RetryReport, Stopped},
};
use steadfast_headers::RetryAfter;
use tokio::time::Instant;

use crate::{
    Budget, GiveUp, Profile, attempt::AttemptLimits, give_up::GiveUps, license::License,
    origin::Origin,
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

/// One logical call: what does not change from attempt to attempt, and the report.
pub(crate) struct Call<C> {
    pub(crate) config: Arc<Config<C>>,
    pub(crate) report: CallReport,
    pub(crate) method: Method,
    pub(crate) origin: Origin,
    pub(crate) license: License,
    pub(crate) deadline: Option<Instant>,
}

impl<C> Call<C> {
    pub(crate) fn new<B>(config: Arc<Config<C>>, request: &Request<B>) -> Self {
        let license = License::of(request, &config.operations);
        let report = match request.extensions().get::<CallReport>() {
            Some(report) => {
                // The handle may have served an earlier call.
                report.update(|report| *report = RetryReport::default());
                report.clone()
            }
            None => CallReport::new(),
        };
        if let Some(key) = license.key() {
            report.update(|report| report.key = Some(key.clone()));
        }
        Self {
            report,
            method: request.method().clone(),
            origin: Origin::of(request.uri(), request.headers()),
            license,
            deadline: config
                .deadline
                .and_then(|deadline| Instant::now().checked_add(deadline)),
            config,
        }
    }

    /// What a response asks for in `Retry-After`.
    pub(crate) fn named(&self, headers: &HeaderMap) -> Option<Duration> {
        RetryAfter::from_headers(headers, self.config.clock.now()).map(RetryAfter::delay)
    }

    /// Ends the call with an outcome that a repeat might have changed.
    pub(crate) fn give_up(&self, reason: Stopped, status: Option<StatusCode>) {
        let (attempts, retry_after) = self.report.update(|report| {
            report.stopped = Some(reason);
            (report.attempts, report.retry_after)
        });
        let give_up = GiveUp {
            method: &self.method,
            host: self.origin.host(),
            status,
            attempts,
            reason,
            retry_after,
            calls: 1,
        };
        self.config.give_ups.raise(&self.origin, give_up);
    }
}
