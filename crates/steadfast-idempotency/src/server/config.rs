use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, request};
use steadfast_core::{Body, MakeRejection, ProblemJson};
use steadfast_headers::{IDEMPOTENCY_KEY, IDEMPOTENT_REPLAYED, IdempotencyKey, KeyRules};
use tokio_util::task::TaskTracker;

use super::{
    disposition::{ClassifyResponse, OnFailure},
    layer::ReuseStatus,
    record::StoredHeaders,
    rejection::Rejection,
    scope::Scope,
    timing::Timing,
};

/// What a layer and its services share.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) scope: Scope,
    pub(super) timing: Timing,
    pub(super) methods: Vec<Method>,
    pub(super) key_header: HeaderName,
    pub(super) key_rules: KeyRules,
    pub(super) require_key: bool,
    pub(super) reuse_status: ReuseStatus,
    pub(super) retry_after: Duration,
    pub(super) on_failure: OnFailure,
    pub(super) classify: Option<ClassifyResponse>,
    pub(super) content: Option<ContentFn>,
    pub(super) max_body: usize,
    pub(super) max_stored_body: usize,
    pub(super) stored_headers: StoredHeaders,
    pub(super) replayed: (HeaderName, HeaderValue),
    pub(super) make_rejection: Arc<dyn MakeRejection>,
    pub(super) run_without_store: bool,
    pub(super) tracker: TaskTracker,
}

/// Gives the part of a request's head and body that makes it the same request.
pub(super) type ContentFn =
    Arc<dyn for<'a> Fn(&request::Parts, &'a Bytes) -> Cow<'a, [u8]> + Send + Sync>;

impl Config {
    pub(super) fn new(scope: Scope) -> Self {
        Self {
            scope,
            timing: Timing::default(),
            methods: vec![Method::POST, Method::PATCH],
            key_header: IDEMPOTENCY_KEY,
            key_rules: KeyRules::DEFAULT,
            require_key: false,
            reuse_status: ReuseStatus::default(),
            retry_after: Duration::from_secs(1),
            on_failure: OnFailure::default(),
            classify: None,
            content: None,
            max_body: 1024 * 1024,
            max_stored_body: 1024 * 1024,
            stored_headers: StoredHeaders::default(),
            replayed: (IDEMPOTENT_REPLAYED, HeaderValue::from_static("1")),
            make_rejection: Arc::new(ProblemJson::default()),
            run_without_store: false,
            tracker: TaskTracker::new(),
        }
    }

    /// The key of a request that the layer is concerned with, or why it cannot be served. `None`: it goes by.
    pub(super) fn key_of(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Option<Result<IdempotencyKey, Rejection>> {
        if !self.methods.contains(method) {
            return None;
        }
        match self.key_rules.from_headers(headers, &self.key_header) {
            Ok(Some(key)) => Some(Ok(key)),
            Ok(None) => self.require_key.then_some(Err(Rejection::KeyMissing)),
            Err(error) => Some(Err(Rejection::KeyInvalid(error))),
        }
    }

    pub(super) fn reject<B: http_body::Body>(&self, rejection: Rejection) -> Response<Body<B>> {
        tracing::debug!(code = rejection.code(), "idempotent call refused");
        let problem = rejection.problem(self.reuse_status, self.retry_after);
        let mut response = problem.into_response(&*self.make_rejection);
        response.extensions_mut().insert(rejection);
        response
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("scope", &self.scope)
            .field("timing", &self.timing)
            .field("methods", &self.methods)
            .field("key_rules", &self.key_rules)
            .field("require_key", &self.require_key)
            .field("on_failure", &self.on_failure)
            .field("max_body", &self.max_body)
            .field("max_stored_body", &self.max_stored_body)
            .finish_non_exhaustive()
    }
}
