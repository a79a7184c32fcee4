use std::{sync::Arc, time::Duration};

use http::{HeaderValue, request::Parts};
use steadfast_core::{Clock, MakeRejection, OriginalUriFn};
use tower_layer::Layer;

use super::{config::Config, service::VerifySignature};

/// Applies [`VerifySignature`] to a service.
///
/// See the [crate docs](crate) for examples and for its place in a stack.
///
/// | setting | default |
/// |---|---|
/// | body | up to 1 MiB, within 30 s and while the timestamp is fresh |
/// | key lookup | within 2 s |
/// | key id | the one the scheme carries, else `default` |
/// | unsigned requests | none passes |
/// | challenge | `WWW-Authenticate: Signature` |
/// | refusals | `application/problem+json` |
#[derive(Debug)]
#[must_use]
pub struct SignatureVerifyLayer<Sc, K> {
    scheme: Arc<Sc>,
    keys: K,
    config: Arc<Config>,
}

impl<Sc, K> SignatureVerifyLayer<Sc, K> {
    /// Verifies in `scheme` with the secrets that `keys` finds. There is no way to have it pass requests for want of a
    /// secret.
    pub fn new(scheme: Sc, keys: K) -> Self {
        Self {
            scheme: Arc::new(scheme),
            keys,
            config: Arc::new(Config::new()),
        }
    }

    fn set(mut self, set: impl FnOnce(&mut Config)) -> Self {
        set(Arc::make_mut(&mut self.config));
        self
    }

    /// Sets up to how many bytes a body may have; longer ones get 413. Default: 1 MiB.
    pub fn max_body(self, bytes: usize) -> Self {
        self.set(|config| config.max_body = bytes)
    }

    /// Sets how long the body may take; a slower one gets 408. A timestamp that grows stale meanwhile is refused at
    /// that moment. Default: 30 s.
    pub fn read_timeout(self, timeout: Duration) -> Self {
        self.set(|config| config.read_timeout = timeout)
    }

    /// Sets how long the lookup of a key may take; a slower one gets 503. Default: 2 s.
    pub fn lookup_timeout(self, timeout: Duration) -> Self {
        self.set(|config| config.lookup_timeout = timeout)
    }

    /// Sets the clock that judges timestamps. Default: the system's.
    pub fn clock(self, clock: Clock) -> Self {
        self.set(|config| config.clock = clock)
    }

    /// Names the key of a request whose scheme carries no key id: by its path, or by what an outer layer found. Requests
    /// for which it is `None` are refused. Default: `default`.
    pub fn key_id<F>(self, key_id: F) -> Self
    where
        F: Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    {
        self.set(|config| config.key_id = Some(Arc::new(key_id)))
    }

    /// Lets requests pass **unverified** where `skip` says so, for handshakes that nobody signs. They carry no
    /// [`Verified`](steadfast_core::facts::Verified). Default: none.
    pub fn skip_when<F>(self, skip: F) -> Self
    where
        F: Fn(&Parts) -> bool + Send + Sync + 'static,
    {
        self.set(|config| config.skip = Some(Arc::new(skip)))
    }

    /// Sets how the URI is found as the client sent it. Default: [`original_uri`](steadfast_core::original_uri).
    pub fn original_uri(self, original_uri: OriginalUriFn) -> Self {
        self.set(|config| config.original_uri = original_uri)
    }

    /// Sets the value of `WWW-Authenticate` in a 401. Default: `Signature`.
    pub fn challenge(self, challenge: HeaderValue) -> Self {
        self.set(|config| config.challenge = challenge)
    }

    /// Sets who writes the refusals. Default: [`ProblemJson`](steadfast_core::ProblemJson).
    pub fn make_rejection(self, make: impl MakeRejection) -> Self {
        self.set(|config| config.make_rejection = Arc::new(make))
    }
}

impl<Sc, K: Clone> Clone for SignatureVerifyLayer<Sc, K> {
    fn clone(&self) -> Self {
        Self {
            scheme: Arc::clone(&self.scheme),
            keys: self.keys.clone(),
            config: Arc::clone(&self.config),
        }
    }
}

impl<S, Sc, K: Clone> Layer<S> for SignatureVerifyLayer<Sc, K> {
    type Service = VerifySignature<S, Sc, K>;

    fn layer(&self, inner: S) -> Self::Service {
        VerifySignature::new(
            inner,
            Arc::clone(&self.scheme),
            self.keys.clone(),
            Arc::clone(&self.config),
        )
    }
}
