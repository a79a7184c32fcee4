use std::{convert::Infallible, error::Error, future::Future, sync::Arc};

use super::secrets::Secrets;

/// Finds the secrets of a key by its id.
///
/// A [`KeyRing`](crate::KeyRing) holds them in memory. Keys that live in a database are looked up by an implementation
/// of this trait, best behind [`CachedKeys`](crate::CachedKeys).
pub trait FindKey: Clone + Send + Sync + 'static {
    /// Why no answer could be had.
    type Error: Error + Send + Sync + 'static;

    /// Finds the secrets of `key_id`, which a sender wrote and nobody checked yet. `None` for a key that does not exist
    /// or was revoked.
    ///
    /// # Errors
    ///
    /// If it cannot be told whether there is such a key. The request is answered with 503.
    fn find(
        &self,
        key_id: &str,
    ) -> impl Future<Output = Result<Option<Secrets>, Self::Error>> + Send;
}

/// The error of keys in memory.
pub(crate) type NoError = Infallible;

impl<K: FindKey> FindKey for Arc<K> {
    type Error = K::Error;

    fn find(
        &self,
        key_id: &str,
    ) -> impl Future<Output = Result<Option<Secrets>, Self::Error>> + Send {
        K::find(self, key_id)
    }
}
