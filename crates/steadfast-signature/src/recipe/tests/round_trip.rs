//! The same value signs and verifies.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use steadfast_core::Clock;

use super::{at, post, presets};
use crate::{
    HmacScheme, KeyCodec, Reason, Scheme, Secret, SecretToken, Secrets, SignError, SigningKey,
    Stamp, verify,
};

/// A key that signs in this scheme, and another one.
fn keys(scheme: &HmacScheme) -> (Secret, Secret) {
    #[cfg(feature = "ed25519")]
    if scheme.algorithm == crate::Algorithm::Ed25519 {
        return (
            Secret::ed25519_private(&[1; 32]),
            Secret::ed25519_private(&[2; 32]),
        );
    }
    let _ = scheme;
    let secret = |byte| Secret::from_bytes([byte; 32]).unwrap();
    (secret(1), secret(2))
}

fn check(
    scheme: &dyn Scheme,
    secret: &Secret,
    head: &http::request::Parts,
    body: &Bytes,
    now: u64,
) -> Result<(), Reason> {
    let clock = Clock::from_fn(move || at(now));
    verify(scheme, &secret.clone().into(), head, body, &clock).map(|_| ())
}

proptest! {
    // Every scheme is signed and verified a dozen times a case.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn s02_s03_what_is_signed_is_verified_and_nothing_else(
        body: Vec<u8>,
        path in "/[a-z0-9/]{0,12}([?][a-z0-9=&]{0,12})?",
        seconds in 1_600_000_000_u64..1_900_000_000,
        flip: prop::sample::Index,
    ) {
        let body = Bytes::from(body);
        for scheme in presets() {
            let (secret, other) = keys(&scheme);
            let mut head = post(&path, &[("webhook-id", "msg_1"), ("svix-id", "msg_1")]);
            let key = SigningKey::new("key_1", secret.clone());
            scheme.sign(&mut head, &body, &key, &Stamp::random(at(seconds))).unwrap();
            prop_assert_eq!(check(&scheme, &secret, &head, &body, seconds), Ok(()), "{:?}", scheme);
            prop_assert_eq!(check(&scheme, &other, &head, &body, seconds), Err(Reason::Mismatch));

            let mut changed = body.to_vec();
            if changed.is_empty() {
                changed.push(0);
            } else {
                let at = flip.index(changed.len());
                changed[at] ^= 1;
            }
            let changed = Bytes::from(changed);
            prop_assert_eq!(check(&scheme, &secret, &head, &changed, seconds), Err(Reason::Mismatch));

            if let Some(unit) = scheme.unit {
                let late = seconds + scheme.tolerance.past.as_secs();
                prop_assert_eq!(check(&scheme, &secret, &head, &body, late), Ok(()));
                prop_assert_eq!(check(&scheme, &secret, &head, &body, late + 1), Err(Reason::Stale));
                let early = seconds - scheme.tolerance.future.as_secs();
                prop_assert_eq!(check(&scheme, &secret, &head, &body, early), Ok(()));
                prop_assert_eq!(check(&scheme, &secret, &head, &body, early - 1), Err(Reason::Early));
                // A second later it is another signature, with no need of a nonce.
                let mut again = post(&path, &[("webhook-id", "msg_1"), ("svix-id", "msg_1")]);
                let next = unit.next(at(seconds));
                scheme.sign(&mut again, &body, &key, &Stamp::new(next, "n")).unwrap();
                let signature = scheme.signature_header();
                prop_assert_ne!(&again.headers[signature], &head.headers[signature]);
            }
        }
    }

    #[test]
    fn pitfall_30_method_path_and_query_count_where_they_are_signed(
        path in "/[a-z]{1,8}", query in "[a-z]{1,8}",
    ) {
        let body = Bytes::from_static(b"{}");
        for scheme in [HmacScheme::payments(), HmacScheme::coinbase(), HmacScheme::okx()] {
            let (secret, _) = keys(&scheme);
            let mut head = post(&format!("{path}?{query}"), &[]);
            let key = SigningKey::new("key_1", secret.clone());
            scheme.sign(&mut head, &body, &key, &Stamp::random(at(1_700_000_000))).unwrap();
            let check = |head: &_| check(&scheme, &secret, head, &body, 1_700_000_000);
            prop_assert_eq!(check(&head), Ok(()));
            for uri in [format!("{path}x?{query}"), format!("{path}?{query}x"), path.clone()] {
                let mut other = head.clone();
                other.uri = uri.parse().unwrap();
                prop_assert_eq!(check(&other), Err(Reason::Mismatch));
            }
            let mut other = head.clone();
            other.method = http::Method::PUT;
            prop_assert_eq!(check(&other), Err(Reason::Mismatch));
        }
    }
}

