use std::{sync::Arc, task::Context};

use http::{Method, Request, Response, StatusCode};
use steadfast_core::{
    Body,
    facts::{CallReport, Outcome, Stopped},
};
use tokio::time::Instant;

use crate::{
    Rejection, alarm::Alarm, config::Config, license::License, origin::Origin, report::Report,
};

/// Watches over a call from outside of the retry loop: ends it at its deadline, and tells when it was dropped.
///
/// A call without a deadline, and whose report nobody holds, needs none.
pub(crate) struct Watch<C> {
    config: Arc<Config<C>>,
    report: CallReport,
    license: License,
    method: Method,
    origin: Origin,
    deadline: Option<Alarm>,
    over: bool,
}

impl<C> Watch<C> {
    pub(crate) fn over<B>(
        request: &Request<B>,
        config: &Arc<Config<C>>,
        license: License,
        report: &Report,
        deadline: Option<Instant>,
    ) -> Option<Box<Self>> {
        let report = report.handle()?.clone();
        Some(Box::new(Self {
            config: Arc::clone(config),
            report,
            license,
            method: request.method().clone(),
            origin: Origin::of(request),
            deadline: deadline.map(Alarm::at),
            over: false,
        }))
    }

    /// Whether the deadline has passed. Otherwise the task is woken when it has.
    pub(crate) fn is_due(&mut self, cx: &mut Context<'_>) -> bool {
        Alarm::has_gone_off(&mut self.deadline, cx)
    }

    /// The call came to its own end.
    pub(crate) fn dismiss(mut self) {
        self.over = true;
    }

    /// The call comes to its end here: the answer past the deadline.
    pub(crate) fn end<B: http_body::Body>(mut self) -> Response<Body<B>> {
        self.over = true;
        self.forget_attempt();
        let mut report = Report::Shared(self.report.clone());
        let status = Some(StatusCode::GATEWAY_TIMEOUT);
        self.config.give_ups.give_up(
            &mut report,
            Stopped::Deadline,
            &self.method,
            &self.origin,
            status,
        );
        let mut response = self.config.reject(Rejection::Deadline, self.license);
        report.attach(response.extensions_mut());
        response
    }

    /// Nobody will know how the attempt that runs would have ended.
    fn forget_attempt(&self) {
        self.report.update(|report| {
            if report.outcome == Outcome::Pending {
                report.outcome = Outcome::Unknown;
            }
        });
    }
}

impl<C> Drop for Watch<C> {
    fn drop(&mut self) {
        if !self.over {
            self.forget_attempt();
            self.report
                .update(|report| report.stopped = Some(Stopped::Cancelled));
        }
    }
}
