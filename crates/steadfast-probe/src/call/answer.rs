use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::Response;
use serde::Serialize;
use serde_json::Value;
use steadfast::signature::SignRejection;
use steadfast::{
    core::{
        BoxError,
        facts::{RetryReport, Stopped},
    },
    headers::{IDEMPOTENT_REPLAYED, is_replayed},
    retry::Rejection,
};

use super::stack::Event;
use crate::{
    headers::millis,
    lines::{self, BadLine},
};

/// How a call ended.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    id: Value,
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body_base64: Option<String>,
    attempts: u32,
    waits_ms: Vec<u64>,
    stopped: Option<&'static str>,
    retry_after_ms: Option<u64>,
    key: Option<String>,
    replayed: bool,
    error: Option<String>,
    events: Vec<Event>,
    /// Whether there was no call at all.
    #[serde(skip)]
    pub(super) is_bad_line: bool,
}

impl Answer {
    /// With a response, or with the error that stands in its place.
    pub(super) fn ended(
        id: Value,
        ended: Result<Response<Bytes>, BoxError>,
        report: &RetryReport,
        events: Vec<Event>,
    ) -> Self {
        let mut answer = Self {
            events,
            ..Self::of(id, report)
        };
        match ended {
            Ok(response) if is_attempt_timeout(&response) => {
                answer.error = Some("attempt timed out".to_owned());
                // The 504 is the layer's own. On these lines a status is what the server said.
                answer.events.iter_mut().for_each(Event::forget_status);
            }
            Ok(response) => match response.extensions().get() {
                // Nor was anything sent here.
                Some(rejection) => answer.error = Some(unsigned(*rejection)),
                None => answer.take(response),
            },
            Err(error) => answer.error = Some(chain(&*error)),
        }
        answer
    }

    /// Dropped before its end.
    pub(super) fn cancelled(id: Value, report: &RetryReport) -> Self {
        Self {
            stopped: Some(Stopped::Cancelled.as_str()),
            ..Self::of(id, report)
        }
    }

    /// Never made.
    pub(super) fn bad_line(id: Value, bad: BadLine) -> Self {
        Self {
            error: Some(bad.error),
            is_bad_line: true,
            ..Self::of(id, &RetryReport::default())
        }
    }

    fn of(id: Value, report: &RetryReport) -> Self {
        Self {
            id,
            status: None,
            headers: Vec::new(),
            body_base64: None,
            attempts: report.attempts,
            waits_ms: report.waits.iter().copied().map(millis).collect(),
            stopped: report.stopped.map(Stopped::as_str),
            retry_after_ms: report.retry_after.map(millis),
            key: report.key.as_ref().map(|key| key.as_str().to_owned()),
            replayed: false,
            error: None,
            events: Vec::new(),
            is_bad_line: false,
        }
    }

    fn take(&mut self, response: Response<Bytes>) {
        let (head, body) = response.into_parts();
        self.status = Some(head.status.as_u16());
        self.headers = lines::pairs(&head.headers);
        self.body_base64 = Some(BASE64_STANDARD.encode(body));
        let replayed = head.headers.get(IDEMPOTENT_REPLAYED);
        self.replayed = replayed.is_some_and(is_replayed);
    }
}

/// Whether the layer answered in place of an attempt that ended without an answer.
fn is_attempt_timeout<B>(response: &Response<B>) -> bool {
    response.extensions().get::<Rejection>() == Some(&Rejection::AttemptTimeout)
}

/// Why nothing was sent.
fn unsigned(rejection: SignRejection) -> String {
    match rejection {
        SignRejection::Unsignable(error) => format!("{}: {error}", rejection.code()),
        rejection => rejection.code().to_owned(),
    }
}

/// The error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