#[test]
fn pitfall_25_a_second_signature_replaces_the_first() {
    for scheme in presets() {
        let (secret, _) = keys(&scheme);
        let key = SigningKey::new("key_1", secret.clone());
        let mut head = post("/", &[("webhook-id", "msg_1"), ("svix-id", "msg_1")]);
        for later in 0..2 {
            let stamp = Stamp::random(at(1_700_000_000) + Duration::from_secs(later * 600));
            scheme.sign(&mut head, &Bytes::new(), &key, &stamp).unwrap();
        }
        assert_eq!(
            check(&scheme, &secret, &head, &Bytes::new(), 1_700_000_600),
            Ok(())
        );
    }
}

#[test]
fn pitfall_24_it_is_told_from_when_on_a_signature_differs() {
    let stamp = Stamp::random(at(1_700_000_000) + Duration::from_millis(250));
    let next = |scheme: HmacScheme| {
        let (secret, _) = keys(&scheme);
        let mut head = post("/", &[]);
        let signed = scheme.sign(&mut head, &Bytes::new(), &secret.into(), &stamp);
        signed.unwrap().next
    };
    assert_eq!(next(HmacScheme::slack()), Some(at(1_700_000_001)));
    let millis = Some(stamp.at() + Duration::from_millis(1));
    assert_eq!(next(HmacScheme::workos()), millis);
    assert_eq!(next(HmacScheme::payments()), None, "it has a nonce");
    assert_eq!(next(HmacScheme::github()), None, "it never differs");
}

#[test]
fn an_id_that_is_signed_has_to_be_there() {
    let scheme = HmacScheme::standard_webhooks();
    let (secret, _) = keys(&scheme);
    let sign = |headers: &[(&str, &str)]| {
        let mut head = post("/", headers);
        let stamp = Stamp::random(at(0));
        scheme
            .sign(&mut head, &Bytes::new(), &secret.clone().into(), &stamp)
            .map(|_| ())
    };
    assert_eq!(sign(&[]), Err(SignError::MissingId));
    assert_eq!(sign(&[("webhook-id", "a.1")]), Err(SignError::Unsignable));
    assert_eq!(sign(&[("webhook-id", "a 1")]), Err(SignError::Unsignable));
    assert_eq!(sign(&[("webhook-id", "a1")]), Ok(()));
}

#[test]
fn a_token_is_sent_and_compared() {
    let secret = Secret::parse(KeyCodec::Raw, "s3cret-token").unwrap();
    for scheme in [SecretToken::telegram(), SecretToken::gitlab()] {
        let mut head = post("/", &[]);
        let stamp = Stamp::random(at(0));
        scheme
            .sign(&mut head, &Bytes::new(), &secret.clone().into(), &stamp)
            .unwrap();
        assert_eq!(check(&scheme, &secret, &head, &Bytes::new(), 0), Ok(()));
        assert!(!format!("{:?}", head.headers).contains("s3cret"));
        for wrong in ["s3cret-tokem", "s3cret-toke", "s3cret-token2"] {
            let wrong = Secret::from_bytes(wrong).unwrap();
            assert_eq!(
                check(&scheme, &wrong, &head, &Bytes::new(), 0),
                Err(Reason::Mismatch)
            );
        }
        let without = post("/", &[]);
        assert_eq!(
            check(&scheme, &secret, &without, &Bytes::new(), 0),
            Err(Reason::Missing)
        );
    }
}

#[test]
fn s04_any_active_secret_of_a_key_is_good() {
    let scheme = HmacScheme::github();
    let secret = |text: &str| scheme.secret(text).unwrap();
    let mut head = post("/", &[]);
    let stamp = Stamp::random(at(0));
    scheme
        .sign(&mut head, &Bytes::new(), &secret("old").into(), &stamp)
        .unwrap();
    let clock = Clock::from_fn(|| at(100));
    let judge = |secrets: Vec<Secret>| {
        let secrets = Secrets::new(secrets).unwrap();
        verify(&scheme, &secrets, &head, &Bytes::new(), &clock).map(|_| ())
    };
    assert_eq!(judge(vec![secret("new"), secret("old")]), Ok(()));
    assert_eq!(judge(vec![secret("old"), secret("new")]), Ok(()));
    assert_eq!(judge(vec![secret("new")]), Err(Reason::Mismatch));
    assert_eq!(
        judge(vec![secret("new"), secret("old").not_after(at(100))]),
        Ok(())
    );
    let ended = secret("old").not_after(at(99));
    assert_eq!(
        judge(vec![secret("new"), ended.clone()]),
        Err(Reason::Mismatch)
    );
    assert_eq!(judge(vec![ended]), Err(Reason::UnknownKey));
}

