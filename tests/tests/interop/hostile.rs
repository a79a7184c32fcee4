//! What was signed once, and changed on the way: nobody takes it.

use crate::{BODY, Message, NOW, Peers, SECRET, STRIPE, VENDORS, Vendor, ours, verdict};

type Change = fn(&mut Message, &Vendor);

/// The first character of the MAC, after what stands before it.
fn mac(value: &str) -> usize {
    let at = value.rfind(['=', ',']).filter(|&at| at + 1 < value.len());
    // Base64 ends in `=`: there it is the comma that comes before.
    at.or_else(|| value.rfind(',')).unwrap() + 1
}

const CHANGES: &[(&str, Change)] = &[
    ("a bit of the body", |message, _| message.body[3] ^= 1),
    ("the body's last byte is missing", |message, _| {
        message.body.pop();
    }),
    ("a line end after the body", |message, _| {
        message.body.push(b'\n');
    }),
    ("the body parsed and written again", |message, _| {
        message.body.retain(|&byte| byte != b' ');
    }),
    ("no body", |message, _| message.body.clear()),
    ("no signature", |message, vendor| {
        message.headers.remove(vendor.signature);
    }),
    ("an empty signature", |message, vendor| {
        message.edit(vendor.signature, |_| String::new());
    }),
    ("a signature that is none", |message, vendor| {
        message.edit(vendor.signature, |_| "true".to_owned());
    }),
    ("the MAC is missing", |message, vendor| {
        message.edit(vendor.signature, |value| value[..mac(value)].to_owned());
    }),
    ("the MAC is shorter", |message, vendor| {
        message.edit(vendor.signature, |value| value[..mac(value) + 8].to_owned());
    }),
    ("the MAC is longer", |message, vendor| {
        message.edit(vendor.signature, |value| {
            let (before, mac) = value.split_at(mac(value));
            format!("{before}0000{mac}")
        });
    }),
    ("the MAC begins otherwise", |message, vendor| {
        message.edit(vendor.signature, |value| {
            let (before, mac) = value.split_at(mac(value));
            let first = if mac.starts_with('a') { 'b' } else { 'a' };
            format!("{before}{first}{}", &mac[1..])
        });
    }),
    ("another version or algorithm", |message, vendor| {
        message.edit(vendor.signature, |value| {
            let value = value.replace("v1", "v9").replace("v0", "v9");
            value.replace("sha256", "sha1")
        });
    }),
];

const CHANGES_OF_ID: &[(&str, Change)] = &[
    ("another id", |message, vendor| {
        message.edit(vendor.id.unwrap(), |id| format!("{id}x"));
    }),
    ("no id", |message, vendor| {
        message.headers.remove(vendor.id.unwrap());
    }),
];

const CHANGES_OF_TIMESTAMP: &[(&str, Change)] = &[
    ("another timestamp", |message, vendor| {
        message.edit(vendor.timestamp.unwrap(), |value| {
            value.replace("1700000000", "1700000001")
        });
    }),
    ("no number for a timestamp", |message, vendor| {
        message.edit(vendor.timestamp.unwrap(), |value| {
            value.replace("1700000000", "now")
        });
    }),
    ("no timestamp", |message, vendor| {
        let timestamp = vendor.timestamp.unwrap();
        if timestamp == vendor.signature {
            message.edit(timestamp, |value| value.replace("t=1700000000,", ""));
        } else {
            message.headers.remove(timestamp);
        }
    }),
];

#[tokio::test]
async fn nobody_takes_what_was_changed() {
    let peers = &mut Peers::default();
    for vendor in &VENDORS {
        let signed = peers.sign(vendor, SECRET, NOW, BODY);
        let of_id = vendor.id.map_or(&[][..], |_| CHANGES_OF_ID);
        let of_timestamp = vendor.timestamp.map_or(&[][..], |_| CHANGES_OF_TIMESTAMP);
        for (what, change) in CHANGES.iter().chain(of_id).chain(of_timestamp) {
            let mut message = signed.clone();
            change(&mut message, vendor);
            let taken = verdict(peers, vendor, SECRET, NOW, &message).await;
            assert!(!taken, "{what}: {} took {message:?}", vendor.package);
        }
        assert!(verdict(peers, vendor, SECRET, NOW, &signed).await);
    }
}

#[tokio::test]
async fn s02_all_agree_to_the_second_when_a_message_is_stale_or_early() {
    let peers = &mut Peers::default();
    for vendor in VENDORS.iter().filter(|vendor| vendor.timestamp.is_some()) {
        let signed = peers.sign(vendor, SECRET, NOW, BODY);
        for (now, taken) in [
            (NOW + 300, true),
            (NOW + 301, false),
            (NOW + 86_400, false),
            (NOW - 300, true),
            (NOW - 301, false),
        ] {
            if vendor.package == STRIPE.package && now < NOW - 300 {
                // It takes what is signed in the future: see `stricter`.
                continue;
            }
            let verdict = verdict(peers, vendor, SECRET, now, &signed).await;
            assert_eq!(verdict, taken, "{} at {now}", vendor.package);
        }
    }
}

/// What a header is damaged with. No blanks: those around an entry of a list mean nothing here, and something to some.
const PIECES: [&str; 16] = [
    "",
    "0",
    "9",
    "a",
    "A",
    "/",
    "=",
    ",",
    ".",
    "-",
    "+",
    "t=",
    "v1=",
    "v1,",
    "sha256=",
    "1700000000",
];

/// Replaces a few characters of a header or of the body by something else.
fn damage(message: &mut Message, random: &mut fastrand::Rng) {
    let mut texts: Vec<&mut String> = message.headers.values_mut().collect();
    let mut body = String::from_utf8(message.body.clone()).unwrap();
    texts.push(&mut body);
    let at = random.usize(..texts.len());
    let text = &mut *texts[at];
    let start = random.usize(..=text.len());
    let end = text.len().min(start + random.usize(..3));
    text.replace_range(start..end, PIECES[random.usize(..PIECES.len())]);
    message.body = body.into_bytes();
}

#[tokio::test]
async fn however_a_message_is_damaged_we_take_nothing_that_they_refuse() {
    let peers = &mut Peers::default();
    let mut random = fastrand::Rng::with_seed(1);
    for vendor in &VENDORS {
        let signed = peers.sign(vendor, SECRET, NOW, BODY);
        let mut taken = 0;
        for _ in 0..1_000 {
            let mut message = signed.clone();
            for _ in 0..random.usize(1..=2) {
                damage(&mut message, &mut random);
            }
            if !ours::verify(vendor, &[SECRET], NOW, &message).await {
                continue;
            }
            taken += 1;
            assert!(
                !peers.refuse(vendor, SECRET, NOW, &message),
                "{} refuses {message:?}",
                vendor.package
            );
        }
        // Some damage is none: nothing replaced by nothing.
        assert!(taken > 0, "{}", vendor.package);
    }
}
