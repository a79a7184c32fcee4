//! The lines themselves.

use serde_json::{Value, json};

use super::call;
use crate::kit::{Lines, Peer, Reply};

const OK: Reply = Reply::With(200, "", "");

#[test]
fn an_answer_has_exactly_its_fields() {
    let fields = |answer: &Value| -> Vec<String> {
        let fields = answer.as_object().expect("an object");
        fields.keys().cloned().collect()
    };
    let mut expected = [
        "id",
        "status",
        "headers",
        "body_base64",
        "attempts",
        "waits_ms",
        "stopped",
        "retry_after_ms",
        "key",
        "replayed",
        "error",
        "events",
    ];
    expected.sort_unstable();
    let peer = Peer::script([OK]);
    assert_eq!(fields(&call(&[], &json!({"url": peer.url()}))), expected);
    let Lines { lines, .. } = Lines::of(&["call"], &["{}"]);
    assert_eq!(fields(&lines[0]), expected);
}

#[test]
fn headers_and_bodies_go_both_ways_as_they_are() {
    let peer = Peer::script([Reply::With(
        201,
        "Link: a\r\nLink: b\r\nX-Tea: gr\u{fc}n\r\n",
        "",
    )]);
    let line = json!({
        "method": "POST",
        "url": peer.url(),
        "headers": [["X-A", "1"], ["X-A", "2"], ["X-B", "gr\u{fc}n"]],
        "body_base64": "/wCA",
    });
    let answer = call(&[], &line);
    assert_eq!(answer["status"], 201);
    let headers = answer["headers"].as_array().expect("headers");
    for expected in [
        json!(["link", "a"]),
        json!(["link", "b"]),
        json!(["x-tea", "gr\u{fc}n"]),
    ] {
        assert!(headers.contains(&expected), "{headers:?}");
    }
    let sent = &peer.requests()[0];
    assert!(sent.start.starts_with("POST /orders "));
    assert_eq!(sent.all("x-a"), [b"1", b"2"]);
    assert_eq!(sent.all("x-b"), ["gr\u{fc}n".as_bytes()]);
    assert_eq!(sent.body, b"\xff\x00\x80");
}

#[test]
fn a_bad_line_is_answered_with_an_error_and_the_next_call_is_made() {
    let peer = Peer::script([OK]);
    let input = [
        "tea".to_owned(),
        json!({"id": "x", "url": peer.url(), "metod": "GET"}).to_string(),
        json!({"id": [1], "url": "https://127.0.0.1/"}).to_string(),
        json!({"id": "ok", "url": peer.url()}).to_string(),
    ];
    let Lines { lines, code } = Lines::of(&["call"], &input);
    assert_eq!(code, Some(2));
    let ids: Vec<_> = lines.iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, [Value::Null, json!("x"), json!([1]), json!("ok")]);
    assert!(lines[..3].iter().all(|line| line["error"].is_string()));
    assert!(lines[..3].iter().all(|line| line["attempts"] == 0));
    assert_eq!(lines[3]["status"], 200);
    assert_eq!(peer.requests().len(), 1);
}

#[test]
fn calls_are_made_one_after_the_other_on_one_connection() {
    let peer = Peer::script(vec![OK; 5]);
    let lines: Vec<_> = (0..5)
        .map(|id| json!({"id": id, "url": peer.url()}).to_string())
        .collect();
    let answers = Lines::of(&["call"], &lines).good();
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4].map(Value::from));
}

#[test]
fn concurrent_calls_are_answered_as_they_end() {
    let peer = Peer::script([Reply::After(3), OK, Reply::After(3)]);
    let line = |id| json!({"id": id, "url": peer.url()}).to_string();
    let lines = Lines::of(
        &["call", "--concurrency", "2"],
        &[line(0), line(1), line(2)],
    )
    .good();
    // One of the first two holds its place until the third has arrived, which needs the other's place.
    assert!(lines.iter().all(|line| line["status"] == 200));
    assert_ne!(lines[0]["id"], 2);
    assert_eq!(lines[0]["body_base64"], "");
    assert_eq!(lines.len(), 3);
}
