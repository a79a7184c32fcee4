use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};
use steadfast_core::facts::{Freshness, MessageId, Verified};

use crate::{
    rejection::Rejection,
    store::{Digest, EventId, Life, Once},
};

/// Servers that share a store have clocks that differ by no more than this.
const SERVER_SKEW: Duration = Duration::from_secs(5);

/// What to record for a request: `H(scheme ‖ scope ‖ key id ‖ digest of the signed content)` (G01).
pub(crate) fn once(scope: &[u8], verified: &Verified, life: Life) -> Once {
    let (scheme, key) = (verified.scheme().as_bytes(), verified.key_id().as_bytes());
    let content = verified.content().digest();
    Once {
        digest: digest("once", [scheme, scope, key, &content]),
        owner: digest("owner", [scheme, scope, key]),
        life,
    }
}

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
    let source = digest("source", [scheme, place]);
    let of_id = |id: &MessageId| digest("id", [source.as_bytes(), id.as_bytes()]);
    let of_body = || {
        let body = verified.content().body_digest();
        digest("body", [source.as_bytes(), &body])
    };
    match verified.message_id().filter(|id| !id.as_bytes().is_empty()) {
        Some(id) if id.is_signed() || trust_unsigned_ids => EventId::new(source, of_id(id)),
        Some(id) => EventId::new(source, of_id(id)).or(of_body()),
        None => EventId::new(source, of_body()),
    }
}

/// The lengths of all fields come first, so that no two fields run into each other. The tag says what is digested, and
/// in which version.
fn digest<const N: usize>(tag: &str, fields: [&[u8]; N]) -> Digest {
    let lengths = fields.map(|field| (field.len() as u64).to_be_bytes());
    let mut hash = Sha256::new();
    hash.update(b"steadfast-replay 1 ");
    hash.update(tag);
    hash.update([0]);
    hash.update(lengths.as_flattened());
    for field in fields {
        hash.update(field);
    }
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
        ] {
            assert!(one != other);
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
