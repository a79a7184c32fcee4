use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use steadfast_core::{Body, Clock, MakeRejection, OriginalUriFn, ProblemJson, original_uri};

use super::rejection::Rejection;
use crate::Reason;

/// What a layer and its services share.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) max_body: usize,
    pub(super) read_timeout: Duration,
    pub(super) lookup_timeout: Duration,
    pub(super) clock: Clock,
    pub(super) original_uri: OriginalUriFn,
    pub(super) key_id: Option<KeyIdFn>,
    pub(super) skip: Option<SkipFn>,
    pub(super) challenge: HeaderValue,
    pub(super) make_rejection: Arc<dyn MakeRejection>,
}

/// Names the key of a request that does not name it itself.
pub(super) type KeyIdFn = Arc<dyn Fn(&Parts) -> Option<String> + Send + Sync>;

/// Whether a request passes unverified.
pub(super) type SkipFn = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

impl Config {
    pub(super) fn new() -> Self {
        Self {
            max_body: 1024 * 1024,
            read_timeout: Duration::from_secs(30),
            lookup_timeout: Duration::from_secs(2),
            clock: Clock::system(),
            original_uri,
            key_id: None,
            skip: None,
            challenge: HeaderValue::from_static("Signature"),
            make_rejection: Arc::new(ProblemJson::default()),
        }
    }

    pub(super) fn skips(&self, head: &Parts) -> bool {
        self.skip.as_ref().is_some_and(|skip| skip(head))
    }

    /// What can be told before the body is read.
    pub(super) fn announces_too_much<B: http_body::Body>(&self, head: &Parts, body: &B) -> bool {
        let announced = head.headers.get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse().ok());
        let announced = announced.unwrap_or(0_u64).max(body.size_hint().lower());
        announced > self.max_body as u64
    }

    pub(super) fn reject<B: http_body::Body>(
        &self,
        scheme: &str,
        rejection: Rejection,
    ) -> Response<Body<B>> {
        tracing::debug!(scheme, reason = rejection.as_str(), "signature refused");
        let mut response = rejection.problem().into_response(&*self.make_rejection);
        if response.status() == StatusCode::UNAUTHORIZED {
            // RFC 9110 §15.5.2: a 401 names at least one way to do better.
            let headers = response.headers_mut();
            headers.insert(header::WWW_AUTHENTICATE, self.challenge.clone());
        }
        response.extensions_mut().insert(rejection);
        response
    }
}

impl From<Reason> for Rejection {
    fn from(reason: Reason) -> Self {
        Self::Unauthorized(reason)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("max_body", &self.max_body)
            .field("read_timeout", &self.read_timeout)
            .field("lookup_timeout", &self.lookup_timeout)
            .field("clock", &self.clock)
            .field("skips", &self.skip.is_some())
            .finish_non_exhaustive()
    }
}
