use std::time::Duration;

use http::StatusCode;
use steadfast_core::Problem;

use crate::SignError;

/// Why a request was not sent. In the extensions of the answer that the layer gives instead.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SignRejection {
    /// The body is longer than what is kept to be signed.
    BodyTooLarge,
    /// The body could not be read to its end.
    BodyUnreadable,
    /// There is no key to sign with at present.
    KeyUnavailable,
    /// The scheme cannot sign this request with this key.
    Unsignable(SignError),
}

impl SignRejection {
    /// The code of the problem.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::BodyTooLarge => "signing_body_too_large",
            Self::BodyUnreadable => "signing_body_unreadable",
            Self::KeyUnavailable => "signing_key_unavailable",
            Self::Unsignable(_) => "signing_impossible",
        }
    }

    pub(super) fn problem(self) -> Problem {
        let (status, title) = match self {
            Self::BodyTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "The request body is too large to be signed",
            ),
            Self::BodyUnreadable => (
                StatusCode::BAD_REQUEST,
                "The request body could not be read",
            ),
            Self::KeyUnavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "There is no key to sign with at present",
            ),
            Self::Unsignable(_) => (StatusCode::BAD_REQUEST, "The request cannot be signed"),
        };
        let problem = Problem::new(status, self.code(), title);
        match self {
            Self::KeyUnavailable => problem
                .retryable()
                .retry_after(Duration::from_secs(1))
                .detail("Nothing was sent."),
            Self::Unsignable(error) => problem.detail(format!("Nothing was sent: {error}.")),
            Self::BodyTooLarge | Self::BodyUnreadable => problem.detail("Nothing was sent."),
        }
    }
}
