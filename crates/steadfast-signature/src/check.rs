//! The comparison of what was presented with what is computed, while the body arrives.

use std::time::SystemTime;

use bytes::Bytes;
use sha2::{Digest as _, Sha256, Sha512};
use steadfast_core::{
    Clock,
    facts::{Freshness, SignedContent, Verified},
};
use subtle::{Choice, ConstantTimeEq as _};

use crate::{
    BodyDigest, Presented, Reason, Scheme, Secrets,
    algorithm::{Algorithm, Candidate, Running},
    scheme::{Candidates, Content, Covers},
};

/// The signatures of a message by all secrets of a key, as far as it has arrived.
pub(crate) struct Check {
    running: Vec<Running>,
    digests: Digests,
    known: bool,
}

/// What else the body is hashed for: each at most once.
#[derive(Default)]
struct Digests {
    sha256: Option<Sha256>,
    sha512: Option<Box<Sha512>>,
}

impl Check {
    /// Begins with the head. A key that is not known costs what any other does.
    pub(crate) fn begin(presented: &Presented, secrets: Option<&Secrets>, now: SystemTime) -> Self {
        let known = secrets.is_some_and(|secrets| secrets.active(now).next().is_some());
        let secrets = secrets
            .filter(|_| known)
            .unwrap_or_else(|| Secrets::dummy());
        let mut running = Vec::with_capacity(1);
        for algorithm in algorithms(&presented.candidates) {
            for secret in secrets.active(now) {
                running.extend(secret.begin(algorithm));
            }
        }
        for running in &mut running {
            running.update(&presented.content.before);
        }
        Self {
            running,
            digests: Digests::of(presented),
            known,
        }
    }

    /// Takes the next piece of the body.
    pub(crate) fn update(&mut self, content: &Content, data: &[u8]) {
        if content.covers == Covers::Body {
            for running in &mut self.running {
                running.update(data);
            }
        }
        self.digests.update(data);
    }

    /// Compares every presented signature with every computed one, all of them, whichever fits.
    pub(crate) fn finish(
        mut self,
        presented: &Presented,
        secrets: Option<&Secrets>,
        body: &Bytes,
        now: SystemTime,
    ) -> Result<SignedContent, Reason> {
        let content = &presented.content;
        let (sha256, sha512) = self.digests.finish();
        let signed = match (content.covers, sha256) {
            (Covers::Body, _) => {
                SignedContent::around(content.before.clone(), body.clone(), content.after.clone())
            }
            (Covers::BodySha256Hex, sha256) => {
                let mut hex = [0; 64];
                let hex = base16ct::lower::encode(&sha256.unwrap_or_default(), &mut hex);
                let hex = hex.unwrap_or_default();
                for running in &mut self.running {
                    running.update(hex);
                }
                let before: &[u8] = &content.before;
                let whole = [before, hex, &content.after].concat();
                SignedContent::apart_from(whole.into(), body.clone())
            }
            (Covers::Nothing, _) => SignedContent::apart_from(content.before.clone(), body.clone()),
        };
        let mut verified = Choice::from(0);
        for mut running in self.running {
            running.update(&content.after);
            let computed = running.finish();
            for candidate in presented.candidates.iter() {
                verified |= candidate.matches(&computed);
            }
        }
        let secrets = secrets.filter(|_| self.known);
        verified |= ed25519(presented, secrets.unwrap_or(Secrets::dummy()), body, now);
        let named = match presented.body_digest {
            None => Choice::from(1),
            Some(BodyDigest::Sha256(named)) => named.ct_eq(&sha256.unwrap_or_default()),
            Some(BodyDigest::Sha512(named)) => {
                sha512.map_or(Choice::from(0), |sha512| named.ct_eq(&sha512))
            }
        };
        match bool::from(verified & named) {
            // What the dummy secret signs is nobody's.
            _ if !self.known => Err(Reason::UnknownKey),
            true => Ok(signed),
            false => Err(Reason::Mismatch),
        }
    }
}

/// The algorithms of the candidates, each once.
fn algorithms(candidates: &Candidates) -> impl Iterator<Item = Algorithm> {
    let all = || candidates.iter().map(Candidate::algorithm);
    let is_first = move |at: usize, algorithm| all().take(at).all(|before| before != algorithm);
    all()
        .enumerate()
        .filter(move |&(at, algorithm)| is_first(at, algorithm))
        .map(|(_, algorithm)| algorithm)
}

