use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};
use steadfast_core::facts::{Freshness, MessageId, Verified};

use crate::{
    rejection::Rejection,
    store::{Digest, EventId, Life, Once},
};

/// Servers that share a store have clocks that differ by no more than this.
const SERVER_SKEW: Duration = Duration::from_secs(5);

/// What to record for a request: `H(scheme ‖ scope ‖ key id ‖ signed content)` (G01).
///
/// The owner is what is digested first, so that it is hashed once. The content is the last field and needs no length; what
/// stands before it keeps the digest of an empty one apart from its owner.
pub(crate) fn once(scope: &[u8], verified: &Verified, life: Life) -> Once {
    let (scheme, key) = (verified.scheme().as_bytes(), verified.key_id().as_bytes());
    let owner = begin(b"steadfast-replay 1 once\0", [scheme, scope, key]);
    let mut hash = owner.clone();
    hash.update([CONTENT]);
    for piece in verified.content().signed() {
        hash.update(piece);
    }
    Once {
        digest: end(hash),
        owner: end(owner),
        life,
    }
}

/// Announces the content behind an owner.
const CONTENT: u8 = 1;

/// How long a request is remembered: to the last moment at which it would be fresh (G01, G02).
pub(crate) fn life(
    freshness: Option<&Freshness>,
    undated: Option<Duration>,
) -> Result<Life, Rejection> {
    match (freshness, undated) {
        (Some(freshness), _) => dated(
            freshness.clock().now(),
            freshness.signed_at(),
            freshness.until(),
        ),
        (None, Some(retention)) => Ok(Life::For(retention)),
        (None, None) => Err(Rejection::Undated),
    }
}

fn dated(now: SystemTime, signed_at: SystemTime, until: SystemTime) -> Result<Life, Rejection> {
    // Past its time no store keeps it, and the clock may be set back.
    let left = until.duration_since(now).map_err(|_| Rejection::Expired)?;
    let tolerance = until.duration_since(signed_at).unwrap_or_default();
    Ok(Life::Until {
        now,
        until,
        keep: tolerance
            .saturating_mul(2)
            .max(left)
            .saturating_add(SERVER_SKEW),
    })
}

/// The identities of an event (G03): a signed id is one. Without one, the body is a second, or the only one.
pub(crate) fn event(source: [&[u8]; 2], verified: &Verified, trust_unsigned_ids: bool) -> EventId {
    let [scheme, place] = source;
    let source = digest(b"steadfast-replay 1 source\0", [scheme, place]);
    let of_id = |id: &MessageId| {
        let fields: [&[u8]; 2] = [source.as_bytes(), id.as_bytes()];
        digest(b"steadfast-replay 1 id\0", fields)
    };
    let of_body = || {
        let body = verified.content().body_digest();
        digest(b"steadfast-replay 1 body\0", [source.as_bytes(), &body])
    };
    match verified.message_id().filter(|id| !id.as_bytes().is_empty()) {
        Some(id) if id.is_signed() || trust_unsigned_ids => EventId::new(source, of_id(id)),
        Some(id) => EventId::new(source, of_id(id)).or(of_body()),
        None => EventId::new(source, of_body()),
    }
}

fn digest<const N: usize>(tag: &[u8], fields: [&[u8]; N]) -> Digest {
    end(begin(tag, fields))
}

/// The tag says what is digested, and in which version. It ends in its only zero, and the length of each field comes before
/// it, so that no two fields run into each other.
fn begin<const N: usize>(tag: &[u8], fields: [&[u8]; N]) -> Sha256 {
    let mut hash = Sha256::new();
    hash.update(tag);
    for field in fields {
        // One byte for nearly all: what is hashed for an owner fits into one block.
        match u8::try_from(field.len()) {
            Ok(len) if len < LONG => hash.update([len]),
            _ => {
                hash.update([LONG]);
                hash.update((field.len() as u64).to_be_bytes());
            }
        }
        hash.update(field);
    }
    hash
}

