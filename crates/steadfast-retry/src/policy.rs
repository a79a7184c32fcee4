use std::{mem, sync::Arc, time::Duration};

use http::{Request, Response, StatusCode};
use steadfast_core::{
    Body, ReplayBody,
    facts::{CredentialGeneration, Outcome, Stopped, Throttled},
};
use tokio::time::Instant;

use crate::{
    ClassifyError, ErrorClass, Repeat, Trigger,
    attempt::{Attempted, Head},
    backoff::Draw,
    budget::Withdrawal,
    call::Call,
    decision::{Facts, Retry, Tally, Verdict, decide},
    give_up::millis,
    outcome::Failure,
    pause::Pause,
};

/// What tower's retry loop asks: sees how an attempt ended, and decides whether there is another.
pub(crate) struct Policy<C> {
    call: Arc<Call<C>>,
    tally: Tally,
    /// Paid for the retry that is being waited for.
    withdrawal: Option<Withdrawal>,
    /// What was known before the attempt that runs.
    before: Outcome,
}

/// How an attempt ended.
struct Ending {
    status: Option<StatusCode>,
    kind: Kind,
}

enum Kind {
    /// A layer on this side refused to send.
    Blocked,
    Failed(Failure, Cause),
    /// Not one to repeat.
    Final,
    Success,
}

/// What the logs call a failure.
type Cause = &'static str;

impl<C> Policy<C> {
    pub(crate) fn new(call: Arc<Call<C>>) -> Self {
        Self {
            call,
            tally: Tally::default(),
            withdrawal: None,
            before: Outcome::Pending,
        }
    }

    fn see<B, E>(&self, result: &Result<Attempted<B>, E>) -> Ending
    where
        B: http_body::Body,
        C: ClassifyError<E>,
    {
        match result {
            Ok(Attempted::Answered { response, received }) => {
                self.see_response(response, *received)
            }
            Ok(Attempted::TimedOut { head }) => self.see_timeout(head.as_deref()),
            Err(error) => self.see_error(self.call.config.classify.classify_error(error)),
        }
    }

    fn see_response<B: http_body::Body>(
        &self,
        response: &Response<Body<B>>,
        received: Option<Instant>,
    ) -> Ending {
        let status = response.status();
        let is_cut = response.body().is_failing();
        let is_success = !status.is_client_error() && !status.is_server_error();
        let ending = |kind| Ending {
            status: Some(status),
            kind,
        };
        if is_success && !is_cut {
            self.note(Outcome::Answered(status), None);
            return ending(Kind::Success);
        }
        let named = self.call.named(response.headers());
        if let Some(throttled) = response.extensions().get::<Throttled>() {
            self.note(self.before, named.or(Some(throttled.wait)));
            return ending(Kind::Blocked);
        }
        self.note(Outcome::Answered(status), named);
        // A buffered response that broke off is no answer, unless its status alone is one to repeat.
        let by_status = Trigger::of_status(status).filter(|trigger| {
            !is_cut || self.call.config.profile.repeat(*trigger) != Repeat::Never
        });
        let (trigger, cause) = match by_status {
            Some(trigger) => (trigger, "status"),
            None if is_cut => (Trigger::Network, "body"),
            None => return ending(Kind::Final),
        };
        let failure = Failure {
            trigger,
            named,
            at: received.unwrap_or_else(Instant::now),
            resignable: response
                .extensions()
                .get::<CredentialGeneration>()
                .is_some(),
        };
        ending(Kind::Failed(failure, cause))
    }

    /// What the head of an unfinished response asks for is obeyed all the same.
    fn see_timeout(&self, head: Option<&Head>) -> Ending {
        let named = head.and_then(|head| self.call.named(&head.headers));
        let at = head.and_then(|head| head.received);
        let outcome = head.map_or(Outcome::Unknown, |head| Outcome::Answered(head.status));
        self.note(outcome, named);
        let failure = Failure {
            trigger: Trigger::Network,
            named,
            at: at.unwrap_or_else(Instant::now),
            resignable: false,
        };
        Ending {
            // What the caller sees when this was the last attempt.
            status: Some(StatusCode::GATEWAY_TIMEOUT),
            kind: Kind::Failed(failure, "timeout"),
        }
    }

    fn see_error(&self, class: ErrorClass) -> Ending {
        self.note(Outcome::Unknown, None);
        let failure = Failure {
            trigger: Trigger::Network,
            named: None,
            at: Instant::now(),
            resignable: false,
        };
        let kind = match class {
            ErrorClass::Final => Kind::Final,
            class => Kind::Failed(failure, class.as_str()),
        };
        Ending { status: None, kind }
    }

