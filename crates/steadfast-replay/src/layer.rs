use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Response, header, request::Parts};
use steadfast_core::{
    Body, KeyFrom, MakeRejection, OriginalUriFn, Problem, ProblemJson, original_uri,
};
use tokio_util::task::TaskTracker;
use tower_layer::Layer;

use crate::{drain::Drain, rejection::Rejection, service::ReplayGuard};

/// Applies [`ReplayGuard`] to a service, in one of two modes: [`one_shot`](ReplayGuardLayer::one_shot) for requests that
/// are signed afresh each time, [`events`](ReplayGuardLayer::events) for deliveries that are repeated until they are
/// acknowledged.
///
/// See the [crate docs](crate) for examples and defaults.
#[derive(Clone, Debug)]
#[must_use]
pub struct ReplayGuardLayer<St, M> {
    store: St,
    config: Arc<Config<M>>,
}

/// The mode in which a signed request is good once. Made by [`ReplayGuardLayer::one_shot`].
#[derive(Clone, Default)]
pub struct OneShot {
    pub(crate) scope: Option<Arc<dyn KeyFrom>>,
    pub(crate) undated: Option<Duration>,
}

impl fmt::Debug for OneShot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneShot")
            .field("scoped", &self.scope.is_some())
            .field("undated", &self.undated)
            .finish()
    }
}

/// The mode in which an event is processed once. Made by [`ReplayGuardLayer::events`].
#[derive(Clone)]
pub struct Events {
    pub(crate) source: Option<Arc<dyn KeyFrom>>,
    pub(crate) original: OriginalUriFn,
    pub(crate) trust_unsigned_ids: bool,
    pub(crate) lease: Duration,
    pub(crate) retention: Duration,
    pub(crate) duplicate: (HeaderName, HeaderValue),
    pub(crate) tracker: TaskTracker,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            source: None,
            original: original_uri,
            trust_unsigned_ids: false,
            lease: Duration::from_secs(30),
            retention: Duration::from_secs(72 * 60 * 60),
            duplicate: (
                HeaderName::from_static("event-duplicate"),
                HeaderValue::from_static("1"),
            ),
            tracker: TaskTracker::new(),
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("source_given", &self.source.is_some())
            .field("trust_unsigned_ids", &self.trust_unsigned_ids)
            .field("lease", &self.lease)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}

/// What a layer and its services share.
#[derive(Clone)]
pub(crate) struct Config<M> {
    pub(crate) mode: M,
    pub(crate) skip: Option<SkipFn>,
    pub(crate) store_timeout: Duration,
    pub(crate) retry_after: Duration,
    pub(crate) challenge: HeaderValue,
    /// `None`: problems, but for the one answer whose text is given (G01).
    pub(crate) make_rejection: Option<Arc<dyn MakeRejection>>,
}

/// Longer than anything lasts, and short enough to be added to any instant.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

type SkipFn = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

impl<M> Config<M> {
    pub(crate) fn skips(&self, parts: &Parts) -> bool {
        self.skip.as_ref().is_some_and(|skip| skip(parts))
    }

    pub(crate) fn reject<B: http_body::Body>(&self, rejection: Rejection) -> Response<Body<B>> {
        tracing::debug!(code = rejection.code(), "signed request refused");
        let problem = rejection.problem(self.retry_after);
        let mut response = match &self.make_rejection {
            Some(make) => problem.into_response(&**make),
            None if rejection == Rejection::Replayed => plain(&problem),
            None => problem.into_response(&ProblemJson::default()),
        };
        if rejection.is_unauthorized() {
            // RFC 9110 §15.5.2: a 401 has a challenge.
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, self.challenge.clone());
        }
        response.extensions_mut().insert(rejection);
        response
    }
}

fn plain<B: http_body::Body>(problem: &Problem) -> Response<Body<B>> {
    let text = problem.detail_text().unwrap_or(problem.title());
    let mut response = Response::new(Body::full(text.to_owned().into()));
    *response.status_mut() = problem.status();
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

impl<M: fmt::Debug> fmt::Debug for Config<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("mode", &self.mode)
            .field("skips", &self.skip.is_some())
            .field("store_timeout", &self.store_timeout)
            .field("retry_after", &self.retry_after)
            .finish_non_exhaustive()
    }
}

impl<St, M: Clone> ReplayGuardLayer<St, M> {
    fn new(store: St, mode: M) -> Self {
        Self {
            store,
            config: Arc::new(Config {
                mode,
                skip: None,
                store_timeout: Duration::from_secs(2),
                retry_after: Duration::from_secs(1),
                challenge: HeaderValue::from_static("Signature"),
                make_rejection: None,
            }),
        }
    }

    fn set(mut self, set: impl FnOnce(&mut Config<M>)) -> Self {
        set(Arc::make_mut(&mut self.config));
        self
    }

