use std::fmt;

use hmac::{Hmac, Mac as _};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use subtle::{Choice, ConstantTimeEq as _};

use crate::encoding::MAX_SIGNATURE;

/// How a signature is computed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Algorithm {
    /// Ed25519 (RFC 8032).
    #[cfg(feature = "ed25519")]
    Ed25519,
    /// HMAC with SHA-1: only for senders that offer nothing else.
    HmacSha1,
    /// HMAC with SHA-256.
    HmacSha256,
    /// HMAC with SHA-512.
    HmacSha512,
    /// No signature: the secret itself is sent.
    Token,
}

impl Algorithm {
    /// How many bytes a signature has.
    pub(crate) const fn signature_len(self) -> usize {
        match self {
            #[cfg(feature = "ed25519")]
            Self::Ed25519 => 64,
            Self::HmacSha1 => 20,
            Self::HmacSha256 | Self::Token => 32,
            Self::HmacSha512 => 64,
        }
    }
}

/// A signature that a sender presented, not yet compared.
#[derive(Clone, Copy)]
pub struct Candidate {
    algorithm: Algorithm,
    bytes: [u8; MAX_SIGNATURE],
}

impl Candidate {
    /// A decoded signature. `None` if its length is not that of the algorithm.
    #[must_use]
    pub fn new(algorithm: Algorithm, signature: &[u8]) -> Option<Self> {
        let len = algorithm.signature_len();
        let mut bytes = [0; MAX_SIGNATURE];
        if signature.len() != len {
            return None;
        }
        bytes[..len].copy_from_slice(signature);
        Some(Self { algorithm, bytes })
    }

    /// A secret that was sent itself.
    #[must_use]
    pub fn token(token: &[u8]) -> Self {
        let mut bytes = [0; MAX_SIGNATURE];
        bytes[..32].copy_from_slice(&token_digest(token));
        Self {
            algorithm: Algorithm::Token,
            bytes,
        }
    }

    /// Bytes after the length of the algorithm are zero.
    pub(crate) const fn from_array(algorithm: Algorithm, bytes: [u8; MAX_SIGNATURE]) -> Self {
        Self { algorithm, bytes }
    }

    pub(crate) const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    #[cfg(feature = "ed25519")]
    pub(crate) const fn bytes(&self) -> &[u8; MAX_SIGNATURE] {
        &self.bytes
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

/// Tokens are compared by their digests, which are all of one length.
pub(crate) fn token_digest(token: &[u8]) -> [u8; 32] {
    use sha2::Digest as _;
    Sha256::digest(token).into()
}

/// A signature that is being computed with one secret. Cloned from the keyed state of the secret.
#[derive(Clone)]
pub(crate) enum Running {
    HmacSha1(Hmac<Sha1>),
    HmacSha256(Hmac<Sha256>),
    HmacSha512(Box<Hmac<Sha512>>),
    Token([u8; 32]),
}

impl Running {
    pub(crate) fn update(&mut self, data: &[u8]) {
        match self {
            Self::HmacSha1(mac) => mac.update(data),
            Self::HmacSha256(mac) => mac.update(data),
            Self::HmacSha512(mac) => mac.update(data),
            Self::Token(_) => {}
        }
    }

    const fn algorithm(&self) -> Algorithm {
        match self {
            Self::HmacSha1(_) => Algorithm::HmacSha1,
            Self::HmacSha256(_) => Algorithm::HmacSha256,
            Self::HmacSha512(_) => Algorithm::HmacSha512,
            Self::Token(_) => Algorithm::Token,
        }
    }

    /// The computed signature; bytes after its length are zero.
    pub(crate) fn finish(self) -> Candidate {
        let algorithm = self.algorithm();
        let mut bytes = [0; MAX_SIGNATURE];
        match self {
            Self::HmacSha1(mac) => bytes[..20].copy_from_slice(&mac.finalize().into_bytes()),
            Self::HmacSha256(mac) => bytes[..32].copy_from_slice(&mac.finalize().into_bytes()),
            Self::HmacSha512(mac) => bytes[..64].copy_from_slice(&mac.finalize().into_bytes()),
            Self::Token(digest) => bytes[..32].copy_from_slice(&digest),
        }
        Candidate::from_array(algorithm, bytes)
    }
}

impl Candidate {
    /// Whether this is the computed signature. Takes the same time for every content.
    pub(crate) fn matches(&self, computed: &Self) -> Choice {
        let mut same = Choice::from(u8::from(self.algorithm == computed.algorithm));
        let len = self.algorithm.signature_len();
        // Every length is one of words, and words are compared four times as fast as bytes.
        let (presented, _) = self.bytes[..len].as_chunks();
        let (computed, _) = computed.bytes[..len].as_chunks();
        for (presented, computed) in presented.iter().zip(computed) {
            same &= u32::from_ne_bytes(*presented).ct_eq(&u32::from_ne_bytes(*computed));
        }
        same
    }

    /// The signature, without the room behind it.
    pub(crate) fn signature(&self) -> &[u8] {
        &self.bytes[..self.algorithm.signature_len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pitfall_1_no_prefix_of_a_signature_is_a_candidate() {
        for len in [0, 1, 31, 33, 64] {
            assert!(Candidate::new(Algorithm::HmacSha256, &vec![0; len]).is_none());
        }
        assert!(Candidate::new(Algorithm::HmacSha256, &[0; 32]).is_some());
    }

    #[test]
    fn a_signature_of_another_algorithm_never_matches() {
        let token = Candidate::from_array(Algorithm::Token, [7; MAX_SIGNATURE]);
        let mac = Candidate::from_array(Algorithm::HmacSha256, [7; MAX_SIGNATURE]);
        assert!(!bool::from(token.matches(&mac)));
        assert!(bool::from(mac.matches(&mac)));
    }

    #[test]
    fn every_byte_of_a_signature_counts() {
        for algorithm in [
            Algorithm::HmacSha1,
            Algorithm::HmacSha256,
            Algorithm::HmacSha512,
        ] {
            let right = Candidate::from_array(algorithm, [7; MAX_SIGNATURE]);
            for at in 0..algorithm.signature_len() {
                let mut wrong = right;
                wrong.bytes[at] ^= 1;
                assert!(!bool::from(wrong.matches(&right)), "{algorithm:?} {at}");
            }
        }
    }
}
