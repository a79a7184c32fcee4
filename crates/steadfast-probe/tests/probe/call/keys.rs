//! Keys, and both sides together.

use serde_json::{Value, json};

use super::call;
use crate::kit::{Lines, Peer, Reply, Server};

const BUSY: Reply = Reply::With(503, "Retry-After: 0\r\n", "");
const OK: Reply = Reply::With(200, "", "");

#[test]
fn i01_a_key_is_minted_once_for_a_call_and_sent_with_every_attempt() {
    for method in ["POST", "PATCH"] {
        for profile in ["default", "botix", "payments", "openemail"] {
            let peer = Peer::script([BUSY, OK]);
            let line = json!({"method": method, "url": peer.url(), "body": "tea"});
            let answer = call(&["--profile", profile], &line);
            let key = answer["key"].as_str().expect("a key");
            assert_eq!(key.len(), 36);
            let requests = peer.requests();
            assert_eq!(requests.len(), 2, "{profile}");
            for sent in requests {
                assert_eq!(sent.header("idempotency-key"), Some(key));
            }
        }
    }
}

#[test]
fn i02_two_calls_have_two_keys() {
    let peer = Peer::script([OK, OK]);
    let line = json!({"method": "POST", "url": peer.url()}).to_string();
    let answers = Lines::of(&["call"], &[&line, &line]).good();
    assert_ne!(answers[0]["key"], answers[1]["key"]);
}

#[test]
fn i01_reads_get_no_key() {
    let peer = Peer::script([OK]);
    assert_eq!(call(&[], &json!({"url": peer.url()}))["key"], Value::Null);
    assert_eq!(peer.requests()[0].header("idempotency-key"), None);
}

#[test]
fn i03_the_callers_key_wins() {
    for line in [
        json!({"key": "invoice:inv_4192"}),
        json!({"headers": [["Idempotency-Key", "invoice:inv_4192"]]}),
        json!({"key": "invoice:inv_4192", "headers": [["idempotency-key", "invoice:inv_4192"]]}),
    ] {
        let peer = Peer::script([OK]);
        let mut line = line;
        line["method"] = "POST".into();
        line["url"] = peer.url().into();
        assert_eq!(call(&[], &line)["key"], "invoice:inv_4192");
        let sent = &peer.requests()[0];
        assert_eq!(sent.header("idempotency-key"), Some("invoice:inv_4192"));
    }
}

#[test]
fn i07_a_bad_key_is_400_and_nothing_is_sent() {
    let peer = Peer::script([]);
    for line in [
        json!({"key": ""}),
        json!({"key": " k "}),
        json!({"key": "a,b"}),
        json!({"key": "\"k\""}),
        json!({"key": "a\r\nX-Smuggled: 1"}),
        json!({"key": "k".repeat(256)}),
        json!({"key": "ключ"}),
        json!({"headers": [["Idempotency-Key", "a"], ["Idempotency-Key", "a"]]}),
        json!({"key": "a", "headers": [["Idempotency-Key", "b"]]}),
    ] {
        let mut line = line;
        line["method"] = "POST".into();
        line["url"] = peer.url().into();
        let answer = call(&[], &line);
        assert_eq!(answer["status"], 400, "{line}");
        assert_eq!(answer["attempts"], 0, "{line}");
        assert_eq!(answer["key"], Value::Null, "{line}");
        assert_eq!(answer["error"], Value::Null, "{line}");
    }
    assert_eq!(peer.requests().len(), 0);
}

#[test]
fn i08_both_sides_together_make_one_run_of_two_calls() {
    let server = Server::start(&[]);
    let url = format!("http://{}/probe/a", server.address);
    let line = json!({"method": "POST", "url": url, "body": "tea", "key": "k"}).to_string();
    let answers = Lines::of(&["call"], &[&line, &line]).good();
    assert_eq!(answers[0]["replayed"], false);
    assert_eq!(answers[1]["replayed"], true);
    assert_eq!(answers[0]["body_base64"], answers[1]["body_base64"]);
    assert_eq!(server.runs("a"), (1, 1));
}

#[test]
fn i15_an_attempt_that_was_given_up_and_its_repeat_are_one_run() {
    let server = Server::start(&["--lease", "10s", "--ttl", "60s"]);
    let line = json!({
        "method": "POST",
        "url": format!("http://{}/probe/a", server.address),
        "headers": [["X-Delay-Ms", "600"]],
        "body": "tea",
    });
    let flags = ["--attempt-timeout", "300ms", "--retries", "20"];
    let answer = call(&flags, &line);
    assert_eq!(answer["status"], 200, "{answer}");
    assert_eq!(answer["replayed"], true);
    assert!(answer["attempts"].as_u64() >= Some(2));
    assert_eq!(server.runs("a"), (1, 1));
}
