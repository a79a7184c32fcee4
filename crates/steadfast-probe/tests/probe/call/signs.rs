//! `--sign`: each attempt is signed afresh.

use serde_json::{Value, json};

use super::call;
use crate::kit::{KeyFile, Lines, Message, Peer, Reply, Server};

const FLAG: &str = "payments:key_1:a secret: with colons, and hex:00";
const SECRET: &str = "a secret: with colons, and hex:00";
const BUSY: Reply = Reply::With(503, "Retry-After: 0\r\n", "busy");
const OK: Reply = Reply::With(200, "", "tea");

fn keys() -> KeyFile {
    KeyFile::new(&format!("[payments]\nkey_1 = [\"{SECRET}\"]\n"))
}

fn order(url: &str) -> Value {
    json!({"method": "POST", "url": url, "body": "tea", "key": "k"})
}

/// What `probe verify` says of a request that arrived.
fn verdict(request: &Message) -> Value {
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text");
    let headers = request.headers.iter();
    let headers: Vec<_> = headers.map(|(name, value)| (name, text(value))).collect();
    let line = json!({
        "scheme": "payments",
        "key_id": "key_1",
        "secret": SECRET,
        "method": request.start.split(' ').next(),
        "url": request.start.split(' ').nth(1),
        "headers": headers,
        "body_base64": "dGVh",
    });
    Lines::of(&["verify"], &[line.to_string()]).only()
}

#[test]
fn r12_each_attempt_is_signed_afresh() {
    let peer = Peer::script([BUSY, BUSY, OK]);
    let answer = call(&["--sign", FLAG], &order(&peer.url()));
    assert_eq!(
        (&answer["status"], &answer["attempts"]),
        (&json!(200), &json!(3))
    );
    let requests = peer.requests();
    let mut nonces: Vec<_> = requests
        .iter()
        .map(|request| request.header("x-nonce"))
        .collect();
    nonces.sort_unstable();
    nonces.dedup();
    assert_eq!(nonces.len(), 3);
    for request in &requests {
        assert_eq!(request.header("x-key-id"), Some("key_1"));
        assert_eq!(request.header("idempotency-key"), Some("k"));
        assert_eq!(verdict(request), json!({"ok": true, "reason": null}));
    }
}

#[test]
fn s03_what_is_signed_passes_the_server() {
    let keys = keys();
    let server = Server::start(&["--keys", keys.path()]);
    let url = format!("http://{}/verify/payments?a=b", server.address);
    let flags = ["--sign", FLAG, "--retries", "2"];
    let mut lines = vec![order(&url), json!({"url": url})];
    lines.push(json!({"method": "POST", "url": url, "stream_base64": ["dGVh", "dGVh"]}));
    for line in lines {
        let answer = call(&flags, &line);
        assert_eq!(
            (&answer["status"], &answer["attempts"]),
            (&json!(200), &json!(1)),
            "{line}"
        );
    }
    let answer = call(&["--sign", "payments:key_1:another"], &order(&url));
    assert_eq!(answer["status"], 401);
    let answer = call(&[], &order(&url));
    assert_eq!(answer["status"], 401);
}

#[test]
fn r03_a_refused_signature_is_made_once_more() {
    let keys = keys();
    let server = Server::start(&["--keys", keys.path(), "--now", "1000"]);
    let url = format!("http://{}/verify/payments", server.address);
    let answer = call(&["--profile", "payments", "--sign", FLAG], &order(&url));
    assert_eq!(
        (&answer["status"], &answer["attempts"]),
        (&json!(401), &json!(2))
    );

    let peer = Peer::script([Reply::With(401, "", ""), OK]);
    let answer = call(
        &["--profile", "payments", "--sign", FLAG],
        &order(&peer.url()),
    );
    assert_eq!(
        (&answer["status"], &answer["attempts"]),
        (&json!(200), &json!(2))
    );
    let [first, second] = &peer.requests()[..] else {
        panic!("not two requests");
    };
    assert_ne!(first.header("x-signature"), second.header("x-signature"));
}

#[test]
fn s03_what_cannot_be_signed_is_not_sent() {
    let peer = Peer::script([]);
    let whsec = "svix:default:whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let answer = call(&["--sign", whsec], &order(&peer.url()));
    assert_eq!(answer["status"], Value::Null);
    assert_eq!(
        answer["error"],
        "signing_impossible: the message has no id to sign"
    );
    assert_eq!(answer["headers"], json!([]));
    assert!(peer.requests().is_empty());
}
