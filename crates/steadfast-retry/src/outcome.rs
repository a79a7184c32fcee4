use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

/// A kind of outcome that a repeat may cure.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Trigger {
    /// No usable answer: the connection failed, the attempt timed out, or a buffered response broke off.
    Network,
    /// 408.
    RequestTimeout,
    /// 409 with `Retry-After` on a call that carries an idempotency key: the first request of this key still runs. Any
    /// other 409 is final.
    Conflict,
    /// 429.
    TooManyRequests,
    /// 500.
    InternalServerError,
    /// 502 and 504.
    BadGateway,
    /// 503.
    ServiceUnavailable,
    /// 401 to a request whose signer can sign it afresh: its response carries
    /// [`CredentialGeneration`](steadfast_core::facts::CredentialGeneration). Any other 401 is final.
    Unauthorized,
}

/// Whether an outcome is repeated.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Repeat {
    /// As long as attempts are left. A 401 is repeated once a call even so.
    Always,
    /// Only where the response names a time in `Retry-After`.
    Named,
    /// It is final.
    Never,
    /// Once a call.
    Once,
}

impl Trigger {
    pub(crate) const fn of_status(status: StatusCode) -> Option<Self> {
        Some(match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            StatusCode::REQUEST_TIMEOUT => Self::RequestTimeout,
            StatusCode::CONFLICT => Self::Conflict,
            StatusCode::TOO_MANY_REQUESTS => Self::TooManyRequests,
            StatusCode::INTERNAL_SERVER_ERROR => Self::InternalServerError,
            StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => Self::BadGateway,
            StatusCode::SERVICE_UNAVAILABLE => Self::ServiceUnavailable,
            _ => return None,
        })
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Network => 1,
            Self::RequestTimeout => 1 << 1,
            Self::Conflict => 1 << 2,
            Self::TooManyRequests => 1 << 3,
            Self::InternalServerError => 1 << 4,
            Self::BadGateway => 1 << 5,
            Self::ServiceUnavailable => 1 << 6,
            Self::Unauthorized => 1 << 7,
        }
    }
}

/// Which triggers a call has been repeated for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Triggers(u8);

impl Triggers {
    pub(crate) const fn insert(&mut self, trigger: Trigger) {
        self.0 |= trigger.bit();
    }

    pub(crate) const fn contains(self, trigger: Trigger) -> bool {
        self.0 & trigger.bit() != 0
    }
}

/// How one attempt failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) trigger: Trigger,
    /// What the server asked for.
    pub(crate) named: Option<Duration>,
    /// When the response's head arrived, or the attempt failed: a named wait counts from here (RFC 9110 §10.2.3).
    pub(crate) at: Instant,
    /// Whether the next attempt would be signed with credentials of which this response tells the generation.
    pub(crate) resignable: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r02_r03_these_statuses_may_be_repeated_and_no_other() {
        let of = |code: u16| Trigger::of_status(StatusCode::from_u16(code).unwrap());
        let expected = [
            (401, Trigger::Unauthorized),
            (408, Trigger::RequestTimeout),
            (409, Trigger::Conflict),
            (429, Trigger::TooManyRequests),
            (500, Trigger::InternalServerError),
            (502, Trigger::BadGateway),
            (503, Trigger::ServiceUnavailable),
            (504, Trigger::BadGateway),
        ];
        for code in 100..1_000 {
            let trigger = expected.iter().find(|(status, _)| *status == code);
            assert_eq!(of(code), trigger.map(|(_, trigger)| *trigger), "{code}");
        }
    }

    #[test]
    fn each_trigger_has_a_bit_of_its_own() {
        let all = [
            Trigger::Network,
            Trigger::RequestTimeout,
            Trigger::Conflict,
            Trigger::TooManyRequests,
            Trigger::InternalServerError,
            Trigger::BadGateway,
            Trigger::ServiceUnavailable,
            Trigger::Unauthorized,
        ];
        let mut seen = Triggers::default();
        for trigger in all {
            assert!(!seen.contains(trigger), "{trigger:?}");
            seen.insert(trigger);
            assert!(seen.contains(trigger), "{trigger:?}");
        }
    }
}
