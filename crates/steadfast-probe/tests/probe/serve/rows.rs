//! Whether the flags reach the layer: one test for each kind of answer.

use serde_json::json;

use crate::kit::{Message, Server, exchange, keyed, request, send};

const KEY: &str = "Idempotency-Key";

fn post(server: &Server, headers: &[(&str, &str)], body: &str) -> Message {
    exchange(server.address, &request("POST", "/probe/a", headers, body))
}

#[test]
fn i06_a_call_without_a_key_passes_through() {
    let server = Server::start(&[]);
    assert_eq!(
        post(&server, &[], "tea").json(),
        json!({"name": "a", "tenant": "t0", "run": 1})
    );
    assert_eq!(post(&server, &[], "tea").json()["run"], 2);
}

#[test]
fn i06_a_key_can_be_required() {
    let server = Server::start(&["--require-key"]);
    let refused = post(&server, &[], "tea");
    assert_eq!(refused.status(), 400);
    assert_eq!(refused.code(), "idempotency_key_missing");
    assert_eq!(server.runs("a"), (0, 0));
    assert_eq!(server.get("/probe/a").status(), 200);
}

#[test]
fn i07_bad_keys_are_refused_and_nothing_runs() {
    let server = Server::start(&[]);
    for keys in [
        &[(KEY, "")][..],
        &[(KEY, "a b")],
        &[(KEY, "inv:1")],
        &[(KEY, "a"), (KEY, "a")],
        &[(KEY, "\"a")],
        &[(KEY, &"a".repeat(65))],
    ] {
        let refused = post(&server, keys, "tea");
        assert_eq!(refused.status(), 400, "{keys:?}");
        assert_eq!(refused.code(), "idempotency_key_invalid", "{keys:?}");
    }
    assert_eq!(server.runs("a"), (0, 0));
}

#[test]
fn i07_other_rules_admit_other_keys() {
    let server = Server::start(&["--key-rule", "loose"]);
    assert_eq!(server.post("/probe/a", "inv:1", &[]).status(), 200);
    assert!(server.post("/probe/a", "inv:1", &[]).is_replay());
}

#[test]
fn i09_another_request_with_the_key_is_refused() {
    for (args, status) in [(&[][..], 422), (&["--mismatch-status", "400"], 400)] {
        let server = Server::start(args);
        assert_eq!(post(&server, &[(KEY, "k")], "tea").status(), 200);
        let refused = post(&server, &[(KEY, "k")], "coffee");
        assert_eq!(refused.status(), status);
        assert_eq!(refused.code(), "idempotency_key_reuse");
        assert_eq!(server.runs("a"), (1, 1));
    }
}

#[test]
fn i13_a_duplicate_of_a_running_call_gets_409() {
    let server = Server::start(&[]);
    let _running = send(
        server.address,
        &keyed("/probe/a", "k", &[("X-Delay-Ms", "600000")]),
    );
    server.wait_for_start("a");
    let refused = server.post("/probe/a", "k", &[]);
    assert_eq!(refused.status(), 409);
    assert_eq!(refused.code(), "idempotency_in_progress");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // Also while the first one runs, another request is a misuse.
    assert_eq!(post(&server, &[(KEY, "k")], "coffee").status(), 422);
    assert_eq!(server.runs("a"), (1, 0));
}

#[test]
fn i13_a_duplicate_may_wait_for_the_answer() {
    let server = Server::start(&["--lease", "20s", "--ttl", "60s", "--wait-for", "20s"]);
    let running = send(
        server.address,
        &keyed("/probe/a", "k", &[("X-Delay-Ms", "700")]),
    );
    server.wait_for_start("a");
    let waited = server.post("/probe/a", "k", &[]);
    assert!(waited.is_replay());
    assert_eq!(waited.json()["run"], 1);
    assert!(!crate::kit::receive(&running).unwrap().is_replay());
    assert_eq!(server.runs("a"), (1, 1));
}

#[test]
fn i12_a_failure_frees_the_key_or_holds_it() {
    let server = Server::start(&[]);
    let failed = server.post("/probe/a", "k", &[("X-Status", "500")]);
    assert_eq!(
        (failed.status(), failed.json()["run"].as_u64()),
        (500, Some(1))
    );
    assert_eq!(server.post("/probe/a", "k", &[]).json()["run"], 2);

    let server = Server::start(&["--on-failure", "hold"]);
    assert_eq!(
        server
            .post("/probe/a", "k", &[("X-Status", "500")])
            .status(),
        500
    );
    let refused = server.post("/probe/a", "k", &[]);
    assert_eq!(refused.status(), 409);
    assert_eq!(refused.code(), "idempotency_outcome_unknown");
    assert_eq!(refused.header("retry-after"), None);
}

#[test]
fn i12_a_panic_is_500_and_no_finish() {
    let server = Server::start(&[]);
    assert_eq!(
        server.post("/probe/a", "k", &[("X-Panic", "1")]).status(),
        500
    );
    assert_eq!(server.runs("a"), (1, 0));
    assert_eq!(server.post("/probe/a", "k", &[]).json()["run"], 2);
    assert_eq!(server.runs("a"), (2, 1));
}

#[test]
fn a_refused_tenant_gets_403_and_nothing_runs() {
    let server = Server::start(&[]);
    let refused = server.post("/probe/a", "k", &[("X-Tenant", "refuse me")]);
    assert_eq!(refused.status(), 403);
    assert_eq!(server.runs("a"), (0, 0));
}

#[test]
fn a_body_over_the_limit_gets_413_where_there_is_a_key() {
    let server = Server::start(&["--max-body", "3"]);
    assert_eq!(post(&server, &[(KEY, "k")], "tea").status(), 200);
    let refused = post(&server, &[(KEY, "l")], "teas");
    assert_eq!(refused.status(), 413);
    assert_eq!(refused.code(), "idempotency_body_too_large");
    assert_eq!(post(&server, &[], "teas").status(), 200);
}

#[test]
fn a_full_store_refuses_new_keys_and_serves_known_ones() {
    let server = Server::start(&["--store-capacity", "1", "--ttl", "1h"]);
    assert_eq!(server.post("/probe/a", "k", &[]).status(), 200);
    let refused = server.post("/probe/a", "l", &[]);
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.code(), "idempotency_store_full");
    assert!(refused.header("retry-after").is_some());
    assert!(server.post("/probe/a", "k", &[]).is_replay());
}
