//! What the senders themselves publish.

use super::{at, judge, post};
use crate::{HmacScheme, Reason, Scheme as _, Secret, SigningKey, Stamp};

#[test]
fn v2_v3_standard_webhooks() {
    let scheme = HmacScheme::standard_webhooks();
    for (secret, id, time, body, signature) in [
        (
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
        (
            "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
            "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
            1_649_367_553,
            r#"{"email":"test@example.com","username":"test_user"}"#,
            "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
        ),
    ] {
        let head = post(
            "/hook",
            &[
                ("webhook-id", id),
                ("webhook-timestamp", &time.to_string()),
                ("webhook-signature", signature),
            ],
        );
        let secret = scheme.secret(secret).unwrap();
        let verified = judge(&scheme, secret.clone(), &head, body, at(time)).unwrap();
        let message_id = verified.message_id().unwrap();
        assert_eq!(message_id.as_bytes(), id);
        assert!(message_id.is_signed());
        assert_eq!(verified.freshness().unwrap().until(), at(time + 300));
        // Svix takes it under both names.
        assert!(judge(&HmacScheme::svix(), secret, &head, body, at(time)).is_ok());
    }
}

#[test]
fn v6_v7_github() {
    let scheme = HmacScheme::github();
    for (secret, body, signature) in [
        (
            "It's a Secret to Everybody",
            "Hello, World!",
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        ),
        (
            "mysecret",
            r#"{"foo":"bar"}"#,
            "sha256=4864d2759938a15468b5df9ade20bf161da9b4f737ea61794142f3484236bda3",
        ),
    ] {
        let head = post(
            "/",
            &[
                ("x-hub-signature-256", signature),
                ("x-github-delivery", "72d3"),
            ],
        );
        let secret = scheme.secret(secret).unwrap();
        let verified = judge(&scheme, secret, &head, body, at(0)).unwrap();
        assert!(!verified.message_id().unwrap().is_signed());
        assert_eq!(verified.scheme(), "github");
        assert_eq!(
            verified.content().digest(),
            verified.content().body_digest()
        );
    }
}

#[test]
fn v9_slack() {
    let scheme = HmacScheme::slack();
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow\
        &channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner\
        &command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands\
        %2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN\
        &trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let head = post(
        "/",
        &[
            ("x-slack-request-timestamp", "1531420618"),
            (
                "x-slack-signature",
                "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
            ),
        ],
    );
    let secret = scheme.secret("8f742231b10e8888abcd99yyyzzz85a5").unwrap();
    assert!(judge(&scheme, secret, &head, body, at(1_531_420_618)).is_ok());
}

#[test]
fn v10_stripe() {
    let scheme = HmacScheme::stripe();
    let signature =
        "t=1700000000,v1=d95c6b7477fbd7e9f90b1b0ef5f9c7ac25abca5382460e0d988c2b2a5b71b990";
    let body = r#"{"id":"evt_test_webhook","object":"event"}"#;
    let head = post("/", &[("stripe-signature", signature)]);
    let secret = scheme.secret("whsec_test_secret").unwrap();
    assert!(judge(&scheme, secret.clone(), &head, body, at(1_700_000_000)).is_ok());

    let mut signed = post("/", &[]);
    let stamp = Stamp::random(at(1_700_000_000));
    scheme
        .sign(&mut signed, &body.into(), &secret.into(), &stamp)
        .unwrap();
    assert_eq!(signed.headers["stripe-signature"], signature);
}

#[test]
fn s02_payments() {
    let scheme = HmacScheme::payments();
    let key: Vec<u8> = (0..0x20).collect();
    let secret = Secret::from_bytes(key).unwrap();
    let body = r#"{"symbol":"BTC-USD","qty":"1.25"}"#;
    let mut head = post("/v1/orders?dry_run=false", &[]);
    let stamp = Stamp::new(at(1_700_000_000), "5f1c0e4e9a6b4d2f");
    let key = SigningKey::new("key_live_1", secret.clone());
    scheme.sign(&mut head, &body.into(), &key, &stamp).unwrap();
    for (name, value) in [
        ("x-key-id", "key_live_1"),
        ("x-timestamp", "1700000000000"),
        ("x-nonce", "5f1c0e4e9a6b4d2f"),
        (
            "x-signature",
            "c6d72a4f507e766ca385ad5cb3474a4569d21eb4e237992ab4e69bc7816421d4",
        ),
    ] {
        assert_eq!(head.headers[name], value);
    }
    let judge = |now| judge(&scheme, secret.clone(), &head, body, at(now)).map(|_| ());
    assert_eq!(judge(1_700_000_030), Ok(()));
    assert_eq!(judge(1_700_000_031), Err(Reason::Stale));
    assert_eq!(judge(1_699_999_970), Ok(()));
    assert_eq!(judge(1_699_999_969), Err(Reason::Early));
}

#[test]
fn v1_every_body_scheme_has_the_mac_of_rfc_4231() {
    let body = "what do ya want for nothing?";
    let hex = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    let base64 = "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=";
    for (scheme, header, signature) in [
        (
            HmacScheme::botix(),
            "x-botix-signature",
            format!("sha256={hex}"),
        ),
        (HmacScheme::dropbox(), "x-dropbox-signature", hex.into()),
        (HmacScheme::lemon_squeezy(), "x-signature", hex.into()),
        (HmacScheme::linear(), "linear-signature", hex.into()),
        (
            HmacScheme::meta(),
            "x-hub-signature-256",
            format!("sha256={hex}"),
        ),
        (
            HmacScheme::pagerduty(),
            "x-pagerduty-signature",
            format!("v1={hex}"),
        ),
        (
            HmacScheme::shopify(),
            "x-shopify-hmac-sha256",
            base64.into(),
        ),
        (
            HmacScheme::square(""),
            "x-square-hmacsha256-signature",
            base64.into(),
        ),
        (
            HmacScheme::webhook_signature(),
            "x-webhook-signature",
            format!("sha256={hex}"),
        ),
        (
            HmacScheme::webhook_signature(),
            "x-webhook-signature",
            hex.into(),
        ),
        (
            HmacScheme::woocommerce(),
            "x-wc-webhook-signature",
            base64.into(),
        ),
    ] {
        let head = post("/", &[(header, &signature)]);
        let secret = scheme.secret("Jefe").unwrap();
        assert!(
            judge(&scheme, secret, &head, body, at(0)).is_ok(),
            "{scheme:?}"
        );
    }
    // Only where it is said that the prefix may be missing.
    let head = post("/", &[("x-botix-signature", hex)]);
    let scheme = HmacScheme::botix();
    let judged = judge(&scheme, scheme.secret("Jefe").unwrap(), &head, body, at(0));
    assert_eq!(judged.unwrap_err(), Reason::Malformed);
}
