use std::{
    error::Error,
    fmt,
    future::{Future, ready},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use steadfast_core::facts::CredentialGeneration;
use tokio::time::Instant;

use super::{find::NoError, ring::DEFAULT_KEY_ID, secret::Secret};

/// A secret and the id under which the server knows it.
#[derive(Clone, Debug)]
pub struct SigningKey {
    id: Arc<str>,
    secret: Secret,
}

impl SigningKey {
    /// A secret with its id.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>, secret: Secret) -> Self {
        Self {
            id: id.into(),
            secret,
        }
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The secret.
    #[must_use]
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }
}

impl From<Secret> for SigningKey {
    /// For schemes that carry no key id.
    fn from(secret: Secret) -> Self {
        Self::new(DEFAULT_KEY_ID, secret)
    }
}

/// Where a client's signing key comes from.
///
/// A [`SigningKey`] is a source of itself. [`RefreshingKeys`] fetches one, and fetches it anew when the server refuses it.
pub trait SigningKeys: Clone + Send + Sync + 'static {
    /// Why there is no key.
    type Error: Error + Send + Sync + 'static;

    /// The key to sign with, and its generation: another number means another key.
    ///
    /// # Errors
    ///
    /// If there is none. The request is not sent.
    fn current(
        &self,
    ) -> impl Future<Output = Result<(SigningKey, CredentialGeneration), Self::Error>> + Send;

    /// Hears that the server answered 401 to a request signed with the key of this generation. Must not block.
    fn refused(&self, generation: CredentialGeneration);
}

impl SigningKeys for SigningKey {
    type Error = NoError;

    fn current(
        &self,
    ) -> impl Future<Output = Result<(Self, CredentialGeneration), Self::Error>> + Send {
        ready(Ok((self.clone(), CredentialGeneration(0))))
    }

    fn refused(&self, _generation: CredentialGeneration) {}
}

/// A key that is fetched when it is first needed, and again after the server refused it.
///
/// However many requests get 401 together, the key is fetched once: the others wait for it. A key that was fetched less
/// than [`min_interval`](Self::min_interval) ago is kept, since a newer one would not be refused either.
///
/// # Cancellation
///
/// When the request that fetches is dropped, the next one that waits fetches.
///
/// # Clone
///
/// Clones share the key.
pub struct RefreshingKeys<F> {
    shared: Arc<Shared<F>>,
    min_interval: Duration,
}

struct Shared<F> {
    fetch: F,
    /// Held while fetching.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    key: Option<(SigningKey, Instant)>,
    generation: u64,
    refused: bool,
}

impl<F> RefreshingKeys<F> {
    /// Fetches with `fetch`.
    pub fn new<Fut, E>(fetch: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<SigningKey, E>> + Send,
        E: Error + Send + Sync + 'static,
    {
        Self {
            shared: Arc::new(Shared {
                fetch,
                turn: tokio::sync::Mutex::new(()),
                state: Mutex::default(),
            }),
            min_interval: Duration::from_secs(1),
        }
    }

    /// Sets how long a fetched key is kept even if it is refused. Default: 1 s.
    #[must_use]
    pub const fn min_interval(mut self, min_interval: Duration) -> Self {
        self.min_interval = min_interval;
        self
    }

    fn usable(&self) -> Option<(SigningKey, CredentialGeneration)> {
        let state = self.shared.state();
        let (key, fetched) = state.key.clone()?;
        if state.refused && fetched.elapsed() >= self.min_interval {
            return None;
        }
        Some((key, CredentialGeneration(state.generation)))
    }
}

impl<F> Shared<F> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F, Fut, E> SigningKeys for RefreshingKeys<F>
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<SigningKey, E>> + Send,
    E: Error + Send + Sync + 'static,
{
    type Error = E;

    async fn current(&self) -> Result<(SigningKey, CredentialGeneration), E> {
        if let Some(usable) = self.usable() {
            return Ok(usable);
        }
        let _turn = self.shared.turn.lock().await;
        // Somebody else may have fetched it meanwhile.
        if let Some(usable) = self.usable() {
            return Ok(usable);
        }
        let key = (self.shared.fetch)().await?;
        let mut state = self.shared.state();
        state.key = Some((key.clone(), Instant::now()));
        state.generation += 1;
        state.refused = false;
        Ok((key, CredentialGeneration(state.generation)))
    }

    fn refused(&self, generation: CredentialGeneration) {
        let mut state = self.shared.state();
        // A refusal of an earlier key says nothing of this one.
        if state.generation == generation.0 {
            state.refused = true;
        }
    }
}

impl<F> Clone for RefreshingKeys<F> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            min_interval: self.min_interval,
        }
    }
}

impl<F> fmt::Debug for RefreshingKeys<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefreshingKeys")
            .field("generation", &self.shared.state().generation)
            .finish_non_exhaustive()
    }
}