    fn note(&self, outcome: Outcome, retry_after: Option<Duration>) {
        self.call.report.update(|report| {
            report.outcome = outcome;
            report.retry_after = retry_after;
        });
    }

    fn decide<B: http_body::Body>(
        &mut self,
        request: &Request<ReplayBody<B>>,
        failure: &Failure,
        now: Instant,
    ) -> Verdict {
        let Call {
            config, license, ..
        } = &*self.call;
        let key_left = license.key_left(config.max_key_age, || config.clock.now());
        let facts = Facts {
            repeatable: license.is_repeatable()
                && key_left.is_ok()
                && request.body().is_replayable(),
            keyed: license.is_keyed(),
            key_left: key_left.ok().flatten(),
            deadline: self.call.deadline,
            now,
        };
        let verdict = decide(
            &config.profile,
            &self.tally,
            &facts,
            failure,
            Draw::random(),
        );
        let Verdict::Repeat(retry) = verdict else {
            return verdict;
        };
        self.withdrawal = config.budget.withdraw(&self.call.origin, retry.price);
        match self.withdrawal {
            Some(_) => verdict,
            None => Verdict::GiveUp(Stopped::Budget),
        }
    }

    fn go_on(&mut self, trigger: Trigger, retry: &Retry, status: Option<StatusCode>, cause: Cause) {
        self.tally.count(trigger);
        let attempts = self.call.report.update(|report| {
            report.waits.push(retry.wait);
            report.attempts
        });
        tracing::info!(
            method = %self.call.method,
            host = self.call.origin.host(),
            status = status.map(|status| status.as_u16()),
            attempts,
            cause,
            wait_ms = millis(retry.wait),
            "call will be repeated",
        );
    }
}

impl<C, B, ResB, E> tower::retry::Policy<Request<ReplayBody<B>>, Attempted<ResB>, E> for Policy<C>
where
    C: ClassifyError<E>,
    B: http_body::Body,
    ResB: http_body::Body,
{
    type Future = Pause<ResB>;

    fn retry(
        &mut self,
        request: &mut Request<ReplayBody<B>>,
        result: &mut Result<Attempted<ResB>, E>,
    ) -> Option<Pause<ResB>> {
        let Ending { status, kind } = self.see(result);
        let (failure, cause) = match kind {
            Kind::Failed(failure, cause) => (failure, cause),
            Kind::Blocked => {
                self.call
                    .report
                    .update(|report| report.attempts = report.attempts.saturating_sub(1));
                self.call.give_up(Stopped::LocalBlock, status);
                return None;
            }
            Kind::Success => {
                self.call.config.budget.deposit(&self.call.origin);
                return None;
            }
            Kind::Final => return None,
        };
        let now = Instant::now();
        match self.decide(request, &failure, now) {
            Verdict::Final => None,
            Verdict::GiveUp(reason) => {
                self.call.give_up(reason, status);
                None
            }
            Verdict::Repeat(retry) => {
                self.go_on(failure.trigger, &retry, status, cause);
                let discarded = match result {
                    Ok(Attempted::Answered { response, .. }) => {
                        Some(mem::take(response.body_mut()))
                    }
                    _ => None,
                };
                Some(Pause::new(retry.until, now, discarded))
            }
        }
    }

    /// Called right before each attempt is sent.
    ///
    /// Always answers `Some`, because tower asks `retry` only then, and a call that is sent once is reported as well. Its
    /// headers are not copied, though: it takes a place and is never sent.
    fn clone_request(
        &mut self,
        request: &Request<ReplayBody<B>>,
    ) -> Option<Request<ReplayBody<B>>> {
        if let Some(withdrawal) = self.withdrawal.take() {
            withdrawal.spend();
        }
        self.before = self.call.report.update(|report| {
            report.attempts = report.attempts.saturating_add(1);
            mem::replace(&mut report.outcome, Outcome::Pending)
        });
        Some(if self.call.license.is_repeatable() {
            request.clone()
        } else {
            Request::new(request.body().clone())
        })
    }
}

/// tower clones the policy once a call, behind the first `clone_request`.
impl<C> Clone for Policy<C> {
    fn clone(&self) -> Self {
        Self {
            call: Arc::clone(&self.call),
            tally: self.tally,
            withdrawal: None,
            before: self.before,
        }
    }
}
