use http::{Response, StatusCode};
use steadfast_core::{Body, MakeRejection, Problem};

/// Why the layer answered itself, with a 504. In the response's extensions.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Rejection {
    /// The last attempt had no answer in time.
    AttemptTimeout,
    /// The deadline of the whole call passed while an attempt ran.
    Deadline,
}

impl Rejection {
    /// The answer, which a call that may be repeated is told to be retryable.
    pub(crate) fn into_response<B: http_body::Body>(
        self,
        make: &dyn MakeRejection,
        is_repeatable: bool,
    ) -> Response<Body<B>> {
        let (code, title) = match self {
            Self::AttemptTimeout => (
                "attempt_timeout",
                "No response within the attempt's timeout",
            ),
            Self::Deadline => ("deadline_passed", "No response within the call's deadline"),
        };
        let mut problem = Problem::new(StatusCode::GATEWAY_TIMEOUT, code, title);
        if is_repeatable {
            problem = problem.retryable();
        }
        let mut response = problem.into_response(make);
        response.extensions_mut().insert(self);
        response
    }
}
