use std::{fmt, sync::Arc};

use http::Response;
use steadfast_core::{Body, Clock, MakeRejection, ProblemJson};

use super::{recent::Recent, rejection::SignRejection};

/// What a layer and its services share.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) max_body: usize,
    pub(super) clock: Clock,
    pub(super) recent: Option<Arc<Recent>>,
    pub(super) make_rejection: Arc<dyn MakeRejection>,
}

impl Config {
    pub(super) fn new() -> Self {
        Self {
            max_body: 1024 * 1024,
            clock: Clock::system(),
            recent: Some(Arc::default()),
            make_rejection: Arc::new(ProblemJson::default()),
        }
    }

    pub(super) fn reject<B: http_body::Body>(&self, rejection: SignRejection) -> Response<Body<B>> {
        tracing::debug!(code = rejection.code(), "request not signed, not sent");
        let mut response = rejection.problem().into_response(&*self.make_rejection);
        response.extensions_mut().insert(rejection);
        response
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("max_body", &self.max_body)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
