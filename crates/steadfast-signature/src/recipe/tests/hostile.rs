//! What a sender can write into a header.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, request::Parts};
use proptest::prelude::*;

use super::{at, change, judge, post, presets};
use crate::{HmacScheme, Reason, Scheme as _, Secret, SecretToken, Stamp};

const NOW: u64 = 1_700_000_000;

fn secret() -> Secret {
    Secret::from_bytes("a secret of 26 bytes or so").unwrap()
}

fn signed(scheme: &HmacScheme, uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut head = post(uri, headers);
    let stamp = Stamp::random(at(NOW));
    scheme
        .sign(&mut head, &"body".into(), &secret().into(), &stamp)
        .unwrap();
    head
}

fn outcome(scheme: &HmacScheme, head: &Parts) -> Result<(), Reason> {
    judge(scheme, secret(), head, "body", at(NOW)).map(|_| ())
}

/// The header with one change.
fn changed(scheme: &HmacScheme, head: &Parts, name: &str, to: &str) -> Result<(), Reason> {
    let mut head = head.clone();
    change(&mut head.headers, name, |_| to.to_owned());
    outcome(scheme, &head)
}

#[test]
fn pitfalls_1_5_6_a_signature_that_is_missing_or_malformed_is_refused() {
    let scheme = HmacScheme::github();
    let head = signed(&scheme, "/", &[]);
    assert_eq!(outcome(&scheme, &head), Ok(()));
    assert_eq!(outcome(&scheme, &post("/", &[])), Err(Reason::Missing));
    let good = head.headers["x-hub-signature-256"]
        .to_str()
        .unwrap()
        .to_owned();
    for bad in [
        "",
        "sha256=",
        "sha256",
        "sha256=zz",
        "sha256=é",
        &good[..good.len() - 1],
        &format!("{good}0"),
        &format!("{good} "),
        &format!(" {good}"),
        &format!("{good}zzzz"),
        &good.replace("sha256=", ""),
        &good.replace("sha256=", "SHA256="),
        &good.replace("sha256=", "sha1="),
        &good.replace("sha256=", "sha256=sha256="),
        &good.to_uppercase(),
        &format!("sha256={}", good[7..].to_uppercase()),
        &format!("{good},{good}"),
        &"a".repeat(5000),
    ] {
        let refused = changed(&scheme, &head, "x-hub-signature-256", bad);
        assert_eq!(refused, Err(Reason::Malformed), "{bad}");
    }
    let other = format!("sha256={}", "0".repeat(64));
    let refused = changed(&scheme, &head, "x-hub-signature-256", &other);
    assert_eq!(refused, Err(Reason::Mismatch));
}

#[test]
fn pitfalls_1_15_16_of_several_signatures_one_good_one_is_enough() {
    let scheme = HmacScheme::standard_webhooks();
    let head = signed(&scheme, "/", &[("webhook-id", "msg_1")]);
    let good = head.headers["webhook-signature"]
        .to_str()
        .unwrap()
        .to_owned();
    let old = format!("v1,{}=", "A".repeat(43));
    for list in [
        format!("{good} {old}"),
        format!("{old} {good}"),
        format!("v1,!!! {good}"),
        format!("{good} v1,"),
        format!("v9,abc {good}"),
        format!("  {good}  "),
        format!("{}{good}", format!("{old} ").repeat(15)),
    ] {
        let outcome = changed(&scheme, &head, "webhook-signature", &list);
        assert_eq!(outcome, Ok(()), "{list}");
    }
    for (list, reason) in [
        ("v1,".to_owned(), Reason::Malformed),
        ("v1".to_owned(), Reason::Malformed),
        (format!("v2{}", &good[2..]), Reason::Malformed),
        (format!("{good},x"), Reason::Malformed),
        (good[..good.len() - 1].to_owned(), Reason::Malformed),
        (old.clone(), Reason::Mismatch),
        // Sixteen, and no more.
        (
            format!("{}{good}", format!("{old} ").repeat(16)),
            Reason::Malformed,
        ),
    ] {
        let outcome = changed(&scheme, &head, "webhook-signature", &list);
        assert_eq!(outcome, Err(reason), "{list}");
    }
}