/// The first byte of a length that takes nine.
const LONG: u8 = u8::MAX;

fn end(hash: Sha256) -> Digest {
    Digest::new(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use steadfast_core::{Clock, facts::SignedContent};

    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn verified(body: &'static str) -> Verified {
        Verified::new("s", "k", SignedContent::body_alone(body.into()))
    }

    #[test]
    fn g01_scheme_scope_key_and_content_each_make_another_request() {
        let of = |scheme: &str, scope: &str, key: &str, body: &'static str| {
            let verified = Verified::new(scheme, key, SignedContent::body_alone(body.into()));
            once(scope.as_bytes(), &verified, Life::For(S)).digest
        };
        let one = of("s", "t", "k", "b");
        assert_eq!(one, of("s", "t", "k", "b"));
        for other in [
            of("S", "t", "k", "b"),
            of("s", "T", "k", "b"),
            of("s", "t", "K", "b"),
            of("s", "t", "k", "B"),
            of("st", "", "k", "b"),
            of("s", "tk", "", "b"),
            of("s", "t", "", "kb"),
            of("s", "t", "k", ""),
        ] {
            assert!(one != other);
        }
    }

    #[test]
    fn g01_fields_of_any_length_do_not_run_into_each_other() {
        let text = "k".repeat(600);
        let mut seen = std::collections::BTreeSet::new();
        for len in [0, 1, 107, 108, 254, 255, 256, 263, 264, 511, 512] {
            let (scope, key) = text.split_at(len);
            let verified = Verified::new("s", key, SignedContent::default());
            let once = once(scope.as_bytes(), &verified, Life::For(S));
            assert!(seen.insert(once.digest), "{len}");
            assert!(seen.insert(once.owner), "{len}");
        }
    }

    #[test]
    fn g02_a_request_is_remembered_to_the_edge_of_its_window() {
        let at = |s: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
        let life = |now, signed| {
            let freshness = Freshness::new(signed, signed + 30 * S, Clock::from_fn(move || now));
            life(Some(&freshness), None)
        };
        let until = |now, until| {
            let keep = 65 * S;
            Ok(Life::Until { now, until, keep })
        };
        assert_eq!(life(at(100), at(100)), until(at(100), at(130)));
        assert_eq!(life(at(70), at(100)), until(at(70), at(130)));
        assert_eq!(life(at(130), at(100)), until(at(130), at(130)));
        assert_eq!(life(at(131), at(100)), Err(Rejection::Expired));
    }

    #[test]
    fn g01_an_undated_request_needs_a_retention_by_name() {
        assert_eq!(life(None, None), Err(Rejection::Undated));
        assert_eq!(life(None, Some(S)), Ok(Life::For(S)));
    }

    #[test]
    fn g03_an_event_is_known_by_its_signed_id_or_by_id_and_body() {
        let identities = |verified: Verified, trust| -> Vec<Digest> {
            let event = event([b"s", b"/hook"], &verified, trust);
            event.identities().copied().collect()
        };
        let signed = |id: &'static str, body| {
            identities(verified(body).with_id(MessageId::signed(id.into())), false)
        };
        let unsigned = |id: &'static str, body, trust| {
            identities(
                verified(body).with_id(MessageId::unsigned(id.into())),
                trust,
            )
        };
        let absent = |body| identities(verified(body), false);
        assert_eq!(signed("1", "a"), signed("1", "b"));
        assert_eq!(signed("1", "a").len(), 1);
        assert_eq!(unsigned("1", "a", true), signed("1", "b"));
        let both = unsigned("1", "a", false);
        assert_eq!(both, [signed("1", "").as_slice(), &absent("a")].concat());
        assert_eq!(absent("a").len(), 1);
        assert_eq!(unsigned("", "a", true), absent("a"));
        assert!(absent("a") != absent("b"));
    }
}