    /// Lets requests through unguarded for which `skip` says so: handshakes that nobody signs. Default: none.
    ///
    /// What it lets through must have no effect that could be doubled.
    pub fn skip_when(self, skip: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.set(|config| config.skip = Some(Arc::new(skip)))
    }

    /// Sets how long each step of the store may take. Default: 2 s.
    pub fn store_timeout(self, timeout: Duration) -> Self {
        self.set(|config| config.store_timeout = timeout)
    }

    /// Sets what `Retry-After` asks for in refusals that time cures. Default: 1 s.
    pub fn retry_after(self, wait: Duration) -> Self {
        self.set(|config| config.retry_after = wait)
    }

    /// Sets what `WWW-Authenticate` says in a 401. Default: `Signature`.
    pub fn challenge(self, challenge: HeaderValue) -> Self {
        self.set(|config| config.challenge = challenge)
    }

    /// Sets who writes the refusals. Default: [`ProblemJson`], and the plain text `Request signature has already been
    /// used` for the one that is named so (G01).
    pub fn make_rejection(self, make: impl MakeRejection) -> Self {
        self.set(|config| config.make_rejection = Some(Arc::new(make)))
    }
}

impl<St> ReplayGuardLayer<St, OneShot> {
    /// Takes each signed request once (G01). It is remembered before the handler runs, and stays so whatever the handler
    /// does: the client signs its next attempt anew.
    pub fn one_shot(store: St) -> Self {
        Self::new(store, OneShot::default())
    }

    /// Sets within which bounds a signature is good once: a tenant, or a route. Default: all that share the store.
    ///
    /// Needed where keys of two tenants can have one id. A route makes a signature that does not cover the path good
    /// once on each of the routes.
    pub fn scope(self, scope: impl KeyFrom) -> Self {
        self.set(|config| config.mode.scope = Some(Arc::new(scope)))
    }

    /// Accepts schemes that sign no timestamp, and remembers their requests for `retention`. Default: they are refused.
    ///
    /// What is captured can be replayed after the retention.
    pub fn insecure_retain_undated(self, retention: Duration) -> Self {
        self.set(|config| config.mode.undated = Some(retention))
    }
}

impl<St> ReplayGuardLayer<St, Events> {
    /// Processes each event once (G03, G04): the handler's 2xx makes it done, anything else leaves it to the
    /// redelivery.
    pub fn events(store: St) -> Self {
        Self::new(store, Events::default())
    }

    /// Sets whose ids are ids of one sender. Default: the scheme and the full path, decoded.
    ///
    /// Needed where senders with keys of their own share a path: by default the events of one are duplicates of those
    /// of another with the same id.
    pub fn source(self, source: impl KeyFrom) -> Self {
        self.set(|config| config.mode.source = Some(Arc::new(source)))
    }

    /// Sets where the URI as the sender sent it is read. Default: [`original_uri`], which knows axum's nested routers.
    pub fn original_uri(self, original: OriginalUriFn) -> Self {
        self.set(|config| config.mode.original = original)
    }

    /// Knows events by their ids alone, though no signature covers them. Default: the id or the body, whichever was
    /// seen.
    ///
    /// For senders whose distinct events can have the same body. Who captures a delivery can send it again under
    /// another id.
    pub fn trust_unsigned_ids(self) -> Self {
        self.set(|config| config.mode.trust_unsigned_ids = true)
    }

    /// Sets how long an event stays claimed when the process that runs it is killed. Renewed every third of it while the
    /// handler runs. Under 3 ms counts as 3 ms, over a hundred years as a hundred years. Default: 30 s.
    pub fn lease(self, lease: Duration) -> Self {
        let lease = lease.clamp(Duration::from_millis(3), CENTURY);
        self.set(|config| config.mode.lease = lease)
    }

    /// Sets how long a processed event is remembered. Over a hundred years counts as a hundred years. Default: 72 h.
    pub fn retention(self, retention: Duration) -> Self {
        self.set(|config| config.mode.retention = retention.min(CENTURY))
    }

    /// Sets the header that marks the 200 to a duplicate. Default: `Event-Duplicate: 1`.
    pub fn duplicate_header(self, name: HeaderName, value: HeaderValue) -> Self {
        self.set(|config| config.mode.duplicate = (name, value))
    }

    /// A handle to wait for events in work at shutdown. Layers made from this one by setters share it.
    #[must_use]
    pub fn drain(&self) -> Drain {
        Drain::new(self.config.mode.tracker.clone())
    }
}

impl<S, St: Clone, M> Layer<S> for ReplayGuardLayer<St, M> {
    type Service = ReplayGuard<S, St, M>;

    fn layer(&self, inner: S) -> Self::Service {
        ReplayGuard::new(inner, self.store.clone(), Arc::clone(&self.config))
    }
}