#[test]
fn pitfalls_16_33_a_list_of_pairs_has_one_timestamp_and_any_signatures() {
    let scheme = HmacScheme::stripe();
    let head = signed(&scheme, "/", &[]);
    let good = head.headers["stripe-signature"].to_str().unwrap();
    let (time, v1) = good.split_once(',').unwrap();
    let old = format!("v1={}", "0".repeat(64));
    for list in [
        format!("{time},{v1},{old}"),
        format!("{time},{old},{v1}"),
        format!("{v1},{time}"),
        format!("{time}, {v1}"),
        format!("{time},v0=abc,{v1},junk"),
    ] {
        assert_eq!(
            changed(&scheme, &head, "stripe-signature", &list),
            Ok(()),
            "{list}"
        );
    }
    for (list, reason) in [
        (format!("{time},{time},{v1}"), Reason::Malformed),
        (format!("t=1,{time},{v1}"), Reason::Malformed),
        (v1.to_owned(), Reason::Missing),
        (time.to_owned(), Reason::Malformed),
        (format!("{time},v0{}", &v1[2..]), Reason::Malformed),
        (format!("t =1,{v1}"), Reason::Missing),
        (format!("t=,{v1}"), Reason::Malformed),
        (format!("t=+{NOW},{v1}"), Reason::Malformed),
        (format!("t={NOW}.0,{v1}"), Reason::Malformed),
        (format!("t=-9223372036854775808,{v1}"), Reason::Malformed),
        (format!("t={},{v1}", NOW + 1), Reason::Mismatch),
        (format!("t={NOW}000,{v1}"), Reason::Early),
    ] {
        assert_eq!(
            changed(&scheme, &head, "stripe-signature", &list),
            Err(reason),
            "{list}"
        );
    }
}

#[test]
fn pitfalls_9_to_13_a_timestamp_is_digits_and_near() {
    let scheme = HmacScheme::slack();
    let head = signed(&scheme, "/", &[]);
    for (text, reason) in [
        ("", Reason::Malformed),
        ("abc", Reason::Malformed),
        ("NaN", Reason::Malformed),
        (" 1700000000", Reason::Malformed),
        ("+1700000000", Reason::Malformed),
        ("01700000000", Reason::Malformed),
        ("1700000000.5", Reason::Malformed),
        ("0x6553f100", Reason::Malformed),
        ("-9223372036854775808", Reason::Malformed),
        ("99999999999999999999", Reason::Malformed),
        ("1700000000000", Reason::Early),
        ("1700000301", Reason::Early),
        ("1699999699", Reason::Stale),
        ("0", Reason::Stale),
        ("1700000001", Reason::Mismatch),
    ] {
        let outcome = changed(&scheme, &head, "x-slack-request-timestamp", text);
        assert_eq!(outcome, Err(reason), "{text}");
    }
    let mut without = head;
    without.headers.remove("x-slack-request-timestamp");
    assert_eq!(outcome(&scheme, &without), Err(Reason::Missing));
}

#[test]
fn pitfall_17_an_id_does_not_reach_into_the_timestamp() {
    let scheme = HmacScheme::standard_webhooks();
    // `msg_1` at `1699990000.1700000000…` and `msg_1.1699990000` at `1700000000…` are the same bytes.
    let mut head = signed(&scheme, "/", &[("webhook-id", "msg_1")]);
    change(&mut head.headers, "webhook-id", |id| {
        format!("{id}.1699990000")
    });
    assert_eq!(outcome(&scheme, &head), Err(Reason::Malformed));
    let payments = HmacScheme::payments();
    let mut head = signed(&payments, "/", &[]);
    change(&mut head.headers, "x-nonce", |nonce| format!("{nonce} x"));
    assert_eq!(outcome(&payments, &head), Err(Reason::Malformed));
}

