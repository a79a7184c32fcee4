use std::time::Duration;

use http::StatusCode;
use steadfast_core::facts::{CredentialGeneration, Outcome, Throttled};
use tokio::time::Instant;

use crate::{
    ClassifyError, ErrorClass, Trigger,
    attempt::{Arrived, Attempted},
    config::Config,
    decision::{Tally, is_worth_repeating},
    outcome::Failure,
};

/// How an attempt ended: what is known of it, and what kind of end it was.
pub(crate) struct Ending {
    pub(crate) kind: Kind,
    /// What the caller sees of it, should it be the last one.
    pub(crate) status: Option<StatusCode>,
    pub(crate) outcome: Outcome,
    /// What the response asks for in `Retry-After`.
    pub(crate) retry_after: Option<Duration>,
}

pub(crate) enum Kind {
    /// A layer on this side refused to send.
    Blocked,
    Failed(Failure, Cause),
    /// Not one to repeat.
    Final,
    Success,
}

/// What it was that failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cause {
    Body,
    Error(ErrorClass),
    Status,
    Timeout,
}

impl Ending {
    /// `tally` is what the call did before this attempt; `keyed` says that its key allows a second request.
    pub(crate) fn of<B, E, C>(
        result: &Result<Attempted<B>, E>,
        config: &Config<C>,
        tally: &Tally,
        keyed: bool,
    ) -> Self
    where
        B: http_body::Body,
        C: ClassifyError<E>,
    {
        match result {
            Ok(attempted) => Self::of_answer(attempted, config, tally, keyed),
            Err(error) => Self::of_error(config.classify.classify_error(error)),
        }
    }

    fn of_answer<B: http_body::Body, C>(
        attempted: &Attempted<B>,
        config: &Config<C>,
        tally: &Tally,
        keyed: bool,
    ) -> Self {
        let response = &attempted.response;
        let status = response.status();
        let is_error = status.is_client_error() || status.is_server_error();
        let cause = match attempted.arrived {
            Arrived::All if response.body().is_failing() => Cause::Body,
            Arrived::All if is_error => Cause::Status,
            Arrived::All => {
                return Self {
                    kind: Kind::Success,
                    status: Some(status),
                    outcome: Outcome::Answered(status),
                    retry_after: None,
                };
            }
            Arrived::Head | Arrived::Nothing => Cause::Timeout,
        };
        let at = attempted.received.unwrap_or_else(Instant::now);
        let named = config.named(response.headers(), at);
        if let Some(throttled) = response.extensions().get::<Throttled>() {
            return Self {
                kind: Kind::Blocked,
                status: Some(status),
                outcome: Outcome::Pending,
                retry_after: named.or(Some(throttled.wait)),
            };
        }
        let (outcome, by_status) = match attempted.arrived {
            Arrived::Nothing => (Outcome::Unknown, None),
            Arrived::All | Arrived::Head => (Outcome::Answered(status), Trigger::of_status(status)),
        };
        let failed = |trigger| Failure {
            trigger,
            named,
            at,
            resignable: response
                .extensions()
                .get::<CredentialGeneration>()
                .is_some(),
        };
        let by_status = by_status.map(failed);
        let failure = match cause {
            Cause::Status => by_status,
            // A response that is not whole is no answer, unless its status alone is one to repeat. Of a 429 the status is
            // all that counts.
            _ => by_status
                .filter(|failure| {
                    failure.trigger == Trigger::TooManyRequests
                        || is_worth_repeating(&config.profile, tally, keyed, failure)
                })
                .or_else(|| Some(failed(Trigger::Network))),
        };
        Self {
            kind: failure.map_or(Kind::Final, |failure| Kind::Failed(failure, cause)),
            status: Some(match cause {
                Cause::Timeout => StatusCode::GATEWAY_TIMEOUT,
                _ => status,
            }),
            outcome,
            retry_after: named,
        }
    }

    fn of_error(class: ErrorClass) -> Self {
        let failure = Failure {
            trigger: Trigger::Network,
            named: None,
            at: Instant::now(),
            resignable: false,
        };
        Self {
            kind: match class {
                ErrorClass::Final => Kind::Final,
                class => Kind::Failed(failure, Cause::Error(class)),
            },
            status: None,
            outcome: Outcome::Unknown,
            retry_after: None,
        }
    }
}

impl Cause {
    /// The cause as it appears in logs.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Error(class) => class.as_str(),
            Self::Status => "status",
            Self::Timeout => "timeout",
        }
    }
}
