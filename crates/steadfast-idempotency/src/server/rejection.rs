use std::time::Duration;

use http::StatusCode;
use steadfast_core::Problem;
use steadfast_headers::KeyError;

use super::layer::ReuseStatus;
use crate::store::Tombstone;

/// Why the layer answered itself. In the extensions of its response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Rejection {
    /// The body is longer than what is read for the fingerprint.
    BodyTooLarge,
    /// A call with this key and this request is running.
    InProgress,
    /// The key breaks its rules, or stands there twice.
    KeyInvalid(KeyError),
    /// The endpoint requires a key.
    KeyMissing,
    /// The key was used with a different request.
    KeyReuse,
    /// An earlier call failed in a way that leaves it open whether it had its effect.
    OutcomeUnknown,
    /// The stored record is not of this version.
    RecordUnreadable,
    /// The body could not be read to its end.
    RequestInvalid,
    /// The operation was done, but its answer was not kept.
    ResultUnavailable(Tombstone),
    /// The store has no room for a new key.
    StoreFull,
    /// The store did not answer, or not in time.
    StoreUnavailable,
}

impl Rejection {
    /// The code clients key on.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::BodyTooLarge => "idempotency_body_too_large",
            Self::InProgress => "idempotency_in_progress",
            Self::KeyInvalid(_) => "idempotency_key_invalid",
            Self::KeyMissing => "idempotency_key_missing",
            Self::KeyReuse => "idempotency_key_reuse",
            Self::OutcomeUnknown => "idempotency_outcome_unknown",
            Self::RecordUnreadable => "idempotency_record_unreadable",
            Self::RequestInvalid => "idempotency_request_invalid",
            Self::ResultUnavailable(_) => "idempotency_result_unavailable",
            Self::StoreFull => "idempotency_store_full",
            Self::StoreUnavailable => "idempotency_store_unavailable",
        }
    }

    const fn status(self, reuse: ReuseStatus) -> StatusCode {
        match self {
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::InProgress | Self::OutcomeUnknown | Self::ResultUnavailable(_) => {
                StatusCode::CONFLICT
            }
            Self::KeyInvalid(_) | Self::KeyMissing | Self::RequestInvalid => {
                StatusCode::BAD_REQUEST
            }
            Self::KeyReuse => reuse.status(),
            Self::RecordUnreadable | Self::StoreFull | Self::StoreUnavailable => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::BodyTooLarge => "The request body is too large for an idempotent call",
            Self::InProgress => "A call with this Idempotency-Key is running",
            Self::KeyInvalid(_) => "Idempotency-Key is invalid",
            Self::KeyMissing => "Idempotency-Key is missing",
            Self::KeyReuse => "Idempotency-Key is already used",
            Self::OutcomeUnknown => "The outcome of the call with this Idempotency-Key is unknown",
            Self::RecordUnreadable => "The stored answer cannot be read",
            Self::RequestInvalid => "The request body could not be read",
            Self::ResultUnavailable(_) => {
                "The answer to the call with this Idempotency-Key was not kept"
            }
            Self::StoreFull => "No further Idempotency-Key can be accepted at present",
            Self::StoreUnavailable => "The idempotency store cannot be reached",
        }
    }

    const fn detail(self) -> &'static str {
        match self {
            Self::BodyTooLarge => "Send a smaller body. Nothing was done.",
            Self::KeyInvalid(_) => {
                "Send exactly one Idempotency-Key that follows this API's format. Nothing was done."
            }
            Self::KeyMissing => "This endpoint requires an Idempotency-Key. Nothing was done.",
            Self::KeyReuse => {
                "This key was used with a different request. Use a new key for a new call."
            }
            Self::OutcomeUnknown => {
                "It failed without saying whether it had its effect. Look for the effect before making a new call."
            }
            Self::RecordUnreadable => {
                "It was written by another version of the server. Nothing was done."
            }
            Self::RequestInvalid => "The body ended early or broke its framing. Nothing was done.",
            Self::ResultUnavailable(_) => {
                "The operation was done and is not repeated. Read its result from the API."
            }
            Self::InProgress | Self::StoreFull | Self::StoreUnavailable => {
                "Repeat the same request with the same key after the time in Retry-After."
            }
        }
    }

    const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::InProgress | Self::RequestInvalid | Self::StoreFull | Self::StoreUnavailable
        )
    }

    const fn has_retry_after(self) -> bool {
        matches!(
            self,
            Self::InProgress | Self::StoreFull | Self::StoreUnavailable
        )
    }

    pub(super) fn problem(self, reuse: ReuseStatus, retry_after: Duration) -> Problem {
        let mut problem =
            Problem::new(self.status(reuse), self.code(), self.title()).detail(self.detail());
        if self.is_retryable() {
            problem = problem.retryable();
        }
        if self.has_retry_after() {
            problem = problem.retry_after(retry_after);
        }
        if let Self::ResultUnavailable(tombstone) = self {
            problem = problem
                .member("original_status", tombstone.status)
                .member("reason", tombstone.reason.as_str());
        }
        problem
    }
}