/// A verification costs as much as hashing 100 KiB: no sender can ask for more of them than these, times the secrets of a
/// key.
#[cfg(feature = "ed25519")]
const MAX_ED25519: usize = 4;

#[cfg(feature = "ed25519")]
fn ed25519(presented: &Presented, secrets: &Secrets, body: &Bytes, now: SystemTime) -> Choice {
    let mut verified = Choice::from(0);
    let mut message = None;
    let candidates = presented.candidates.iter();
    let candidates = candidates.filter(|candidate| candidate.algorithm() == Algorithm::Ed25519);
    for candidate in candidates.take(MAX_ED25519) {
        for secret in secrets.active(now).filter(|secret| secret.is_ed25519()) {
            let message = message.get_or_insert_with(|| presented.content.whole(body));
            verified |= secret.verify_ed25519(message, candidate);
        }
    }
    verified
}

#[cfg(not(feature = "ed25519"))]
fn ed25519(_: &Presented, _: &Secrets, _: &Bytes, _: SystemTime) -> Choice {
    Choice::from(0)
}

impl Content {
    /// All of it in one piece, for algorithms that cannot take it in several.
    #[cfg(feature = "ed25519")]
    pub(crate) fn whole(&self, body: &[u8]) -> Vec<u8> {
        let hex;
        let body = match self.covers {
            Covers::Body => body,
            Covers::BodySha256Hex => {
                hex = base16ct::lower::encode_string(&Sha256::digest(body));
                hex.as_bytes()
            }
            Covers::Nothing => b"",
        };
        [&self.before, body, &self.after].concat()
    }
}

impl Digests {
    fn of(presented: &Presented) -> Self {
        let by_name = |is: fn(&BodyDigest) -> bool| presented.body_digest.as_ref().is_some_and(is);
        let sha256 = presented.content.covers == Covers::BodySha256Hex
            || by_name(|digest| matches!(digest, BodyDigest::Sha256(_)));
        let sha512 = by_name(|digest| matches!(digest, BodyDigest::Sha512(_)));
        Self {
            sha256: sha256.then(Sha256::new),
            sha512: sha512.then(Box::default),
        }
    }

    fn update(&mut self, data: &[u8]) {
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(data);
        }
        if let Some(sha512) = &mut self.sha512 {
            sha512.update(data);
        }
    }

    fn finish(&mut self) -> (Option<[u8; 32]>, Option<[u8; 64]>) {
        let sha256 = self.sha256.take().map(|sha256| sha256.finalize().into());
        let sha512 = self.sha512.take().map(|sha512| sha512.finalize().into());
        (sha256, sha512)
    }
}

/// What is told of a request whose signature is good.
pub(crate) fn fact(
    scheme: &str,
    key_id: &str,
    presented: &Presented,
    content: SignedContent,
    clock: &Clock,
) -> Verified {
    let mut verified = Verified::new(scheme, key_id, content);
    if let Some(window) = &presented.window {
        let freshness = Freshness::new(window.signed_at(), window.until(), clock.clone());
        verified = verified.fresh(freshness);
    }
    if let Some(id) = &presented.id {
        verified = verified.with_id(id.clone());
    }
    verified
}

/// Verifies a request whose body is in memory, outside of any service.
///
/// # Errors
///
/// The reason why it is not a signed one.
///
/// ```
/// use http::Request;
/// use steadfast_core::Clock;
/// use steadfast_signature::{HmacScheme, verify};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scheme = HmacScheme::github();
/// let secrets = scheme.secret("It's a Secret to Everybody")?.into();
/// let (head, ()) = Request::post("/hook")
///     .header("x-hub-signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
///     .body(())?
///     .into_parts();
/// let verified = verify(&scheme, &secrets, &head, &"Hello, World!".into(), &Clock::system());
/// assert!(verified.is_ok());
/// # Ok(())
/// # }
/// ```
pub fn verify(
    scheme: &dyn Scheme,
    secrets: &Secrets,
    head: &http::request::Parts,
    body: &Bytes,
    clock: &Clock,
) -> Result<Verified, Reason> {
    let presented = scheme.present(head, steadfast_core::original_uri(head))?;
    let now = clock.now();
    if let Some(window) = &presented.window {
        window.judge(now)?;
    }
    let mut check = Check::begin(&presented, Some(secrets), now);
    check.update(&presented.content, body);
    let content = check.finish(&presented, Some(secrets), body, now)?;
    let key_id = presented.key_id.as_deref().unwrap_or(crate::DEFAULT_KEY_ID);
    Ok(fact(scheme.name(), key_id, &presented, content, clock))
}
