//! What is repeated, and after which wait.

use serde_json::{Value, json};
use tokio::time::Duration;

use super::call;
use crate::kit::{Lines, Peer, Reply};

const BUSY: Reply = Reply::With(503, "Retry-After: 0\r\n", "busy");
const OK: Reply = Reply::With(200, "", "tea");

#[test]
fn r02_a_failing_server_is_asked_again_after_growing_waits() {
    let failing = Reply::With(503, "", "");
    let peer = Peer::script([failing, failing, OK]);
    let answer = call(&[], &json!({"id": 7, "url": peer.url()}));
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["status"], 200);
    assert_eq!(answer["body_base64"], "dGVh");
    assert_eq!(answer["attempts"], 3);
    assert_eq!(answer["stopped"], Value::Null);
    assert_eq!(answer["error"], Value::Null);
    assert_eq!(answer["events"], json!([]));
    let waits = answer["waits_ms"].as_array().expect("waits");
    let wait = |n: usize| waits[n].as_u64().expect("a wait");
    assert!((250..=500).contains(&wait(0)), "{waits:?}");
    assert!((500..=1_000).contains(&wait(1)), "{waits:?}");
    assert_eq!(waits.len(), 2);
    assert_eq!(peer.requests().len(), 3);
}

#[test]
fn r04_a_named_wait_is_kept_exactly_and_never_cut_short() {
    let peer = Peer::script([Reply::With(429, "Retry-After: 1\r\n", ""), OK]);
    let answer = call(&[], &json!({"url": peer.url()}));
    assert_eq!(answer["status"], 200);
    assert_eq!(answer["waits_ms"], json!([1_000]));
    assert_eq!(answer["id"], Value::Null);
    let [(_, first), (_, second)] = &peer.received()[..] else {
        panic!("not two requests");
    };
    assert!(*second - *first >= Duration::from_secs(1));
}

#[test]
fn r06_a_wait_over_the_cap_stops_the_call() {
    let asks = Reply::With(429, "Retry-After: 61\r\n", "later");
    let peer = Peer::script([asks, asks]);
    let answer = call(&[], &json!({"url": peer.url()}));
    assert_eq!(answer["status"], 429);
    assert_eq!(answer["stopped"], "over_cap");
    assert_eq!(answer["attempts"], 1);
    assert_eq!(answer["waits_ms"], json!([]));
    assert_eq!(answer["retry_after_ms"], 61_000);
    assert_eq!(
        answer["events"],
        json!([{
            "method": "GET",
            "host": "127.0.0.1",
            "status": 429,
            "attempts": 1,
            "reason": "over_cap",
            "retry_after_ms": 61_000,
        }])
    );
    assert_eq!(peer.requests().len(), 1);

    let answer = call(
        &["--cap", "500ms"],
        &json!({"url": Peer::script([Reply::With(503, "Retry-After: 1\r\n", "")]).url()}),
    );
    assert_eq!(answer["stopped"], "over_cap");
}

#[test]
fn r08_retries_are_those_after_the_first_attempt() {
    for (retries, attempts) in [("0", 1), ("1", 2), ("5", 6)] {
        let peer = Peer::script(vec![BUSY; 9]);
        let answer = call(&["--retries", retries], &json!({"url": peer.url()}));
        assert_eq!(answer["status"], 503);
        assert_eq!(answer["stopped"], "attempts");
        assert_eq!(answer["attempts"], attempts);
        assert_eq!(answer["events"][0]["reason"], "attempts");
        assert_eq!(peer.requests().len(), attempts);
    }
}

#[test]
fn r08_profiles_have_their_own_number() {
    for (profile, attempts) in [
        ("default", 3),
        ("openemail", 3),
        ("payments", 6),
        ("botix", 5),
    ] {
        let peer = Peer::script(vec![BUSY; 9]);
        let answer = call(&["--profile", profile], &json!({"url": peer.url()}));
        assert_eq!(answer["attempts"], attempts, "{profile}");
    }
}

#[test]
fn r03_what_a_profile_does_not_repeat_is_returned_at_once() {
    for (profile, status, stopped) in [
        ("botix", 500, Value::Null),
        ("botix", 503, Value::Null),
        ("default", 404, Value::Null),
        ("openemail", 429, json!("not_repeatable")),
    ] {
        let peer = Peer::script([Reply::With(status, "", "")]);
        let answer = call(&["--profile", profile], &json!({"url": peer.url()}));
        assert_eq!(answer["status"], status, "{profile}");
        assert_eq!(answer["attempts"], 1, "{profile}");
        assert_eq!(answer["stopped"], stopped, "{profile} {status}");
    }
}

