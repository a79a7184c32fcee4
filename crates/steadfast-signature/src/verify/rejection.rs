use std::time::Duration;

use http::StatusCode;
use steadfast_core::Problem;

use crate::Reason;

/// Why the layer answered itself (S05). In the extensions of its response, where only this side of the network sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Rejection {
    /// The body did not arrive in time.
    BodyTimeout,
    /// The body is longer than what is verified.
    BodyTooLarge,
    /// The body could not be read to its end.
    BodyUnreadable,
    /// It cannot be told whether there is such a key.
    KeysUnavailable,
    /// The request is not a signed one. The answer is the same for each reason.
    Unauthorized(Reason),
}

impl Rejection {
    /// The code clients key on.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::BodyTimeout => "signature_body_timeout",
            Self::BodyTooLarge => "signature_body_too_large",
            Self::BodyUnreadable => "signature_body_unreadable",
            Self::KeysUnavailable => "signature_keys_unavailable",
            Self::Unauthorized(_) => "signature_invalid",
        }
    }

    pub(super) fn problem(self) -> Problem {
        let (status, title) = match self {
            Self::BodyTimeout => (
                StatusCode::REQUEST_TIMEOUT,
                "The request body did not arrive in time",
            ),
            Self::BodyTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "The request body is too large for a signed request",
            ),
            Self::BodyUnreadable => (
                StatusCode::BAD_REQUEST,
                "The request body could not be read",
            ),
            Self::KeysUnavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Signatures cannot be verified at present",
            ),
            Self::Unauthorized(_) => (
                StatusCode::UNAUTHORIZED,
                "The request carries no valid signature",
            ),
        };
        let problem = Problem::new(status, self.code(), title);
        match self {
            Self::KeysUnavailable => problem.retryable().retry_after(Duration::from_secs(1)),
            Self::BodyTimeout | Self::BodyUnreadable => problem.retryable(),
            Self::BodyTooLarge | Self::Unauthorized(_) => problem,
        }
    }

    /// The reason as it appears in logs.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Unauthorized(reason) => reason.as_str(),
            other => other.code(),
        }
    }
}
