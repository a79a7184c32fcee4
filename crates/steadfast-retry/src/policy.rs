use std::{mem, sync::Arc};

use http::{Request, StatusCode, header};
use steadfast_core::{
    ReplayBody,
    facts::{Outcome, Stopped},
};
use tokio::time::Instant;

use crate::{
    ClassifyError, Rejection, Trigger,
    attempt::{Arrived, Attempted},
    backoff::Draw,
    budget::{Price, Withdrawal},
    config::Config,
    decision::{Facts, Retry, Tally, Verdict, decide},
    ending::{Cause, Ending, Kind},
    give_up::millis,
    license::License,
    origin::Origin,
    outcome::Failure,
    pause::Pause,
    report::Report,
};

/// What tower's retry loop asks: sees how an attempt ended, and decides whether there is another.
pub(crate) struct Policy<C> {
    config: Arc<Config<C>>,
    license: License,
    report: Report,
    deadline: Option<Instant>,
    tally: Tally,
    begun: bool,
    /// What was known before the attempt that runs.
    before: Outcome,
    /// Paid for the retry that is being waited for.
    withdrawal: Option<Box<Withdrawal>>,
    /// What the attempt that runs has paid.
    paid: u32,
}

impl<C> Policy<C> {
    pub(crate) fn new(
        config: Arc<Config<C>>,
        license: License,
        report: Report,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
            config,
            license,
            report,
            deadline,
            tally: Tally::default(),
            begun: false,
            before: Outcome::Pending,
            withdrawal: None,
            paid: 0,
        }
    }

    /// Sees how the attempt ended, and reports it.
    fn see<B, E>(&mut self, result: &Result<Attempted<B>, E>) -> Ending
    where
        B: http_body::Body,
        C: ClassifyError<E>,
    {
        let keyed = self.license.is_keyed();
        let ending = Ending::of(result, &self.config, &self.tally, keyed);
        if matches!(ending.kind, Kind::Success) {
            self.report.succeed(ending.outcome);
            return ending;
        }
        let is_blocked = matches!(ending.kind, Kind::Blocked);
        let before = self.before;
        self.report.update(|report| {
            report.outcome = ending.outcome;
            report.retry_after = ending.retry_after;
            if is_blocked {
                // The attempt that was counted was not sent.
                report.attempts = report.attempts.saturating_sub(1);
                report.outcome = before;
            }
        });
        ending
    }

    /// Whether there is another attempt, and when.
    fn consider<B: http_body::Body>(
        &mut self,
        request: &mut Request<ReplayBody<B>>,
        Ending { kind, status, .. }: Ending,
    ) -> Option<Retry> {
        let stopped = match kind {
            Kind::Success => {
                self.config.budget.deposit(|| Origin::of(request));
                return None;
            }
            Kind::Final => return None,
            Kind::Blocked => {
                let budget = &self.config.budget;
                budget.give_back(&Origin::of(request), mem::take(&mut self.paid));
                Stopped::LocalBlock
            }
            Kind::Failed(failure, cause) => match self.decide(request, &failure) {
                Verdict::Final => return None,
                Verdict::GiveUp(stopped) => stopped,
                Verdict::Repeat(retry) => match self.pay_and_begin(request, retry.price) {
                    Ok(()) => {
                        self.go_on(request, failure.trigger, &retry, status, cause);
                        return Some(retry);
                    }
                    Err(stopped) => stopped,
                },
            },
        };
        let give_ups = &self.config.give_ups;
        give_ups.give_up(
            &mut self.report,
            stopped,
            request.method(),
            &Origin::of(request),
            status,
        );
        None
    }

    /// The last guards, which take what they ask for: the price from the budget, and the body from the attempt before,
    /// which may still be sending it and would use it up during the pause.
    fn pay_and_begin<B: http_body::Body>(
        &mut self,
        request: &mut Request<ReplayBody<B>>,
        price: Price,
    ) -> Result<(), Stopped> {
        let withdrawal = self.config.budget.withdraw(Origin::of(request), price);
        let withdrawal = withdrawal.ok_or(Stopped::Budget)?;
        if !request.body_mut().begin() {
            return Err(Stopped::NotRepeatable);
        }
        self.withdrawal = Some(Box::new(withdrawal));
        Ok(())
    }

    fn decide<B: http_body::Body>(
        &self,
        request: &Request<ReplayBody<B>>,
        failure: &Failure,
    ) -> Verdict {
        let Self {
            config, license, ..
        } = self;
        let key_left = license.key_left(config.max_key_age, &config.clock);
        let facts = Facts {
            repeatable: license.is_repeatable()
                && key_left.is_ok()
                && request.body().is_replayable(),
            keyed: license.is_keyed(),
            key_left: key_left.ok().flatten(),
            deadline: self.deadline,
            now: Instant::now(),
        };
        decide(
            &config.profile,
            &self.tally,
            &facts,
            failure,
            Draw::random(),
        )
    }

    fn go_on<B>(
        &mut self,
        request: &Request<B>,
        trigger: Trigger,
        retry: &Retry,
        status: Option<StatusCode>,
        cause: Cause,
    ) {
        self.tally.count(trigger);
        let (attempts, outcome) = self.report.update(|report| {
            report.waits.push(retry.wait);
            (report.attempts, report.outcome)
        });
        // The status that arrived, also where the rest of the response did not.
        let status = match outcome {
            Outcome::Answered(status) => Some(status),
            _ => status,
        };
        tracing::info!(
            method = %request.method(),
            host = Origin::of(request).host(),
            status = status.map(|status| status.as_u16()),
            attempts,
            cause = cause.as_str(),
            wait_ms = millis(retry.wait),
            "call will be repeated",
        );
    }

    /// The call is over: what the caller gets is completed.
    fn finish<B: http_body::Body>(&mut self, attempted: &mut Attempted<B>) {
        if attempted.arrived != Arrived::All {
            attempted.response = self.config.reject(Rejection::AttemptTimeout, self.license);
        }
        self.report.attach(attempted.response.extensions_mut());
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
        let ending = self.see(result);
        let retry = self.consider(request, ending);
        match (retry, result) {
            (Some(retry), Ok(attempted)) => Some(Pause::new(
                retry.until,
                Some(mem::take(attempted.response.body_mut())),
            )),
            (Some(retry), Err(_)) => Some(Pause::new(retry.until, None)),
            (None, Ok(attempted)) => {
                self.finish(attempted);
                None
            }
            (None, Err(_)) => None,
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
        if mem::replace(&mut self.begun, true) {
            if let Some(withdrawal) = self.withdrawal.take() {
                self.paid = withdrawal.cost();
                withdrawal.spend();
            }
            self.before = self.report.update(|report| {
                report.attempts = report.attempts.saturating_add(1);
                mem::replace(&mut report.outcome, Outcome::Pending)
            });
        }
        if self.license.is_repeatable() {
            return Some(request.clone());
        }
        let mut placeholder = Request::new(request.body().clone());
        *placeholder.method_mut() = request.method().clone();
        *placeholder.uri_mut() = request.uri().clone();
        if let Some(host) = request.headers().get(header::HOST) {
            placeholder.headers_mut().insert(header::HOST, host.clone());
        }
        Some(placeholder)
    }
}

/// tower clones the policy once a call, behind the first `clone_request`.
impl<C> Clone for Policy<C> {
    fn clone(&self) -> Self {
        Self {
            config: Arc::clone(&self.config),
            license: self.license,
            report: self.report.clone(),
            deadline: self.deadline,
            tally: self.tally,
            begun: self.begun,
            before: self.before,
            withdrawal: None,
            paid: self.paid,
        }
    }
}
