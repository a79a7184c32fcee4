use std::{fmt, sync::Arc};

use http::{HeaderName, Method, Response};
use steadfast_core::{Body, Clock, MakeRejection, Operations, ProblemJson};
use steadfast_headers::{IDEMPOTENCY_KEY, IDEMPOTENT_REPLAYED, IdempotencyKey, KeyRules};
use tower_layer::Layer;

use super::{rejection::KeyRejection, service::SetIdempotencyKey};

/// Applies [`SetIdempotencyKey`] to a service.
///
/// It belongs **outside** the retry layer: one call, one key, however often it is sent. See the [crate docs](crate) for
/// an example.
///
/// | setting | default |
/// |---|---|
/// | methods | POST, PATCH |
/// | minted keys | UUIDv4, sent raw in `Idempotency-Key` |
/// | rules for the caller's own keys | [`KeyRules::LOOSE`] |
/// | operations | none declared |
/// | mark of a replay | `Idempotent-Replayed` with `1`, `true` or `?1` |
/// | refusals | `application/problem+json` |
#[derive(Clone, Debug)]
#[must_use]
pub struct IdempotencyKeyLayer {
    config: Arc<Config>,
}

#[derive(Clone)]
pub(super) struct Config {
    pub(super) methods: Vec<Method>,
    pub(super) kind: KeyKind,
    pub(super) quoted: bool,
    pub(super) only_where_listed: bool,
    pub(super) operations: Option<Operations>,
    pub(super) header: HeaderName,
    pub(super) replayed: HeaderName,
    pub(super) rules: KeyRules,
    pub(super) clock: Clock,
    pub(super) make_rejection: Arc<dyn MakeRejection>,
}

/// What a minted key looks like.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum KeyKind {
    /// Sorts by the time it was made.
    Ulid,
    /// Random. The default.
    #[default]
    UuidV4,
}

impl IdempotencyKeyLayer {
    /// Mints a key for each POST and PATCH that has none.
    pub fn new() -> Self {
        let config = Config {
            methods: vec![Method::POST, Method::PATCH],
            kind: KeyKind::default(),
            quoted: false,
            only_where_listed: false,
            operations: None,
            header: IDEMPOTENCY_KEY,
            replayed: IDEMPOTENT_REPLAYED,
            rules: KeyRules::LOOSE,
            clock: Clock::system(),
            make_rejection: Arc::new(ProblemJson::default()),
        };
        Self {
            config: Arc::new(config),
        }
    }

    fn set(mut self, set: impl FnOnce(&mut Config)) -> Self {
        set(Arc::make_mut(&mut self.config));
        self
    }

    /// Sets for which methods keys are minted (I01). Default: POST and PATCH.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.set(|config| config.methods = methods.into_iter().collect())
    }

    /// Sets what a minted key looks like. Default: UUIDv4.
    pub fn kind(self, kind: KeyKind) -> Self {
        self.set(|config| config.kind = kind)
    }

    /// Sends keys as RFC 9651 Strings, in double quotes. Default: raw, as nearly every API expects it.
    pub fn quoted(self) -> Self {
        self.set(|config| config.quoted = true)
    }

    /// Declares what a second identical request means, by method and path (R01). Default: nothing is declared, and a
    /// call that carries a key is repeatable.
    ///
    /// An [`OperationClass`](steadfast_core::facts::OperationClass) in a request's extensions overrides the table.
    pub fn operations(self, operations: Operations) -> Self {
        self.set(|config| config.operations = Some(operations))
    }

    /// Mints keys, and lets keys license retries, only where the operations list the class `RepeatableWithKey`.
    /// Default: everywhere.
    ///
    /// For APIs that honour keys on some routes: a key that the server ignores licenses nothing (I01). A caller's own
    /// key is sent everywhere all the same.
    pub fn only_where_listed(self) -> Self {
        self.set(|config| config.only_where_listed = true)
    }

    /// Sets the name of the header that carries the key. Default: `Idempotency-Key`.
    pub fn key_header(self, name: HeaderName) -> Self {
        self.set(|config| config.header = name)
    }

    /// Sets the name of the response header that marks a replay. Default: `Idempotent-Replayed`.
    pub fn replayed_header(self, name: HeaderName) -> Self {
        self.set(|config| config.replayed = name)
    }

    /// Sets what the caller's own keys may look like (I03). Default: [`KeyRules::LOOSE`].
    pub fn key_rules(self, rules: KeyRules) -> Self {
        self.set(|config| config.rules = rules)
    }

    /// Sets the clock that dates minted keys (I05). Default: the system's.
    pub fn clock(self, clock: Clock) -> Self {
        self.set(|config| config.clock = clock)
    }

    /// Sets who writes the answer to a bad key. Default: [`ProblemJson`].
    pub fn make_rejection(self, make: impl MakeRejection) -> Self {
        self.set(|config| config.make_rejection = Arc::new(make))
    }
}

impl Default for IdempotencyKeyLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for IdempotencyKeyLayer {
    type Service = SetIdempotencyKey<S>;

    fn layer(&self, inner: S) -> Self::Service {
        SetIdempotencyKey::new(inner, Arc::clone(&self.config))
    }
}

impl Config {
    pub(super) fn mint(&self) -> IdempotencyKey {
        match self.kind {
            KeyKind::Ulid => IdempotencyKey::ulid(),
            KeyKind::UuidV4 => IdempotencyKey::uuid_v4(),
        }
    }

    pub(super) fn reject<B: http_body::Body>(&self, rejection: KeyRejection) -> Response<Body<B>> {
        tracing::debug!(reason = %rejection, "call with a bad idempotency key refused");
        let mut response = rejection.problem().into_response(&*self.make_rejection);
        response.extensions_mut().insert(rejection);
        response
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("methods", &self.methods)
            .field("kind", &self.kind)
            .field("quoted", &self.quoted)
            .field("only_where_listed", &self.only_where_listed)
            .field("operations", &self.operations)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
