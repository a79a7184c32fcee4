use std::{borrow::Cow, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, request, response};
use steadfast_core::MakeRejection;
use steadfast_headers::KeyRules;
use tower_layer::Layer;

use super::{
    config::Config,
    disposition::{Disposition, OnFailure},
    drain::Drain,
    record::StoredHeaders,
    scope::Scope,
    service::Idempotency,
    timing::Timing,
};

/// Applies [`Idempotency`] to a service.
///
/// See the [crate docs](crate) for examples and for its place in a stack.
///
/// | setting | default |
/// |---|---|
/// | methods | POST, PATCH |
/// | key | optional; up to 64 of `A-Z a-z 0-9 _ -`, raw or quoted, in `Idempotency-Key` |
/// | timing | lease 30 s, ttl 24 h, no waiting, 2 s for each step of the store |
/// | failures | free the key |
/// | reused key | 422 |
/// | request body | up to 1 MiB |
/// | stored response body | up to 1 MiB |
/// | mark of a replay | `Idempotent-Replayed: 1` |
/// | refusals | `application/problem+json` |
#[derive(Clone, Debug)]
#[must_use]
pub struct IdempotencyLayer<St> {
    store: St,
    config: Arc<Config>,
}

/// The status of the answer to a key that was used with a different request (I09).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ReuseStatus {
    /// 400.
    BadRequest,
    /// 422. The default.
    #[default]
    UnprocessableContent,
}

impl ReuseStatus {
    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::UnprocessableContent => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }
}

impl<St> IdempotencyLayer<St> {
    /// Keeps claims and answers in `store`, and tells keys apart by `scope`.
    ///
    /// Layers that share a store never answer for each other's paths, since the path is part of the scope. The host is
    /// not: servers of several hosts that share a store tell them apart by tenant or endpoint. Applied twice on one
    /// path with one store, the inner layer meets the claim of the outer one, and every call gets 409.
    pub fn new(store: St, scope: Scope) -> Self {
        Self {
            store,
            config: Arc::new(Config::new(scope)),
        }
    }

    fn set(mut self, set: impl FnOnce(&mut Config)) -> Self {
        set(Arc::make_mut(&mut self.config));
        self
    }

    /// Sets which methods are covered. All others pass through untouched. Default: POST and PATCH.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.set(|config| config.methods = methods.into_iter().collect())
    }

    /// Refuses covered requests without a key (I06). Default: they pass through.
    pub fn require_key(self) -> Self {
        self.set(|config| config.require_key = true)
    }

    /// Sets the name of the header that carries the key. Default: `Idempotency-Key`.
    pub fn key_header(self, name: HeaderName) -> Self {
        self.set(|config| config.key_header = name)
    }

    /// Sets what a key looks like (I07). Default: [`KeyRules::DEFAULT`].
    pub fn key_rules(self, rules: KeyRules) -> Self {
        self.set(|config| config.key_rules = rules)
    }

    /// Sets how long claims and answers last. Default: [`Timing::default`].
    pub fn timing(self, timing: Timing) -> Self {
        self.set(|config| config.timing = timing)
    }

    /// Sets the status of the answer to a key that was used with a different request (I09). Default: 422.
    pub fn reuse_status(self, status: ReuseStatus) -> Self {
        self.set(|config| config.reuse_status = status)
    }

    /// Sets what `Retry-After` asks for in refusals that time cures. Default: 1 s.
    pub fn retry_after(self, wait: Duration) -> Self {
        self.set(|config| config.retry_after = wait)
    }

    /// Sets what a failed run means (I12). Default: [`OnFailure::Release`].
    pub fn on_failure(self, on_failure: OnFailure) -> Self {
        self.set(|config| config.on_failure = on_failure)
    }

    /// Decides from the head of each response what becomes of the key. Default: 2xx is stored, and everything else is
    /// as [`on_failure`](Self::on_failure) says.
    pub fn classify_response<F>(self, classify: F) -> Self
    where
        F: Fn(&response::Parts) -> Disposition + Send + Sync + 'static,
    {
        self.set(|config| config.classify = Some(Arc::new(classify)))
    }

    /// Sets what of head and body makes two requests with one key the same. Default: the bytes of the body.
    ///
    /// Method, endpoint, path and query always count. Use it to canonicalise JSON, or to add headers that change what
    /// is asked for. It runs on every covered request, before the key is claimed.
    pub fn content<F>(self, content: F) -> Self
    where
        F: for<'a> Fn(&request::Parts, &'a Bytes) -> Cow<'a, [u8]> + Send + Sync + 'static,
    {
        self.set(|config| config.content = Some(Arc::new(content)))
    }

    /// Sets up to how many bytes a covered request's body may have; longer ones get 413. Default: 1 MiB.
    pub fn max_body(self, bytes: usize) -> Self {
        self.set(|config| config.max_body = bytes)
    }

    /// Sets up to how many bytes of body are stored. A longer answer streams to its client, and a repeat gets 409
    /// instead of a replay, never a second run. Default: 1 MiB.
    pub fn max_stored_body(self, bytes: usize) -> Self {
        self.set(|config| config.max_stored_body = bytes)
    }

    /// Sets which response headers are stored. Default: [`StoredHeaders::all`].
    pub fn stored_headers(self, headers: StoredHeaders) -> Self {
        self.set(|config| config.stored_headers = headers)
    }

    /// Sets the header that marks a replay. Default: `Idempotent-Replayed: 1`.
    pub fn replayed_header(self, name: HeaderName, value: HeaderValue) -> Self {
        self.set(|config| config.replayed = (name, value))
    }

    /// Sets who writes the refusals. Default: [`ProblemJson`](steadfast_core::ProblemJson).
    pub fn make_rejection(self, make: impl MakeRejection) -> Self {
        self.set(|config| config.make_rejection = Arc::new(make))
    }

    /// Runs the handler **without any protection** while the store does not answer, and marks the response with
    /// `Idempotency-Status: bypassed`. Default: 503, and nothing runs.
    ///
    /// A repeat then has a second effect.
    pub fn insecure_run_without_store(self) -> Self {
        self.set(|config| config.run_without_store = true)
    }

    /// A handle to wait for running calls at shutdown. Layers made from this one by setters share it.
    #[must_use]
    pub fn drain(&self) -> Drain {
        Drain::new(self.config.tracker.clone())
    }
}

impl<S, St: Clone> Layer<S> for IdempotencyLayer<St> {
    type Service = Idempotency<S, St>;

    fn layer(&self, inner: S) -> Self::Service {
        Idempotency::new(inner, self.store.clone(), Arc::clone(&self.config))
    }
}
