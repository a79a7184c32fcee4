use std::time::Duration;

use http::StatusCode;
use steadfast_core::Problem;

/// Why the layer answered itself. In the extensions of its response.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Rejection {
    /// The request is not fresh any more, or its entry may have been forgotten on a clock that was set back.
    Expired,
    /// The event is being processed.
    InProgress,
    /// The key has as many live entries as it may.
    OverQuota,
    /// The signed request was used before (G01).
    Replayed,
    /// The store has no room for what is new.
    StoreFull,
    /// The store did not answer, or not in time.
    StoreUnavailable,
    /// The scheme signs no timestamp, and no retention is configured.
    Undated,
    /// No signature was verified.
    Unverified,
}

impl Rejection {
    /// The code clients key on.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Expired => "signature_expired",
            Self::InProgress => "event_in_progress",
            Self::OverQuota => "replay_quota_exceeded",
            Self::Replayed => "signature_replayed",
            Self::StoreFull => "replay_store_full",
            Self::StoreUnavailable => "replay_store_unavailable",
            Self::Undated => "signature_undated",
            Self::Unverified => "signature_missing",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::Expired | Self::Replayed | Self::Undated | Self::Unverified => {
                StatusCode::UNAUTHORIZED
            }
            Self::InProgress => StatusCode::CONFLICT,
            Self::OverQuota => StatusCode::TOO_MANY_REQUESTS,
            Self::StoreFull | Self::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Expired => "The request signature is not fresh",
            Self::InProgress => "The event is being processed",
            Self::OverQuota => "The key has too many requests in its signatures' lifetime",
            Self::Replayed => "The request signature is used up",
            Self::StoreFull => "No further signed request can be accepted at present",
            Self::StoreUnavailable => "The replay store cannot be reached",
            Self::Undated => "The request signature has no timestamp",
            Self::Unverified => "The request carries no verified signature",
        }
    }

    const fn detail(self) -> &'static str {
        match self {
            Self::Replayed => "Request signature has already been used",
            Self::Expired => "Sign the request again. Nothing was done.",
            Self::Undated | Self::Unverified => "Nothing was done.",
            Self::OverQuota | Self::StoreFull | Self::StoreUnavailable | Self::InProgress => {
                "Send it again after the time in Retry-After."
            }
        }
    }

    /// Whether the 401 asks for credentials.
    pub(crate) fn is_unauthorized(self) -> bool {
        self.status() == StatusCode::UNAUTHORIZED
    }

    pub(crate) fn problem(self, retry_after: Duration) -> Problem {
        let problem = Problem::new(self.status(), self.code(), self.title()).detail(self.detail());
        if self.is_unauthorized() {
            problem
        } else {
            problem.retryable().retry_after(retry_after)
        }
    }
}
