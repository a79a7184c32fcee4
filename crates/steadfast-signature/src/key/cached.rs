use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{find::FindKey, secrets::Secrets};

/// Remembers which secrets a key has, and which keys do not exist.
///
/// | setting | default |
/// |---|---|
/// | a known key | 60 s: a revoked one is good for so long |
/// | an unknown key | 5 s |
///
/// Errors are not remembered. At its capacity something else is forgotten, keys that do not exist first: this is a cache,
/// and nothing relies on what it holds.
///
/// # Clone
///
/// Clones share what is remembered.
#[derive(Clone)]
pub struct CachedKeys<K> {
    keys: K,
    capacity: usize,
    known: Duration,
    unknown: Duration,
    entries: Arc<Mutex<HashMap<Box<str>, Entry>>>,
}

#[derive(Clone)]
struct Entry {
    secrets: Option<Secrets>,
    until: Instant,
}

/// Ids longer than this are looked up each time: they are nobody's.
const MAX_ID: usize = 256;

impl<K> CachedKeys<K> {
    /// Remembers up to `capacity` keys of `keys`.
    pub fn new(keys: K, capacity: usize) -> Self {
        Self {
            keys,
            capacity,
            known: Duration::from_secs(60),
            unknown: Duration::from_secs(5),
            entries: Arc::default(),
        }
    }

    /// Sets how long a key that exists is remembered. Default: 60 s.
    #[must_use]
    pub const fn known_for(mut self, known: Duration) -> Self {
        self.known = known;
        self
    }

    /// Sets how long it is remembered that a key does not exist. Default: 5 s.
    #[must_use]
    pub const fn unknown_for(mut self, unknown: Duration) -> Self {
        self.unknown = unknown;
        self
    }

    /// Forgets a key, when it was rotated or revoked.
    pub fn forget(&self, key_id: &str) {
        self.entries().remove(key_id);
    }

    fn remembered(&self, key_id: &str) -> Option<Entry> {
        let entries = self.entries();
        let entry = entries.get(key_id)?;
        (Instant::now() < entry.until).then(|| entry.clone())
    }

    fn remember(&self, key_id: &str, secrets: Option<Secrets>) {
        if key_id.len() > MAX_ID || self.capacity == 0 {
            return;
        }
        let now = Instant::now();
        let span = if secrets.is_some() {
            self.known
        } else {
            self.unknown
        };
        let mut entries = self.entries();
        if entries.len() >= self.capacity && !entries.contains_key(key_id) {
            entries.retain(|_, entry| now < entry.until);
            // What does not exist makes room; for it nothing else does.
            if entries.len() >= self.capacity {
                let unknown = entries.iter().find(|(_, entry)| entry.secrets.is_none());
                let victim =
                    unknown.or_else(|| entries.iter().next().filter(|_| secrets.is_some()));
                let Some(victim) = victim.map(|(id, _)| id.clone()) else {
                    return;
                };
                entries.remove(&victim);
            }
        }
        let until = now + span;
        entries.insert(key_id.into(), Entry { secrets, until });
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Box<str>, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: FindKey> FindKey for CachedKeys<K> {
    type Error = K::Error;

    async fn find(&self, key_id: &str) -> Result<Option<Secrets>, Self::Error> {
        if let Some(entry) = self.remembered(key_id) {
            return Ok(entry.secrets);
        }
        let secrets = self.keys.find(key_id).await?;
        self.remember(key_id, secrets.clone());
        Ok(secrets)
    }
}

impl<K> fmt::Debug for CachedKeys<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedKeys")
            .field("capacity", &self.capacity)
            .field("entries", &self.entries().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Secret;

    #[derive(Clone, Debug, Default)]
    struct Table(Arc<AtomicUsize>);

    #[derive(Debug, thiserror::Error)]
    #[error("down")]
    struct Down;

    impl FindKey for Table {
        type Error = Down;

        async fn find(&self, key_id: &str) -> Result<Option<Secrets>, Down> {
            self.0.fetch_add(1, Ordering::Relaxed);
            match key_id {
                "down" => Err(Down),
                id if id.starts_with("key") => {
                    Ok(Some(Secret::from_bytes("secret").unwrap().into()))
                }
                _ => Ok(None),
            }
        }
    }

    async fn looked_up(keys: &CachedKeys<Table>, key_id: &str) -> bool {
        let before = keys.keys.0.load(Ordering::Relaxed);
        drop(keys.find(key_id).await);
        keys.keys.0.load(Ordering::Relaxed) > before
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_looked_up_once_in_a_while() {
        let keys = CachedKeys::new(Table::default(), 10);
        for (key_id, seconds) in [("key", 60), ("nobody", 5)] {
            assert!(looked_up(&keys, key_id).await);
            assert!(!looked_up(&keys, key_id).await);
            tokio::time::advance(Duration::from_secs(seconds)).await;
            assert!(looked_up(&keys, key_id).await);
            keys.forget(key_id);
            assert!(looked_up(&keys, key_id).await);
        }
        assert!(looked_up(&keys, "down").await);
        assert!(looked_up(&keys, "down").await, "an error is not remembered");
    }

    #[tokio::test(start_paused = true)]
    async fn keys_that_do_not_exist_crowd_out_none_that_do() {
        let keys = CachedKeys::new(Table::default(), 4);
        for known in ["key1", "key2"] {
            looked_up(&keys, known).await;
        }
        for unknown in 0..100 {
            looked_up(&keys, &format!("x{unknown}")).await;
            assert!(keys.entries().len() <= 4);
        }
        for known in ["key1", "key2"] {
            assert!(!looked_up(&keys, known).await);
        }
        for known in 0..100 {
            looked_up(&keys, &format!("key{known}")).await;
            assert!(keys.entries().len() <= 4);
        }
    }
}