#[cfg(feature = "ed25519")]
#[test]
fn s04_v1a_is_verified_with_the_public_key() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    let scheme = HmacScheme::standard_webhooks();
    let pair = ed25519_dalek::SigningKey::from_bytes(&[9; 32]);
    let private = format!("whsk_{}", STANDARD.encode(pair.to_keypair_bytes()));
    let public = format!("whpk_{}", STANDARD.encode(pair.verifying_key().to_bytes()));
    let (private, public) = (
        scheme.secret(&private).unwrap(),
        scheme.secret(&public).unwrap(),
    );
    let body = Bytes::from_static(b"{}");
    let mut head = post("/", &[("webhook-id", "msg_1")]);
    let stamp = Stamp::random(at(1_700_000_000));
    scheme
        .sign(&mut head, &body, &private.into(), &stamp)
        .unwrap();
    let signature = head.headers["webhook-signature"].to_str().unwrap();
    assert!(signature.starts_with("v1a,"), "{signature}");
    assert_eq!(check(&scheme, &public, &head, &body, 1_700_000_000), Ok(()));
    assert_eq!(
        check(&scheme, &public, &head, &"[]".into(), 1_700_000_000),
        Err(Reason::Mismatch)
    );
    assert_eq!(
        scheme
            .sign(&mut head, &body, &public.into(), &stamp)
            .unwrap_err(),
        SignError::WrongKey
    );
    // One signature of each kind: either key is enough.
    let mac = scheme
        .secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        .unwrap();
    let mut both = head.clone();
    scheme
        .sign(&mut both, &body, &mac.clone().into(), &stamp)
        .unwrap();
    super::change(&mut both.headers, "webhook-signature", |v1| {
        format!(
            "{v1} {}",
            head.headers["webhook-signature"].to_str().unwrap()
        )
    });
    assert_eq!(check(&scheme, &mac, &both, &body, 1_700_000_000), Ok(()));
}

#[cfg(feature = "ed25519")]
#[test]
fn s04_discord_is_verified_with_the_hex_of_its_public_key() {
    let scheme = HmacScheme::discord();
    let pair = ed25519_dalek::SigningKey::from_bytes(&[9; 32]);
    let public = base16ct::lower::encode_string(&pair.verifying_key().to_bytes());
    let public = scheme.secret(&public).unwrap();
    let body = Bytes::from_static(b"{}");
    let mut head = post("/", &[]);
    let stamp = Stamp::random(at(1_700_000_000));
    let private = Secret::ed25519_private(&[9; 32]);
    scheme
        .sign(&mut head, &body, &private.into(), &stamp)
        .unwrap();
    assert_eq!(check(&scheme, &public, &head, &body, 1_700_000_000), Ok(()));
    for bad in ["", "00", "zz"] {
        assert!(scheme.secret(bad).is_err());
    }
}

#[cfg(feature = "ed25519")]
#[test]
fn pitfall_37_an_unknown_key_is_verified_against_one_of_each_kind() {
    let dummy = Secrets::dummy();
    let secrets: Vec<_> = dummy.active(at(0)).collect();
    assert!(secrets.iter().any(|secret| secret.is_ed25519()));
    assert!(secrets.iter().any(|secret| !secret.is_ed25519()));
}

#[cfg(feature = "ed25519")]
#[test]
fn no_sender_asks_for_more_than_four_verifications_a_key() {
    let scheme = HmacScheme::standard_webhooks();
    let private = Secret::ed25519_private(&[9; 32]);
    let mut head = post("/", &[("webhook-id", "msg_1")]);
    let stamp = Stamp::random(at(1_700_000_000));
    let body = Bytes::from_static(b"{}");
    scheme
        .sign(&mut head, &body, &private.clone().into(), &stamp)
        .unwrap();
    let wrong = format!("v1a,{}== ", "A".repeat(86));
    for (others, outcome) in [(3, Ok(())), (4, Err(Reason::Mismatch))] {
        let mut several = head.clone();
        super::change(&mut several.headers, "webhook-signature", |good| {
            format!("{}{good}", wrong.repeat(others))
        });
        let judged = check(&scheme, &private, &several, &body, 1_700_000_000);
        assert_eq!(judged, outcome);
    }
}
