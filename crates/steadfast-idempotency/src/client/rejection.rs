use http::StatusCode;
use steadfast_core::Problem;
use steadfast_headers::KeyError;

/// Why a call was not sent. In the extensions of the 400 that answers it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyRejection {
    /// The key in the extensions and the one in the header are not the same.
    #[error("the key in the extensions and the key in the header differ")]
    Differs,
    /// The key breaks the rules, or stands there twice.
    #[error("the key is invalid: {0}")]
    Invalid(KeyError),
}

impl KeyRejection {
    pub(super) fn problem(self) -> Problem {
        let code = "idempotency_key_invalid";
        Problem::new(StatusCode::BAD_REQUEST, code, "Idempotency-Key is invalid")
            .detail(format!("Nothing was sent: {self}."))
    }
}
