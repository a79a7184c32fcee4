use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use uuid::Uuid;

use super::{error::KeyError, secret::Secret};

/// The secrets of one key: one, and more while it is rotated (S04).
///
/// A signature is good if it is good with any of them. The first one signs.
#[derive(Clone)]
pub struct Secrets {
    secrets: Arc<[Secret]>,
}

impl Secrets {
    /// The most secrets a key may have: each costs a pass over the message.
    pub const MAX: usize = 4;

    /// Takes one to four secrets, the current one first.
    ///
    /// # Errors
    ///
    /// If there is none, or there are too many.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Result<Self, KeyError> {
        let secrets: Arc<[Secret]> = secrets.into_iter().take(Self::MAX + 1).collect();
        match secrets.len() {
            0 => Err(KeyError::NoSecret),
            1..=Self::MAX => Ok(Self { secrets }),
            _ => Err(KeyError::TooManySecrets),
        }
    }

    pub(crate) fn active(&self, now: SystemTime) -> impl Iterator<Item = &Secret> {
        self.secrets
            .iter()
            .filter(move |secret| secret.is_active(now))
    }

    /// What is computed for keys that are not known, so that they take as long as others: random, and its result is
    /// never used.
    pub(crate) fn dummy() -> &'static Self {
        static DUMMY: OnceLock<Secrets> = OnceLock::new();
        DUMMY.get_or_init(|| {
            let mut seed = [0; 32];
            seed[..16].copy_from_slice(Uuid::new_v4().as_bytes());
            seed[16..].copy_from_slice(Uuid::new_v4().as_bytes());
            let secret = Secret::from_bytes(seed).expect("32 bytes are not empty");
            // One of each kind: a key serves the schemes of one.
            #[cfg(feature = "ed25519")]
            let secrets = [secret, Secret::ed25519_private(&seed)];
            #[cfg(not(feature = "ed25519"))]
            let secrets = [secret];
            Self::new(secrets).expect("there is one, and no more than two")
        })
    }
}

impl From<Secret> for Secrets {
    fn from(secret: Secret) -> Self {
        Self {
            secrets: Arc::new([secret]),
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.secrets.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s04_a_key_has_one_to_four_secrets() {
        let secret = || Secret::from_bytes("0123456789abcdef").unwrap();
        let take = |count| Secrets::new(std::iter::repeat_with(secret).take(count)).map(|_| ());
        assert_eq!(take(0), Err(KeyError::NoSecret));
        assert_eq!(take(1), Ok(()));
        assert_eq!(take(4), Ok(()));
        assert_eq!(take(5), Err(KeyError::TooManySecrets));
    }
}
