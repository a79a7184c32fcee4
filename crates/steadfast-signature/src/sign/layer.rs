use std::sync::Arc;

use steadfast_core::{Clock, MakeRejection};
use tower_layer::Layer;

use super::{config::Config, service::SignRequest};

/// Applies [`SignRequest`] to a service.
///
/// See the [crate docs](crate) for examples and for its place in a stack: inside retry, next to the client.
///
/// | setting | default |
/// |---|---|
/// | body | up to 1 MiB |
/// | equal signatures | never within one tick of the timestamp |
/// | refusals | `application/problem+json`, nothing is sent |
#[derive(Debug)]
#[must_use]
pub struct SignRequestLayer<Sc, K> {
    scheme: Arc<Sc>,
    keys: K,
    config: Arc<Config>,
}

impl<Sc, K> SignRequestLayer<Sc, K> {
    /// Signs in `scheme` with the key that `keys` gives.
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

    /// Sets up to how many bytes a body may have; a longer one is answered with 413, and nothing is sent. Default: 1 MiB.
    pub fn max_body(self, bytes: usize) -> Self {
        self.set(|config| config.max_body = bytes)
    }

    /// Sets the clock that makes the timestamps. Default: the system's.
    pub fn clock(self, clock: Clock) -> Self {
        self.set(|config| config.clock = clock)
    }

    /// Sends a request at once even if an equal one was signed in the same tick of the timestamp, and both carry the
    /// same signature. Default: it waits for the next tick, at most a second for most schemes.
    ///
    /// A server that takes each signature once refuses the second one. Schemes with a nonce never come to this, and
    /// those without a timestamp sign equal requests equally for ever.
    pub fn allow_equal_signatures(self) -> Self {
        self.set(|config| config.recent = None)
    }

    /// Sets who writes the answers to requests that are not sent. Default: [`ProblemJson`](steadfast_core::ProblemJson).
    pub fn make_rejection(self, make: impl MakeRejection) -> Self {
        self.set(|config| config.make_rejection = Arc::new(make))
    }
}

impl<Sc, K: Clone> Clone for SignRequestLayer<Sc, K> {
    fn clone(&self) -> Self {
        Self {
            scheme: Arc::clone(&self.scheme),
            keys: self.keys.clone(),
            config: Arc::clone(&self.config),
        }
    }
}

impl<S, Sc, K: Clone> Layer<S> for SignRequestLayer<Sc, K> {
    type Service = SignRequest<S, Sc, K>;

    fn layer(&self, inner: S) -> Self::Service {
        SignRequest::new(
            inner,
            Arc::clone(&self.scheme),
            self.keys.clone(),
            Arc::clone(&self.config),
        )
    }
}
