use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    future::{Future, ready},
    sync::Arc,
};

use arc_swap::ArcSwap;

use super::{
    error::KeyError,
    find::{FindKey, NoError},
    secrets::Secrets,
};

/// The id of the key where the wire carries none.
pub const DEFAULT_KEY_ID: &str = "default";

/// Keys in memory, by id. They can be exchanged while requests are served.
///
/// A ring without keys refuses every request: nothing passes because there is nothing to check it with.
///
/// ```
/// use steadfast_signature::{HmacScheme, KeyRing, Secrets};
///
/// # fn main() -> Result<(), steadfast_signature::KeyError> {
/// let scheme = HmacScheme::github();
/// let ring = KeyRing::single(scheme.secret("It's a Secret to Everybody")?);
///
/// // Rotation: both are good until the sender has changed over.
/// let both = Secrets::new([scheme.secret("the new one")?, scheme.secret("It's a Secret to Everybody")?])?;
/// ring.replace([("default", both)])?;
/// # Ok(())
/// # }
/// ```
///
/// # Clone
///
/// Clones share the keys.
#[derive(Clone)]
pub struct KeyRing {
    keys: Arc<ArcSwap<Keys>>,
}

type Keys = HashMap<Box<str>, Secrets>;

impl KeyRing {
    /// Takes keys by id.
    ///
    /// # Errors
    ///
    /// If an id is empty or stands there twice.
    pub fn new<I: Into<Box<str>>>(
        keys: impl IntoIterator<Item = (I, Secrets)>,
    ) -> Result<Self, KeyError> {
        Ok(Self {
            keys: Arc::new(ArcSwap::from_pointee(collect(keys)?)),
        })
    }

    /// Takes the only key, under the id `default`: for schemes that carry no key id.
    #[must_use]
    pub fn single(secrets: impl Into<Secrets>) -> Self {
        let keys = HashMap::from([(Box::from(DEFAULT_KEY_ID), secrets.into())]);
        Self {
            keys: Arc::new(ArcSwap::from_pointee(keys)),
        }
    }

    /// Exchanges all keys at once. Requests that found their key before are still judged by it.
    ///
    /// # Errors
    ///
    /// If an id is empty or stands there twice; then nothing has changed.
    pub fn replace<I: Into<Box<str>>>(
        &self,
        keys: impl IntoIterator<Item = (I, Secrets)>,
    ) -> Result<(), KeyError> {
        self.keys.store(Arc::new(collect(keys)?));
        Ok(())
    }

    /// The secrets of a key.
    #[must_use]
    pub fn get(&self, key_id: &str) -> Option<Secrets> {
        self.keys.load().get(key_id).cloned()
    }
}

fn collect<I: Into<Box<str>>>(
    keys: impl IntoIterator<Item = (I, Secrets)>,
) -> Result<Keys, KeyError> {
    let mut collected = Keys::new();
    for (id, secrets) in keys {
        let id = id.into();
        if id.is_empty() {
            return Err(KeyError::NoId);
        }
        match collected.entry(id) {
            Entry::Occupied(_) => return Err(KeyError::RepeatedId),
            Entry::Vacant(entry) => entry.insert(secrets),
        };
    }
    Ok(collected)
}

impl FindKey for KeyRing {
    type Error = NoError;

    fn find(
        &self,
        key_id: &str,
    ) -> impl Future<Output = Result<Option<Secrets>, Self::Error>> + Send {
        ready(Ok(self.get(key_id)))
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing")
            .field("keys", &self.keys.load().len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    fn secrets() -> Secrets {
        Secret::from_bytes("0123456789abcdef").unwrap().into()
    }

    #[test]
    fn s04_keys_are_exchanged_under_their_readers() {
        let ring = KeyRing::new([("a", secrets())]).unwrap();
        let reader = ring.clone();
        ring.replace([("b", secrets())]).unwrap();
        assert!(reader.get("a").is_none());
        assert!(reader.get("b").is_some());
        assert_eq!(
            ring.replace([("c", secrets()), ("c", secrets())]),
            Err(KeyError::RepeatedId)
        );
        assert!(reader.get("b").is_some(), "nothing has changed");
        assert_eq!(KeyRing::new([("", secrets())]).unwrap_err(), KeyError::NoId);
    }

    #[test]
    fn debug_output_tells_how_many_keys_there_are() {
        let ring = KeyRing::new([("key_live_1", secrets())]).unwrap();
        assert_eq!(format!("{ring:?}"), "KeyRing { keys: 1 }");
    }
}