#[test]
fn pitfall_18_an_id_that_is_not_signed_is_said_to_be_so() {
    let scheme = HmacScheme::github();
    let mut head = signed(&scheme, "/", &[("x-github-delivery", "one")]);
    change(&mut head.headers, "x-github-delivery", |_| "two".to_owned());
    let verified = judge(&scheme, secret(), &head, "body", at(NOW)).unwrap();
    assert!(!verified.message_id().unwrap().is_signed());
}

#[test]
fn pitfall_33_whatever_stands_there_twice_is_refused() {
    for scheme in presets() {
        if cfg!(feature = "ed25519") && scheme.name == "discord" {
            continue;
        }
        let ids = [("webhook-id", "msg_1"), ("svix-id", "msg_1")];
        let head = signed(&scheme, "/", &ids);
        let names = [
            Some(&scheme.fields.signature),
            scheme.fields.timestamp.as_ref(),
            scheme.fields.id.as_ref().filter(|_| scheme.signs_id()),
            scheme.key_id.as_ref(),
            scheme.nonce.as_ref(),
        ];
        for name in names.into_iter().flatten() {
            let mut twice = head.clone();
            twice.headers.append(name, head.headers[name].clone());
            assert_eq!(outcome(&scheme, &twice), Err(Reason::Malformed), "{name}");
            let mut without = head.clone();
            without.headers.remove(name);
            assert_eq!(outcome(&scheme, &without), Err(Reason::Missing), "{name}");
        }
    }
}

#[test]
fn svix_reads_one_set_of_headers() {
    let (svix, standard) = (HmacScheme::svix(), HmacScheme::standard_webhooks());
    let head = signed(&standard, "/", &[("webhook-id", "msg_1")]);
    assert_eq!(outcome(&svix, &head), Ok(()));
    // A second set decides alone, and is not made whole from the first.
    let mut mixed = head;
    let signature = mixed.headers["webhook-signature"].clone();
    mixed.headers.insert("svix-signature", signature);
    assert_eq!(outcome(&svix, &mixed), Err(Reason::Missing));
}

#[test]
fn pitfall_4_any_bytes_are_a_body() {
    let scheme = HmacScheme::github();
    let body = Bytes::from_static(&[0x00, 0xff, 0xfe]);
    let mut head = post("/", &[]);
    let stamp = Stamp::random(at(NOW));
    scheme
        .sign(&mut head, &body, &secret().into(), &stamp)
        .unwrap();
    let clock = steadfast_core::Clock::system();
    let verified = crate::verify(&scheme, &secret().into(), &head, &body, &clock).unwrap();
    assert_eq!(verified.content().body(), &body);
}

proptest! {
    #[test]
    fn no_header_panics(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 5)) {
        for scheme in presets() {
            let names = [
                Some(&scheme.fields.signature),
                scheme.fields.timestamp.as_ref(),
                scheme.fields.id.as_ref(),
                scheme.key_id.as_ref(),
                scheme.nonce.as_ref(),
            ];
            let mut head = post("/a?b", &[]);
            for (name, value) in names.into_iter().zip(&values) {
                if let (Some(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
                    head.headers.insert(name, value);
                }
            }
            prop_assert!(outcome(&scheme, &head).is_err());
        }
    }

    #[test]
    fn no_list_panics(value in "([a-z0-9]{0,3}[=,; ]?){0,12}") {
        for scheme in [HmacScheme::stripe(), HmacScheme::standard_webhooks(), HmacScheme::paddle()] {
            let mut head = post("/", &[("webhook-id", "a"), ("webhook-timestamp", "1")]);
            let value = HeaderValue::from_str(&value).unwrap();
            head.headers.insert(scheme.signature_header(), value);
            prop_assert!(outcome(&scheme, &head).is_err());
        }
    }

    #[test]
    fn no_token_panics(value: Vec<u8>) {
        let mut head = post("/", &[]);
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            let name = HeaderName::from_static("x-gitlab-token");
            head.headers.insert(name, value);
        }
        prop_assert!(judge(&SecretToken::gitlab(), secret(), &head, "", at(0)).is_err());
    }
}
