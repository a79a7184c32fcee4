use std::sync::Arc;

use http::{StatusCode, response};

/// What becomes of the key when the handler has answered.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Disposition {
    /// Whether the operation was done is unknown: further calls with the key get 409 for the ttl.
    Hold,
    /// The operation was not done: the key is free, and the next call runs.
    Release,
    /// The operation is done: the answer is stored and replayed.
    Store,
}

/// What a failed run means: a panic, an error of the service, or a status.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum OnFailure {
    /// It may have had its effect all the same: 408, 5xx, panics and errors block the key for the ttl. Other statuses
    /// that are not 2xx free it.
    Hold,
    /// It had no effect: every status that is not 2xx, every panic and every error frees the key. The default.
    ///
    /// Right where a handler undoes what it did before it fails, as one in a transaction does.
    #[default]
    Release,
}

impl OnFailure {
    pub(super) fn of_status(self, status: StatusCode) -> Disposition {
        let unknown = status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT;
        match self {
            _ if status.is_success() => Disposition::Store,
            Self::Hold if unknown => Disposition::Hold,
            Self::Hold | Self::Release => Disposition::Release,
        }
    }

    pub(super) const fn of_crash(self) -> Disposition {
        match self {
            Self::Hold => Disposition::Hold,
            Self::Release => Disposition::Release,
        }
    }
}

/// Put into a response's extensions by a handler, it keeps the answer out of the store. The operation is done all the
/// same: a repeat gets 409, never a second run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "handlers construct it")]
pub struct DoNotStore;

pub(super) type ClassifyResponse = Arc<dyn Fn(&response::Parts) -> Disposition + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i12_only_success_is_stored() {
        for on_failure in [OnFailure::Hold, OnFailure::Release] {
            for status in [200, 201, 204, 299] {
                let status = StatusCode::from_u16(status).unwrap();
                assert_eq!(on_failure.of_status(status), Disposition::Store);
            }
            for status in [304, 400, 404, 409, 429] {
                let status = StatusCode::from_u16(status).unwrap();
                assert_eq!(on_failure.of_status(status), Disposition::Release);
            }
        }
    }

    #[test]
    fn d7_strict_means_that_an_unknown_outcome_blocks_the_key() {
        for status in [408, 500, 503, 504] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(OnFailure::Hold.of_status(status), Disposition::Hold);
            assert_eq!(OnFailure::Release.of_status(status), Disposition::Release);
        }
        assert_eq!(OnFailure::Hold.of_crash(), Disposition::Hold);
        assert_eq!(OnFailure::Release.of_crash(), Disposition::Release);
    }
}
