use std::mem;

use http::Extensions;
use steadfast_core::facts::{CallReport, Outcome, RetryReport};
use steadfast_headers::IdempotencyKey;

/// Where a call writes what it does.
#[derive(Clone)]
pub(crate) enum Report {
    /// Nobody looks before the call is over, and no more has become of it than this.
    Brief(Brief),
    /// Nobody looks before the call is over.
    Own(Box<RetryReport>),
    /// The caller may look at any time, or the deadline has to.
    Shared(CallReport),
}

/// The report of a call that was sent once, as short as it is at first: most stay so, and a whole report is moved and
/// copied with each of them.
#[derive(Clone)]
pub(crate) struct Brief {
    key: Option<IdempotencyKey>,
    outcome: Outcome,
}

impl Brief {
    fn take(&mut self) -> RetryReport {
        let mut report = RetryReport::default();
        report.attempts = 1;
        report.outcome = self.outcome;
        report.key = self.key.take();
        report
    }
}

impl Report {
    /// The report of a call whose first request is about to be sent.
    ///
    /// A handle in the request's extensions is emptied of what an earlier call left in it.
    pub(crate) fn begin(
        extensions: &Extensions,
        key: Option<IdempotencyKey>,
        has_deadline: bool,
    ) -> Self {
        let mut brief = Brief {
            key,
            outcome: Outcome::Pending,
        };
        let handle = match extensions.get::<CallReport>() {
            Some(handle) => handle.clone(),
            None if has_deadline => CallReport::new(),
            None => return Self::Brief(brief),
        };
        handle.update(|old| *old = brief.take());
        Self::Shared(handle)
    }

    pub(crate) fn update<T>(&mut self, change: impl FnOnce(&mut RetryReport) -> T) -> T {
        match self {
            Self::Brief(brief) => {
                let mut report = Box::new(brief.take());
                let result = change(&mut report);
                *self = Self::Own(report);
                result
            }
            Self::Own(report) => change(report),
            Self::Shared(report) => report.update(change),
        }
    }

    /// Notes the end of an attempt that succeeded.
    pub(crate) fn succeed(&mut self, outcome: Outcome) {
        if let Self::Brief(brief) = self {
            brief.outcome = outcome;
            return;
        }
        self.update(|report| {
            report.outcome = outcome;
            report.retry_after = None;
        });
    }

    /// Puts the report of a call that is over into the extensions of its response, and the handle beside it.
    pub(crate) fn attach(&mut self, extensions: &mut Extensions) {
        match self {
            Self::Brief(brief) => {
                extensions.insert(brief.take());
            }
            Self::Own(report) => {
                extensions.insert(mem::take(&mut **report));
            }
            Self::Shared(report) => {
                extensions.insert(report.snapshot());
                extensions.insert(report.clone());
            }
        }
    }

    pub(crate) const fn handle(&self) -> Option<&CallReport> {
        match self {
            Self::Brief(_) | Self::Own(_) => None,
            Self::Shared(report) => Some(report),
        }
    }
}
