//! A secret is changed while messages are on their way.

use crate::{
    BODY, Message, NOW, OTHER_SECRET, Peers, SECRET, STANDARD_NODE, STANDARD_PYTHON, STRIPE, SVIX,
    VENDORS, Vendor, ours, verdict,
};

/// Those whose header has room for several signatures, with what stands between them.
const SEVERAL: [(Vendor, &str); 4] = [
    (STANDARD_NODE, " "),
    (STANDARD_PYTHON, " "),
    (SVIX, " "),
    (STRIPE, ","),
];

const THIRD_SECRET: &str = "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0";

/// One message with the signatures of all of these.
fn joined(vendor: &Vendor, between: &str, messages: &[Message]) -> Message {
    let signature = |message: &Message| {
        let value = &message.headers[vendor.signature];
        // Stripe's timestamp stands there once.
        value
            .strip_prefix("t=1700000000,")
            .unwrap_or(value)
            .to_owned()
    };
    let signatures: Vec<String> = messages.iter().map(signature).collect();
    let mut message = messages[0].clone();
    message.edit(vendor.signature, |value| {
        let timestamp = value.starts_with("t=").then_some("t=1700000000,");
        format!(
            "{}{}",
            timestamp.unwrap_or_default(),
            signatures.join(between)
        )
    });
    message
}

#[tokio::test]
async fn s04_a_message_signed_with_both_secrets_is_good_for_whoever_has_one() {
    let peers = &mut Peers::default();
    for (vendor, between) in &SEVERAL {
        let (old, new) = (
            peers.sign(vendor, SECRET, NOW, BODY),
            ours::sign(vendor, OTHER_SECRET, NOW, BODY).await,
        );
        for order in [[old.clone(), new.clone()], [new, old]] {
            let message = joined(vendor, between, &order);
            for (secret, taken) in [(SECRET, true), (OTHER_SECRET, true), (THIRD_SECRET, false)] {
                let verdict = verdict(peers, vendor, secret, NOW, &message).await;
                assert_eq!(verdict, taken, "{message:?}");
            }
        }
    }
}

#[tokio::test]
async fn s04_with_both_secrets_we_take_what_is_signed_with_either() {
    let peers = &mut Peers::default();
    for vendor in &VENDORS {
        for (secret, taken) in [(SECRET, true), (OTHER_SECRET, true), (THIRD_SECRET, false)] {
            let message = peers.sign(vendor, secret, NOW, BODY);
            let verdict = ours::verify(vendor, &[SECRET, OTHER_SECRET], NOW, &message).await;
            assert_eq!(verdict, taken, "{message:?}");
        }
    }
}

#[tokio::test]
async fn pitfall_16_a_signature_that_nobody_knows_spoils_no_other() {
    let peers = &mut Peers::default();
    for (vendor, between) in &SEVERAL {
        let signed = peers.sign(vendor, SECRET, NOW, BODY);
        let (unknown, pair) = match *between {
            "," => ("v0=00,v9=zz", false),
            _ => ("v9,zz v2,AAAA", true),
        };
        for first in [true, false] {
            let mut message = signed.clone();
            message.edit(vendor.signature, |value| match (first, pair) {
                (true, true) => format!("{unknown} {value}"),
                (false, true) => format!("{value} {unknown}"),
                // The timestamp may stand anywhere.
                (true, false) => format!("{unknown},{value}"),
                (false, false) => format!("{value},{unknown}"),
            });
            assert!(
                verdict(peers, vendor, SECRET, NOW, &message).await,
                "{message:?}"
            );
            message.body.push(b' ');
            assert!(
                !verdict(peers, vendor, SECRET, NOW, &message).await,
                "{message:?}"
            );
        }
    }
}
