//! The verdicts on signed requests, and their reasons.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::kit::{Lines, SCHEMES, SECRET, Sample, sign};

const NOW: u64 = 1_700_000_000;

/// The published example of a signed API request.
fn payments() -> Value {
    json!({
        "scheme": "payments",
        "key_id": "key_live_1",
        "secret": "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "method": "POST",
        "url": "/v1/orders?dry_run=false",
        "headers": [
            ["X-Key-Id", "key_live_1"],
            ["X-Timestamp", "1700000000000"],
            ["X-Nonce", "5f1c0e4e9a6b4d2f"],
            ["X-Signature", "c6d72a4f507e766ca385ad5cb3474a4569d21eb4e237992ab4e69bc7816421d4"],
        ],
        "body_base64": BASE64_STANDARD.encode(r#"{"symbol":"BTC-USD","qty":"1.25"}"#),
        "now": NOW,
    })
}

fn payments_with(name: &str, value: impl Into<Value>) -> Value {
    let mut line = payments();
    line[name] = value.into();
    line
}

fn header(number: usize, value: &str) -> Value {
    let mut line = payments();
    line["headers"][number][1] = value.into();
    line
}

/// The reason of each verdict, or that there is none.
fn reasons(lines: &[Value]) -> Vec<Value> {
    let input: Vec<_> = lines.iter().map(Value::to_string).collect();
    let answers = Lines::of(&["verify"], &input).good();
    assert_eq!(answers.len(), lines.len());
    answers
        .into_iter()
        .map(|mut answer| {
            assert_eq!(answer.as_object().expect("an object").len(), 2);
            assert_eq!(answer["ok"], answer["reason"].is_null());
            answer["reason"].take()
        })
        .collect()
}

#[test]
fn s02_the_published_request_is_verified_and_each_change_has_its_reason() {
    let twice = [
        payments()["headers"].as_array().expect("headers"),
        &vec![json!(["x-nonce", "5f1c0e4e9a6b4d2f"])][..],
    ]
    .concat();
    let cases = [
        (payments(), None),
        (
            payments_with("url", "http://127.0.0.1/v1/orders?dry_run=false"),
            None,
        ),
        (payments_with("now", NOW + 30), None),
        (payments_with("now", NOW - 30), None),
        (payments_with("now", NOW + 31), Some("stale")),
        (payments_with("now", NOW - 31), Some("early")),
        (payments_with("now", Value::Null), Some("stale")),
        (payments_with("method", "PUT"), Some("mismatch")),
        (
            payments_with("url", "/v1/orders?dry_run=true"),
            Some("mismatch"),
        ),
        (payments_with("url", "/v1/orders"), Some("mismatch")),
        (payments_with("body_base64", ""), Some("mismatch")),
        (payments_with("secret", SECRET), Some("mismatch")),
        (payments_with("key_id", "key_live_2"), Some("unknown_key")),
        (payments_with("headers", json!([])), Some("missing")),
        (payments_with("headers", twice), Some("malformed")),
        (header(0, "key_live_2"), Some("unknown_key")),
        (header(1, "1700000000001"), Some("mismatch")),
        (header(1, "+1700000000000"), Some("malformed")),
        (header(1, "NaN"), Some("malformed")),
        (header(2, "5f1c0e4e9a6b4d2e"), Some("mismatch")),
        (header(3, ""), Some("malformed")),
        (
            header(
                3,
                "C6D72A4F507E766CA385AD5CB3474A4569D21EB4E237992AB4E69BC7816421D4",
            ),
            Some("malformed"),
        ),
        // No message can carry these.
        (header(2, "a\nb"), Some("malformed")),
        (header(2, "a\u{0}b"), Some("malformed")),
    ];
    let lines: Vec<_> = cases.iter().map(|(line, _)| line.clone()).collect();
    for ((line, expected), reason) in cases.iter().zip(reasons(&lines)) {
        assert_eq!(reason, json!(expected), "{line}");
    }
}

#[test]
fn s01_the_prefix_of_a_webhooks_signature_may_be_missing_where_it_may() {
    const HEX: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let line = |scheme: &str, header: &str, prefix: &str| {
        json!({
            "scheme": scheme,
            "secret": "It's a Secret to Everybody",
            "headers": [[header, format!("{prefix}{HEX}")]],
            "body_base64": BASE64_STANDARD.encode("Hello, World!"),
        })
    };
    let webhook = |prefix| line("webhook_signature", "X-Webhook-Signature", prefix);
    let botix = |prefix| line("botix", "X-Botix-Signature", prefix);
    let lines = [
        webhook("sha256="),
        webhook(""),
        webhook("sha1="),
        botix("sha256="),
        botix(""),
    ];
    let expected = [
        Value::Null,
        Value::Null,
        "malformed".into(),
        Value::Null,
        "malformed".into(),
    ];
    assert_eq!(reasons(&lines), expected);
}

#[test]
fn s04_what_sign_signs_verify_takes() {
    let lines = SCHEMES.map(|scheme| {
        let id = scheme.id.map(|id| (id, "msg_1"));
        json!({
            "scheme": scheme.name,
            "secret": scheme.signs,
            "key_id": "key_1",
            "method": "POST",
            "url": "https://example.com/hook?a=b",
            "headers": id.as_slice(),
            "body_base64": "/wCA",
        })
    });
    let mut good = lines.to_vec();
    for (line, headers) in good.iter_mut().zip(sign(&lines)) {
        line["headers"] = json!(headers);
    }
    for (line, Sample { verifies, .. }) in good.iter_mut().zip(SCHEMES) {
        line["secret"] = verifies.into();
    }
    assert_eq!(reasons(&good), vec![Value::Null; SCHEMES.len()]);

    let is_signed = |line: &&mut Value| line["scheme"] != "gitlab" && line["scheme"] != "telegram";
    let mut tampered = good.clone();
    for line in tampered.iter_mut().filter(is_signed) {
        line["body_base64"] = "/wCB".into();
    }
    for (line, reason) in tampered.iter().zip(reasons(&tampered)) {
        let expected = match line["scheme"].as_str() {
            Some("gitlab" | "telegram") => Value::Null,
            _ => "mismatch".into(),
        };
        assert_eq!(reason, expected, "{line}");
    }
}

#[test]
fn s05_a_line_that_cannot_be_used_is_an_error_without_its_secret() {
    let input = [
        "{".to_owned(),
        "\"s3cret\"".to_owned(),
        payments_with("scheme", "paymints").to_string(),
        payments_with("secret", "").to_string(),
        payments_with("secret", "hex:s3cret").to_string(),
        payments_with("secret", json!({"s3cret": "s3cret"})).to_string(),
        payments_with("key_id", "").to_string(),
        payments_with("body_base64", "?").to_string(),
        payments_with("more", 1).to_string(),
        json!({"scheme": "discord", "secret": "s3cret"}).to_string(),
        payments().to_string(),
    ];
    let Lines { lines, code } = Lines::of(&["verify"], &input);
    assert_eq!(code, Some(2));
    assert_eq!(lines.len(), input.len());
    let (last, refused) = lines.split_last().expect("lines");
    for (answer, line) in refused.iter().zip(&input) {
        let error = answer["error"].as_str();
        let error = error.unwrap_or_else(|| panic!("{line}: {answer}"));
        assert!(!error.contains("s3cret"), "{line}: {error}");
    }
    assert_eq!(*last, json!({"ok": true, "reason": null}));
}
