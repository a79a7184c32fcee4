use crate::{BODY, NOW, OTHER_SECRET, Peers, SECRET, VENDORS, ours, verdict};

/// Texts that do not survive being parsed and written again, or being taken for another encoding.
fn texts() -> Vec<Vec<u8>> {
    let long = format!("{{\"long\":\"{}\"}}", "x".repeat(100_000));
    [
        "{}",
        "{\"test\": 2432232314}",
        "{ \"amount\" : 1.0,\r\n\t\"amount\":1e0 }\n\n",
        "{\"text\":\"h\u{e9}llo \u{1f980}, \u{4e2d}\u{6587}, \u{2028}\"}",
        r#"{"text":"h\u00e9llo \u001B \u001b \/ /"}"#,
        "\u{0}{\u{7f}}\u{0}",
        "token=xyzz0&text=a+b%20c&empty=",
        "1700000000.{}",
        &long,
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

#[tokio::test]
async fn s01_what_they_sign_is_verified_here() {
    let peers = &mut Peers::default();
    for vendor in &VENDORS {
        for body in texts() {
            let message = peers.sign(vendor, SECRET, NOW, &body);
            assert!(
                verdict(peers, vendor, SECRET, NOW, &message).await,
                "{message:?}"
            );
            assert!(
                !verdict(peers, vendor, OTHER_SECRET, NOW, &message).await,
                "{message:?}"
            );
        }
    }
}

#[tokio::test]
async fn s01_what_is_signed_here_they_verify() {
    let peers = &mut Peers::default();
    for vendor in &VENDORS {
        for body in texts() {
            let message = ours::sign(vendor, SECRET, NOW, &body).await;
            assert!(
                verdict(peers, vendor, SECRET, NOW, &message).await,
                "{message:?}"
            );
            assert!(
                !verdict(peers, vendor, OTHER_SECRET, NOW, &message).await,
                "{message:?}"
            );
        }
    }
}

#[tokio::test]
async fn s01_both_sign_the_same_headers() {
    let peers = &mut Peers::default();
    for vendor in &VENDORS {
        let theirs = peers.sign(vendor, SECRET, NOW, BODY);
        let ours = ours::sign(vendor, SECRET, NOW, BODY).await;
        for (name, value) in theirs.headers {
            assert_eq!(
                ours.headers.get(&name),
                Some(&value),
                "{} of {}",
                name,
                vendor.package
            );
        }
    }
}
