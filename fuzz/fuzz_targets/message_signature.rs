//! Reads arbitrary field lines as an HTTP message signature.
//!
//! The first byte of each line says which field it is on. No request may panic,
//! and none may be taken for a signed one.
#![no_main]

use std::{
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, header::HOST};
use libfuzzer_sys::fuzz_target;
use steadfast_core::Clock;
use steadfast_signature::{MessageSignatures, Secret, Secrets, verify};

static SECRETS: LazyLock<Secrets> = LazyLock::new(|| {
    Secret::from_bytes([0x5a; 32])
        .expect("it is not empty")
        .into()
});

fuzz_target!(|input: &[u8]| {
    let request = Request::post("/orders?dry_run=1").body(());
    let mut head = request.expect("it is a request").into_parts().0;
    head.headers = fields(input);
    let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for scheme in [
        MessageSignatures::hmac_sha256(),
        MessageSignatures::ed25519(),
    ] {
        let body = Bytes::copy_from_slice(input);
        assert!(verify(&scheme, &SECRETS, &head, &body, &Clock::from_fn(now)).is_err());
    }
});

fn fields(input: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in input.split(|&byte| byte == b'\n') {
        let Some((field, value)) = line.split_first() else {
            continue;
        };
        let name = match field {
            b'd' => HeaderName::from_static("content-digest"),
            b'h' => HOST,
            b's' => HeaderName::from_static("signature"),
            _ => HeaderName::from_static("signature-input"),
        };
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(name, value);
        }
    }
    headers
}
