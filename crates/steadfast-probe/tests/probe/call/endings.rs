//! Calls without an answer.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::call;
use crate::kit::{Peer, Reply};

/// Asserts that there is no response in it.
fn assert_unanswered(answer: &Value) {
    assert_eq!(answer["status"], Value::Null);
    assert_eq!(answer["headers"], json!([]));
    assert_eq!(answer["body_base64"], Value::Null);
    assert_eq!(answer["replayed"], false);
}

#[test]
fn r11_a_cancelled_call_ends_and_is_never_repeated() {
    let peer = Peer::script([Reply::Hang]);
    let line = json!({"method": "POST", "url": peer.url(), "key": "k", "cancel_after_ms": 2_000});
    let answer = call(&[], &line);
    assert_unanswered(&answer);
    assert_eq!(answer["stopped"], "cancelled");
    assert_eq!(answer["attempts"], 1);
    assert_eq!(answer["key"], "k");
    assert_eq!(answer["error"], Value::Null);
    assert_eq!(answer["events"], json!([]));
    assert_eq!(peer.requests().len(), 1);
}

#[test]
fn r11_a_plain_call_is_cancelled_too() {
    let peer = Peer::script([Reply::Hang]);
    let line = json!({"url": peer.url(), "cancel_after_ms": 2_000});
    let answer = call(&["--plain"], &line);
    assert_unanswered(&answer);
    assert_eq!(answer["stopped"], "cancelled");
    assert_eq!(answer["attempts"], 1);
}

#[test]
fn r11_a_call_can_be_cancelled_in_its_pause() {
    let peer = Peer::script([Reply::With(503, "Retry-After: 60\r\n", "")]);
    let answer = call(&[], &json!({"url": peer.url(), "cancel_after_ms": 2_000}));
    assert_unanswered(&answer);
    assert_eq!(answer["stopped"], "cancelled");
    assert_eq!(answer["attempts"], 1);
    assert_eq!(answer["retry_after_ms"], 60_000);
    assert_eq!(answer["events"], json!([]));
}

#[test]
fn a_call_that_ends_in_time_is_not_cancelled() {
    let peer = Peer::script([Reply::With(200, "", "")]);
    let answer = call(&[], &json!({"url": peer.url(), "cancel_after_ms": 60_000}));
    assert_eq!(answer["status"], 200);
    assert_eq!(answer["stopped"], Value::Null);
}

#[test]
fn r10_an_attempt_without_an_answer_in_time_is_repeated_and_then_an_error() {
    let peer = Peer::script([Reply::Hang, Reply::Hang]);
    let flags = ["--attempt-timeout", "1s", "--retries", "1"];
    let answer = call(&flags, &json!({"url": peer.url()}));
    assert_unanswered(&answer);
    assert_eq!(answer["error"], "attempt timed out");
    assert_eq!(answer["stopped"], "attempts");
    assert_eq!(answer["attempts"], 2);
    assert_eq!(answer["events"][0]["status"], Value::Null);
    assert_eq!(peer.requests().len(), 2);
}

#[test]
fn r10_a_deadline_ends_the_whole_call() {
    let peer = Peer::script([Reply::Hang]);
    let answer = call(&["--deadline", "300ms"], &json!({"url": peer.url()}));
    assert_eq!(answer["status"], 504);
    assert_eq!(answer["stopped"], "deadline");
    assert_eq!(answer["attempts"], 1);
    assert_eq!(answer["error"], Value::Null);
    assert_eq!(answer["events"][0]["reason"], "deadline");
}

#[test]
fn r10_a_wait_past_the_deadline_is_not_begun() {
    let peer = Peer::script([Reply::With(503, "Retry-After: 30\r\n", "busy")]);
    let answer = call(&["--deadline", "20s"], &json!({"url": peer.url()}));
    assert_eq!(answer["status"], 503);
    assert_eq!(answer["stopped"], "deadline");
    assert_eq!(answer["waits_ms"], json!([]));
    assert_eq!(answer["retry_after_ms"], 30_000);
}

#[test]
fn r15_an_unreachable_server_is_an_error_with_a_report() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    drop(listener);
    let answer = call(&["--retries", "1"], &json!({"method": "POST", "url": url}));
    assert_unanswered(&answer);
    assert!(
        answer["error"]
            .as_str()
            .expect("an error")
            .contains("onnect")
    );
    assert_eq!(answer["attempts"], 2);
    assert_eq!(answer["stopped"], "attempts");
    assert!(answer["key"].is_string());
    assert_eq!(answer["events"][0]["status"], Value::Null);
    assert_eq!(answer["events"][0]["method"], "POST");

    let answer = call(&["--plain"], &json!({"url": url}));
    assert_unanswered(&answer);
    assert!(answer["error"].is_string());
    assert_eq!(answer["attempts"], 1);
}

#[test]
fn a_body_that_never_comes_whole_is_an_error() {
    let peer = Peer::script([Reply::Cut, Reply::Cut]);
    let answer = call(&["--retries", "1"], &json!({"url": peer.url()}));
    assert_unanswered(&answer);
    assert!(answer["error"].is_string());
    assert_eq!(answer["attempts"], 2);
    assert_eq!(answer["stopped"], "attempts");
}
