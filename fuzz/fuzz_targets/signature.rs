//! Reads arbitrary field lines as what a sender presents in each ready-made scheme.
//!
//! The first byte of each line says which field it is on. No request may panic,
//! and none may be taken for a signed one: the secret is not in the corpus. Each
//! head that can be signed has to be verified afterwards, and no more once a byte
//! is added to its body.
#![no_main]

use std::{
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, request::Parts};
use libfuzzer_sys::fuzz_target;
use steadfast_core::Clock;
use steadfast_signature::{
    HmacScheme, Reason, Scheme, Secret, SecretToken, Secrets, SigningKey, Stamp, verify,
};

static SCHEMES: LazyLock<Vec<(Box<dyn Scheme>, &'static [&'static str])>> = LazyLock::new(|| {
    vec![
        (
            Box::new(HmacScheme::botix()),
            &["x-botix-signature", "x-botix-request-id"],
        ),
        (
            Box::new(HmacScheme::webhook_signature()),
            &["x-webhook-signature", "x-webhook-id"],
        ),
        (
            Box::new(HmacScheme::payments()),
            &["x-signature", "x-timestamp", "x-key-id", "x-nonce"],
        ),
        (
            Box::new(HmacScheme::svix()),
            &[
                "svix-signature",
                "svix-timestamp",
                "svix-id",
                "webhook-signature",
                "webhook-id",
            ],
        ),
        (Box::new(HmacScheme::stripe()), &["stripe-signature"]),
        (Box::new(HmacScheme::paddle()), &["paddle-signature"]),
        (
            Box::new(HmacScheme::shopify()),
            &["x-shopify-hmac-sha256", "x-shopify-webhook-id"],
        ),
        (
            Box::new(HmacScheme::slack()),
            &["x-slack-signature", "x-slack-request-timestamp"],
        ),
        (
            Box::new(HmacScheme::okx()),
            &["ok-access-sign", "ok-access-timestamp", "ok-access-key"],
        ),
        (Box::new(SecretToken::gitlab()), &["x-gitlab-token"]),
    ]
});

static SECRET: LazyLock<Secret> =
    LazyLock::new(|| Secret::from_bytes([0x5a; 32]).expect("it is not empty"));

fuzz_target!(|input: &[u8]| {
    for (scheme, fields) in SCHEMES.iter() {
        let mut head = presented(fields, input);
        assert!(judge(&**scheme, &head, input).is_err());

        let body = Bytes::copy_from_slice(input);
        let key = SigningKey::new("key_1", SECRET.clone());
        let stamp = Stamp::new(now(), "5f1c0e4e9a6b4d2f");
        if scheme.name() == "gitlab" || scheme.sign(&mut head, &body, &key, &stamp).is_err() {
            continue;
        }
        // A field that the sender repeats, and that is neither signed nor set, stays repeated.
        if judge(&**scheme, &head, input) == Err(Reason::Malformed) {
            continue;
        }
        assert_eq!(judge(&**scheme, &head, input), Ok(()));
        let longer = [input, b"x"].concat();
        assert_eq!(judge(&**scheme, &head, &longer), Err(Reason::Mismatch));
    }
});

fn presented(fields: &[&'static str], input: &[u8]) -> Parts {
    let request = Request::post("/orders?dry_run=1").body(());
    let mut head = request.expect("it is a request").into_parts().0;
    for line in input.split(|&byte| byte == b'\n') {
        let Some((field, value)) = line.split_first() else {
            continue;
        };
        let name = HeaderName::from_static(fields[usize::from(*field) % fields.len()]);
        if let Ok(value) = HeaderValue::from_bytes(value) {
            head.headers.append(name, value);
        }
    }
    head
}

fn judge(scheme: &dyn Scheme, head: &Parts, body: &[u8]) -> Result<(), Reason> {
    let secrets = Secrets::from(SECRET.clone());
    let body = Bytes::copy_from_slice(body);
    verify(scheme, &secrets, head, &body, &Clock::from_fn(now)).map(|_| ())
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}