#[test]
fn r01_what_may_not_be_repeated_is_sent_once() {
    for line in [
        json!({"method": "POST", "body": "tea", "repeatable": false}),
        json!({"method": "POST", "body": "tea", "key": "k", "repeatable": false}),
        json!({"method": "GET", "repeatable": false}),
        json!({"method": "PUT", "body": "tea"}),
    ] {
        let peer = Peer::script([BUSY]);
        let mut line = line;
        line["url"] = peer.url().into();
        let answer = call(&[], &line);
        assert_eq!(answer["status"], 503, "{line}");
        assert_eq!(answer["attempts"], 1, "{line}");
        assert_eq!(answer["stopped"], "not_repeatable", "{line}");
        assert_eq!(answer["events"][0]["reason"], "not_repeatable", "{line}");
    }
}

#[test]
fn r01_what_is_declared_repeatable_is_repeated() {
    let peer = Peer::script([BUSY, OK]);
    let line = json!({"method": "PUT", "url": peer.url(), "body": "tea", "repeatable": true});
    let answer = call(&[], &line);
    assert_eq!(answer["status"], 200);
    assert_eq!(answer["key"], Value::Null);
    let bodies: Vec<_> = peer.requests().into_iter().map(|sent| sent.body).collect();
    assert_eq!(bodies, [b"tea", b"tea"]);
}

#[test]
fn a_stream_of_unknown_length_is_repeated_byte_by_byte() {
    for stream in [
        json!(["dGVh", "", "IGFuZA==", "IG1pbGs="]),
        json!("dGVhIGFuZCBtaWxr"),
    ] {
        let peer = Peer::script([BUSY, OK]);
        let line = json!({"method": "POST", "url": peer.url(), "stream_base64": stream});
        assert_eq!(call(&[], &line)["attempts"], 2);
        for sent in peer.requests() {
            assert!(sent.was_chunked);
            assert_eq!(sent.body, b"tea and milk");
        }
        assert_eq!(peer.requests().len(), 2);
    }
}

#[test]
fn a_response_that_breaks_off_is_a_failed_attempt() {
    let peer = Peer::script([Reply::Cut, Reply::Close, OK]);
    let answer = call(&[], &json!({"url": peer.url()}));
    assert_eq!(answer["status"], 200);
    assert_eq!(answer["attempts"], 3);
    assert_eq!(answer["body_base64"], "dGVh");
}

#[test]
fn r13_a_budget_ends_what_retries_would_not() {
    let storm = || Peer::script(vec![BUSY; 50]);
    let answer = call(
        &["--retries", "40", "--budget"],
        &json!({"url": storm().url()}),
    );
    assert_eq!(answer["stopped"], "budget");
    assert_eq!(answer["attempts"], 36);
    let answer = call(&["--retries", "40"], &json!({"url": storm().url()}));
    assert_eq!(answer["stopped"], "attempts");
    assert_eq!(answer["attempts"], 41);
}

#[test]
fn r13_all_calls_of_a_run_pay_from_one_budget() {
    let peer = Peer::script(vec![BUSY; 50]);
    let line = json!({"url": peer.url()}).to_string();
    let flags = ["call", "--retries", "35", "--budget"];
    let answers = Lines::of(&flags, &[&line, &line]).good();
    assert_eq!(answers[0]["stopped"], "attempts");
    assert_eq!(answers[1]["stopped"], "budget");
    assert_eq!(answers[1]["attempts"], 1);
}

#[test]
fn r09_every_call_that_is_given_up_has_its_event() {
    let peer = Peer::script(vec![Reply::With(429, "Retry-After: 61\r\n", ""); 3]);
    let line = json!({"url": peer.url()}).to_string();
    let answers = Lines::of(&["call"], &[&line, &line, &line]).good();
    for answer in answers {
        assert_eq!(answer["events"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn plain_is_the_bare_client() {
    let peer = Peer::script([BUSY, OK]);
    let line = json!({"method": "POST", "url": peer.url(), "body": "tea"});
    let answer = call(&["--plain"], &line);
    assert_eq!(answer["status"], 503);
    assert_eq!(answer["attempts"], 1);
    assert_eq!(answer["key"], Value::Null);
    assert_eq!(answer["stopped"], Value::Null);
    assert_eq!(answer["retry_after_ms"], 0);
    assert_eq!(answer["events"], json!([]));
    assert_eq!(peer.requests()[0].header("idempotency-key"), None);

    let mut line = line;
    line["key"] = "k".into();
    assert_eq!(call(&["--plain"], &line)["key"], "k");
    assert_eq!(peer.requests()[1].header("idempotency-key"), Some("k"));
}
