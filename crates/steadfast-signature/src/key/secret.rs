use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use hmac::{Hmac, KeyInit as _};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use zeroize::Zeroizing;

use super::{codec::KeyCodec, error::KeyError};
use crate::algorithm::{Algorithm, Running, token_digest};

/// What a signature is made or checked with.
///
/// The keyed state of a MAC is computed at its first use and copied for each message. Memory is cleared when the last
/// copy is dropped.
///
/// # Clone
///
/// Shares the bytes.
#[derive(Clone)]
pub struct Secret {
    material: Arc<Material>,
    not_after: Option<SystemTime>,
}

enum Material {
    Symmetric(Box<Symmetric>),
    #[cfg(feature = "ed25519")]
    Private(Box<ed25519_dalek::SigningKey>),
    #[cfg(feature = "ed25519")]
    Public(Box<ed25519_dalek::VerifyingKey>),
}

struct Symmetric {
    bytes: Zeroizing<Vec<u8>>,
    hmac_sha1: OnceLock<Hmac<Sha1>>,
    hmac_sha256: OnceLock<Hmac<Sha256>>,
    hmac_sha512: OnceLock<Hmac<Sha512>>,
}

/// Secrets shorter than this are warned of.
const SHORT: usize = 16;

impl Secret {
    /// Decodes the text of a secret.
    ///
    /// Schemes know how theirs are written: see [`HmacScheme::secret`](crate::HmacScheme::secret).
    ///
    /// # Errors
    ///
    /// If the secret is empty or all zeros, or not of the form that `codec` names.
    pub fn parse(codec: KeyCodec, text: &str) -> Result<Self, KeyError> {
        #[cfg(feature = "ed25519")]
        if codec == KeyCodec::Whsec {
            if let Some(private) = text.strip_prefix("whsk_") {
                return Self::ed25519_private_text(private);
            }
            if let Some(public) = text.strip_prefix("whpk_") {
                return Self::ed25519_public_text(public);
            }
        }
        Self::symmetric(codec.decode(text)?)
    }

    /// Takes the bytes of a secret.
    ///
    /// # Errors
    ///
    /// If there are none, or all of them are zero.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, KeyError> {
        Self::symmetric(Zeroizing::new(bytes.into()))
    }

    fn symmetric(bytes: Zeroizing<Vec<u8>>) -> Result<Self, KeyError> {
        // HMAC fills keys up with zeros: a key of nothing else is the empty one.
        if bytes.iter().all(|&byte| byte == 0) {
            return Err(KeyError::Empty);
        }
        if bytes.len() < SHORT {
            tracing::warn!(
                event = "short_secret",
                bytes = bytes.len(),
                "a signing secret has fewer than 16 bytes"
            );
        }
        Ok(Self::of(Material::Symmetric(Box::new(Symmetric {
            bytes,
            hmac_sha1: OnceLock::new(),
            hmac_sha256: OnceLock::new(),
            hmac_sha512: OnceLock::new(),
        }))))
    }

    fn of(material: Material) -> Self {
        Self {
            material: Arc::new(material),
            not_after: None,
        }
    }

    /// Sets the last moment at which the secret counts, for the end of a rotation. Default: it always does.
    #[must_use]
    pub const fn not_after(mut self, not_after: SystemTime) -> Self {
        self.not_after = Some(not_after);
        self
    }

    pub(crate) fn is_active(&self, now: SystemTime) -> bool {
        self.not_after.is_none_or(|not_after| now <= not_after)
    }

    /// Begins a signature. `None` if the secret is none for this algorithm: a public key never keys a MAC.
    pub(crate) fn begin(&self, algorithm: Algorithm) -> Option<Running> {
        let symmetric = self.as_symmetric()?;
        Some(match algorithm {
            #[cfg(feature = "ed25519")]
            Algorithm::Ed25519 => return None,
            Algorithm::HmacSha1 => Running::HmacSha1(symmetric.hmac_sha1().clone()),
            Algorithm::HmacSha256 => Running::HmacSha256(symmetric.hmac_sha256().clone()),
            Algorithm::HmacSha512 => Running::HmacSha512(Box::new(symmetric.hmac_sha512().clone())),
            Algorithm::Token => Running::Token(token_digest(&symmetric.bytes)),
        })
    }

    /// Whether signatures of this algorithm can be made with it.
    pub(crate) fn can_sign(&self, algorithm: Algorithm) -> bool {
        match (&*self.material, algorithm) {
            #[cfg(feature = "ed25519")]
            (Material::Symmetric(_), Algorithm::Ed25519) | (Material::Public(_), _) => false,
            #[cfg(feature = "ed25519")]
            (Material::Private(_), algorithm) => algorithm == Algorithm::Ed25519,
            (Material::Symmetric(_), _) => true,
        }
    }

    /// The bytes, for the one scheme that sends them.
    pub(crate) fn token(&self) -> Option<&[u8]> {
        self.as_symmetric()
            .map(|symmetric| symmetric.bytes.as_slice())
    }

    #[cfg_attr(
        not(feature = "ed25519"),
        expect(
            clippy::unnecessary_wraps,
            reason = "there are other kinds with feature `ed25519`"
        )
    )]
    fn as_symmetric(&self) -> Option<&Symmetric> {
        match &*self.material {
            Material::Symmetric(symmetric) => Some(symmetric),
            #[cfg(feature = "ed25519")]
            Material::Private(_) | Material::Public(_) => None,
        }
    }
}

