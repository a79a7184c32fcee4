//! Where we and a library do not agree, on purpose.

use crate::{
    BODY, GITHUB, Message, NOW, Peers, SECRET, STANDARD_NODE, STANDARD_PYTHON, STRIPE, SVIX,
    VENDORS, Vendor, ours,
};

/// They take it, we refuse it.
async fn refused_here_only(vendor: &Vendor, peers: &mut Peers, now: u64, message: &Message) {
    assert!(
        peers.verify(vendor, SECRET, now, message),
        "{} takes it no more: {message:?}",
        vendor.package
    );
    assert!(
        !ours::verify(vendor, &[SECRET], now, message).await,
        "{message:?}"
    );
}

#[tokio::test]
async fn pitfall_9_a_timestamp_has_one_text_here() {
    for (vendor, texts) in [
        (
            STANDARD_NODE,
            [
                "+1700000000",
                "01700000000",
                "1700000000.5",
                "1700000000abc",
            ],
        ),
        (
            STANDARD_PYTHON,
            [
                "+1700000000",
                "01700000000",
                "1700000000.5",
                "1_700_000_000",
            ],
        ),
        (
            SVIX,
            ["+1700000000", "01700000000", "1700000000.5", "1.7e9"],
        ),
    ] {
        let peers = &mut Peers::default();
        let signed = peers.sign(&vendor, SECRET, NOW, BODY);
        for text in texts {
            let mut message = signed.clone();
            message.edit(vendor.timestamp.unwrap(), |_| text.to_owned());
            refused_here_only(&vendor, peers, NOW, &message).await;
        }
    }
}

#[tokio::test]
async fn pitfall_13_nothing_is_signed_in_the_future_here() {
    let peers = &mut Peers::default();
    let message = peers.sign(&STRIPE, SECRET, NOW, BODY);
    refused_here_only(&STRIPE, peers, NOW - 301, &message).await;
}

/// The last character of 32 bytes in base64 holds two bits that decode to nothing.
fn spare_bits_set(value: &str) -> String {
    let (rest, last) = value.split_at(value.len() - 2);
    format!("{rest}{}=", char::from(last.as_bytes()[0] + 1))
}

#[tokio::test]
async fn pitfall_15_a_signature_has_one_text_here() {
    type Edit = fn(&str) -> String;
    let lenient_base64: [Edit; 3] = [
        spare_bits_set,
        |value| value.replacen(',', ",!", 1),
        |value| format!("{value}00"),
    ];
    let a_third_piece: [Edit; 1] = [|value| format!("{value},x")];
    let peers = &mut Peers::default();
    for (vendor, edits) in [
        (STANDARD_PYTHON, &lenient_base64[..]),
        (SVIX, &lenient_base64),
        (STANDARD_NODE, &a_third_piece),
    ] {
        for edit in edits {
            let mut message = peers.sign(&vendor, SECRET, NOW, BODY);
            message.edit(vendor.signature, edit);
            refused_here_only(&vendor, peers, NOW, &message).await;
        }
    }
}

#[tokio::test]
async fn pitfall_17_the_fields_of_a_message_cannot_be_shifted_here() {
    let peers = &mut Peers::default();
    for vendor in [STANDARD_NODE, STANDARD_PYTHON, SVIX] {
        // An old message whose body begins like a timestamp.
        let mut message = peers.sign(&vendor, SECRET, NOW - 10_000, b"1700000000.{}");
        message.edit(vendor.id.unwrap(), |id| format!("{id}.1699990000"));
        message.edit(vendor.timestamp.unwrap(), |_| NOW.to_string());
        message.body = b"{}".to_vec();
        refused_here_only(&vendor, peers, NOW, &message).await;
    }
}

#[tokio::test]
async fn pitfall_4_bodies_that_are_no_text_are_signed_as_they_are() {
    let peers = &mut Peers::default();
    for vendor in &VENDORS {
        for body in [
            &b"\x00\xff\xfe"[..],
            b"{\"text\":\"h\xe9llo\"}",
            b"\xf0\x9f\xa6",
        ] {
            let message = ours::sign(vendor, SECRET, NOW, body).await;
            assert!(
                ours::verify(vendor, &[SECRET], NOW, &message).await,
                "{message:?}"
            );
            // They know no such bodies, and what they sign instead is not taken for one.
            assert!(!peers.verify(vendor, SECRET, NOW, &message), "{message:?}");
            if let Ok(of_other_text) = peers.try_sign(vendor, SECRET, NOW, body) {
                assert!(!ours::verify(vendor, &[SECRET], NOW, &of_other_text).await);
            }
        }
    }
}

#[tokio::test]
async fn pitfall_29_an_empty_body_is_a_body() {
    let peers = &mut Peers::default();
    for vendor in &VENDORS {
        let message = ours::sign(vendor, SECRET, NOW, b"").await;
        assert!(
            ours::verify(vendor, &[SECRET], NOW, &message).await,
            "{message:?}"
        );
        let taken = peers.verify(vendor, SECRET, NOW, &message);
        // Only octokit knows none.
        assert_eq!(
            taken,
            vendor.package != GITHUB.package,
            "{}",
            vendor.package
        );
    }
}
