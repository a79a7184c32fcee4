use std::mem;

use http::Extensions;
use steadfast_core::facts::{CallReport, RetryReport};
use steadfast_headers::IdempotencyKey;

/// Where a call writes what it does.
#[derive(Clone)]
pub(crate) enum Report {
    /// Nobody looks before the call is over.
    Own(RetryReport),
    /// The caller may look at any time, or the deadline has to.
    Shared(CallReport),
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
        let mut report = RetryReport::default();
        report.attempts = 1;
        report.key = key;
        let handle = match extensions.get::<CallReport>() {
            Some(handle) => handle.clone(),
            None if has_deadline => CallReport::new(),
            None => return Self::Own(report),
        };
        handle.update(|old| *old = report);
        Self::Shared(handle)
    }

    pub(crate) fn update<T>(&mut self, change: impl FnOnce(&mut RetryReport) -> T) -> T {
        match self {
            Self::Own(report) => change(report),
            Self::Shared(report) => report.update(change),
        }
    }

    /// Puts the report of a call that is over into the extensions of its response, and the handle beside it.
    pub(crate) fn attach(&mut self, extensions: &mut Extensions) {
        match self {
            Self::Own(report) => {
                extensions.insert(mem::take(report));
            }
            Self::Shared(report) => {
                extensions.insert(report.snapshot());
                extensions.insert(report.clone());
            }
        }
    }

    pub(crate) const fn handle(&self) -> Option<&CallReport> {
        match self {
            Self::Own(_) => None,
            Self::Shared(report) => Some(report),
        }
    }
}