impl Symmetric {
    fn hmac_sha1(&self) -> &Hmac<Sha1> {
        self.hmac_sha1.get_or_init(|| {
            Hmac::new_from_slice(&self.bytes).expect("HMAC takes keys of any length")
        })
    }

    fn hmac_sha256(&self) -> &Hmac<Sha256> {
        self.hmac_sha256.get_or_init(|| {
            Hmac::new_from_slice(&self.bytes).expect("HMAC takes keys of any length")
        })
    }

    fn hmac_sha512(&self) -> &Hmac<Sha512> {
        self.hmac_sha512.get_or_init(|| {
            Hmac::new_from_slice(&self.bytes).expect("HMAC takes keys of any length")
        })
    }
}

#[cfg(feature = "ed25519")]
mod ed25519 {
    use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
    use subtle::Choice;

    use super::{KeyCodec, KeyError, Material, Secret};
    use crate::{algorithm::Candidate, encoding::decode_key_base64};

    impl Secret {
        /// A public key of Ed25519: it verifies and cannot sign.
        ///
        /// # Errors
        ///
        /// If it is no point of the curve, or a weak one.
        pub fn ed25519_public(bytes: &[u8; 32]) -> Result<Self, KeyError> {
            let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::Undecodable)?;
            if key.is_weak() {
                return Err(KeyError::Undecodable);
            }
            Ok(Self::of(Material::Public(Box::new(key))))
        }

        /// A private key of Ed25519 (its 32-byte seed): it signs and verifies.
        #[must_use]
        pub fn ed25519_private(seed: &[u8; 32]) -> Self {
            Self::of(Material::Private(Box::new(SigningKey::from_bytes(seed))))
        }

        pub(super) fn ed25519_public_text(text: &str) -> Result<Self, KeyError> {
            Self::parse_ed25519_public(KeyCodec::Base64, text)
        }

        pub(crate) fn parse_ed25519_public(codec: KeyCodec, text: &str) -> Result<Self, KeyError> {
            let bytes = codec.decode(text)?;
            let bytes = bytes.as_slice().try_into();
            Self::ed25519_public(bytes.map_err(|_| KeyError::Undecodable)?)
        }

        /// A seed, or a seed and its public key.
        pub(super) fn ed25519_private_text(text: &str) -> Result<Self, KeyError> {
            let bytes = decode_key_base64(text).ok_or(KeyError::Undecodable)?;
            let seed = match bytes.as_slice() {
                seed if seed.len() == 32 => seed.first_chunk(),
                pair if pair.len() == 64 => pair.first_chunk(),
                _ => None,
            };
            Ok(Self::ed25519_private(seed.ok_or(KeyError::Undecodable)?))
        }

        pub(crate) fn is_ed25519(&self) -> bool {
            match &*self.material {
                Material::Symmetric(_) => false,
                Material::Private(_) | Material::Public(_) => true,
            }
        }

        pub(crate) fn verify_ed25519(&self, message: &[u8], candidate: &Candidate) -> Choice {
            let signature = Signature::from_bytes(candidate.bytes());
            let verified = match &*self.material {
                Material::Symmetric(_) => return Choice::from(0),
                Material::Private(key) => key.verify_strict(message, &signature),
                Material::Public(key) => key.verify_strict(message, &signature),
            };
            Choice::from(u8::from(verified.is_ok()))
        }

        pub(crate) fn sign_ed25519(&self, message: &[u8]) -> Option<[u8; 64]> {
            match &*self.material {
                Material::Private(key) => Some(key.sign(message).to_bytes()),
                Material::Symmetric(_) | Material::Public(_) => None,
            }
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn pitfall_7_an_empty_secret_does_not_exist() {
        for empty in ["", "\0", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"] {
            assert_eq!(Secret::from_bytes(empty).unwrap_err(), KeyError::Empty);
        }
        let text = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let parsed = Secret::parse(KeyCodec::Whsec, text);
        assert_eq!(parsed.unwrap_err(), KeyError::Empty);
        assert_eq!(
            Secret::parse(KeyCodec::Raw, "").unwrap_err(),
            KeyError::Empty
        );
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let secret = Secret::from_bytes("hunter2").unwrap();
        let shown = format!("{secret:?} {:#?}", crate::Secrets::from(secret.clone()));
        assert!(
            !shown.contains("hunter2") && !shown.contains("104"),
            "{shown}"
        );
    }

    #[test]
    fn v1_rfc_4231_is_computed() {
        let secret = Secret::from_bytes("Jefe").unwrap();
        let mut running = secret.begin(Algorithm::HmacSha256).unwrap();
        running.update(b"what do ya want ");
        running.update(b"for nothing?");
        assert_eq!(
            base16ct::lower::encode_string(running.finish().signature()),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn a_secret_ends_after_its_last_moment() {
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(10);
        let secret = Secret::from_bytes("0123456789abcdef")
            .unwrap()
            .not_after(end);
        assert!(secret.is_active(end));
        assert!(!secret.is_active(end + Duration::from_nanos(1)));
    }

    #[cfg(feature = "ed25519")]
    #[test]
    fn a_public_key_is_no_secret_of_a_mac() {
        let private = Secret::ed25519_private(&[7; 32]);
        for algorithm in [Algorithm::HmacSha256, Algorithm::Token] {
            assert!(private.begin(algorithm).is_none());
        }
        assert!(private.token().is_none());
        assert!(Secret::ed25519_public(&[0; 32]).is_err(), "a weak point");
    }
}
