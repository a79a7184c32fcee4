//! The headers of signed requests: published examples, and what every line shares.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::kit::{Headers, Lines, sign};

fn value<'a>(headers: &'a Headers, name: &str) -> &'a str {
    let mut values = headers.iter().filter(|(known, _)| known == name);
    let (_, value) = values.next().expect("it is there");
    assert!(values.next().is_none(), "{name} is there once");
    value
}

fn line(scheme: &str, secret: &str, now: u64, body: &str) -> Value {
    json!({
        "scheme": scheme,
        "secret": secret,
        "method": "POST",
        "url": "http://127.0.0.1/hook",
        "headers": [["Webhook-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek"], ["X-Other", "kept"]],
        "body_base64": BASE64_STANDARD.encode(body),
        "now": now,
    })
}

#[test]
fn s04_published_examples_are_signed_as_published() {
    let whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let raw = "hex:31f290f6bf06298aab4f08d43c3f082cf648a362da2da4b0";
    let stripe = r#"{"id":"evt_test_webhook","object":"event"}"#;
    let standard = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    let cases = [
        (
            line("github", "It's a Secret to Everybody", 0, "Hello, World!"),
            "x-hub-signature-256",
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        ),
        (
            line("github", "mysecret", 0, r#"{"foo":"bar"}"#),
            "x-hub-signature-256",
            "sha256=4864d2759938a15468b5df9ade20bf161da9b4f737ea61794142f3484236bda3",
        ),
        (
            line("stripe", "whsec_test_secret", 1_700_000_000, stripe),
            "stripe-signature",
            "t=1700000000,v1=d95c6b7477fbd7e9f90b1b0ef5f9c7ac25abca5382460e0d988c2b2a5b71b990",
        ),
        (
            line(
                "standard_webhooks",
                whsec,
                1_614_265_330,
                r#"{"test": 2432232314}"#,
            ),
            "webhook-signature",
            standard,
        ),
        (
            line(
                "standard_webhooks",
                raw,
                1_614_265_330,
                r#"{"test": 2432232314}"#,
            ),
            "webhook-signature",
            standard,
        ),
    ];
    let lines: Vec<_> = cases.iter().map(|(line, ..)| line.clone()).collect();
    for (headers, (_, name, expected)) in sign(&lines).iter().zip(&cases) {
        assert_eq!(value(headers, name), *expected);
        assert_eq!(value(headers, "x-other"), "kept");
    }
}

#[test]
fn r12_each_signature_has_a_nonce_of_its_own() {
    let mut line = line(
        "payments",
        "a secret of 26 bytes or so",
        1_700_000_000,
        "{}",
    );
    line["key_id"] = "key_live_1".into();
    line["headers"] = json!([["X-Nonce", "mine"], ["X-Signature", "00"]]);
    let signed = sign(&[line.clone(), line]);
    for headers in &signed {
        assert_eq!(value(headers, "x-key-id"), "key_live_1");
        assert_eq!(value(headers, "x-timestamp"), "1700000000000");
        assert_eq!(value(headers, "x-signature").len(), 64);
        assert_ne!(value(headers, "x-nonce"), "mine");
    }
    for name in ["x-nonce", "x-signature"] {
        assert_ne!(value(&signed[0], name), value(&signed[1], name));
    }
}

#[test]
fn what_a_line_leaves_out_is_the_default() {
    let line = json!({"scheme": "payments", "secret": "a secret of 26 bytes or so"});
    let [headers] = &sign(&[line])[..] else {
        panic!("not one answer");
    };
    assert_eq!(value(headers, "x-key-id"), "default");
    let mut names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["x-key-id", "x-nonce", "x-signature", "x-timestamp"]);
}

#[test]
fn s05_a_line_that_cannot_be_used_is_an_error_without_its_secret() {
    let good = line("botix", "s3cret", 0, "tea");
    let with = |name: &str, value: Value| {
        let mut line = good.clone();
        line[name] = value;
        line.to_string()
    };
    let without = |name: &str| {
        let mut line = good.clone();
        line.as_object_mut().expect("an object").remove(name);
        line.to_string()
    };
    let input = [
        "{\"secret\":\"s3cret\"".to_owned(),
        "\"s3cret\"".to_owned(),
        "[\"s3cret\"]".to_owned(),
        with("scheme", "botox".into()),
        with("scheme", "standard_webhooks".into()),
        with("secret", "".into()),
        with("secret", "hex:".into()),
        with("secret", "hex:s3cret".into()),
        with("secret", json!(["s3cret"])),
        with("secret", Value::Null),
        without("secret"),
        without("scheme"),
        with("method", "G T".into()),
        with("url", "not a url".into()),
        with("headers", json!([["a b", "c"]])),
        with("headers", json!([["a", "b\r\nc: d"]])),
        with("headers", json!([["a"]])),
        with("body_base64", "?".into()),
        with("now", (-1).into()),
        with("now", u64::MAX.into()),
        with("more", 1.into()),
        json!({"scheme": "square", "secret": "s3cret"}).to_string(),
        // Neither the public half of a key nor a message without its id can be signed.
        json!({"scheme": "svix", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}).to_string(),
        with("key_id", "not a key id".into()).replace("botix", "payments"),
        good.to_string(),
    ];
    let Lines { lines, code } = Lines::of(&["sign"], &input);
    assert_eq!(code, Some(2));
    assert_eq!(lines.len(), input.len());
    let (last, refused) = lines.split_last().expect("lines");
    for (answer, line) in refused.iter().zip(&input) {
        let error = answer["error"].as_str();
        let error = error.unwrap_or_else(|| panic!("{line}: {answer}"));
        assert!(!error.contains("s3cret"), "{line}: {error}");
        assert_eq!(answer.as_object().expect("an object").len(), 1);
    }
    assert!(last["headers"].is_array());
}
