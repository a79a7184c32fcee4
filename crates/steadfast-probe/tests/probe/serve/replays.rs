//! What is replayed, to whom, and what never is.

use crate::kit::{Message, Server, exchange, keyed, receive, request, send};

/// The headers that a replay has to keep, as bytes and in order.
fn kept(message: &Message) -> Vec<(String, Vec<u8>)> {
    const OWN: [&str; 5] = [
        "date",
        "connection",
        "cache-control",
        "idempotent-replayed",
        "set-cookie",
    ];
    let mut kept = message.headers.clone();
    kept.retain(|(name, _)| !OWN.contains(&name.as_str()));
    // Names may be reordered among each other; the lines of one name may not.
    kept.sort_by(|(a, _), (b, _)| a.cmp(b));
    kept
}

#[test]
fn i08_a_repeat_gets_the_first_answer() {
    let server = Server::start(&[]);
    let first = server.post("/probe/a", "k", &[]);
    let again = server.post("/probe/a", "k", &[]);
    assert!(!first.is_replay());
    assert!(again.is_replay());
    assert_eq!(again.header("cache-control"), Some("no-store"));
    assert_eq!(first.json()["run"], 1);
    assert_eq!(again.body, first.body);
    assert_eq!(server.runs("a"), (1, 1));
}

#[test]
fn i08_quoted_and_raw_are_the_same_key() {
    let server = Server::start(&[]);
    server.post("/probe/a", "k", &[]);
    assert!(server.post("/probe/a", "\"k\"", &[]).is_replay());
}

#[test]
fn i08_a_replay_is_faithful_byte_by_byte() {
    let server = Server::start(&[]);
    let steering = [("X-Resp", "fidelity")];
    let first = server.post("/probe/a", "k", &steering);
    assert_eq!(first.status(), 201);
    assert_eq!(first.header("location"), Some("/o/1"));
    assert_eq!(first.all("link").len(), 2);
    assert!(first.header("set-cookie").unwrap().contains("xpires="));
    assert!(first.header("content-disposition").unwrap().contains(", "));
    assert_eq!(first.all("x-name"), [b"caf\xe9"]);
    assert_eq!(first.header("content-encoding"), Some("gzip"));
    assert!(first.body.starts_with(b"\x1f\x8b"));

    let again = server.post("/probe/a", "k", &steering);
    assert!(again.is_replay());
    assert_eq!(again.start, first.start);
    assert_eq!(kept(&again), kept(&first));
    assert_eq!(again.body, first.body);
    assert_eq!(again.header("set-cookie"), None);
}

#[test]
fn i08_bytes_no_content_and_unstorable_looking_answers_are_replayed() {
    let server = Server::start(&[]);
    for (name, status, body) in [
        ("binary", 200, Some(&b"\xff\x00\x80"[..])),
        ("nocontent", 204, Some(b"")),
        ("nostore", 201, None),
        ("chunked", 200, Some(&[b'a'; 300 * 1024])),
    ] {
        let steering = [("X-Resp", name)];
        let first = server.post("/probe/a", name, &steering);
        assert_eq!(first.status(), status, "{name}");
        assert!(body.is_none_or(|body| first.body == body), "{name}");
        let again = server.post("/probe/a", name, &steering);
        assert!(again.is_replay(), "{name}");
        assert_eq!(again.status(), status, "{name}");
        assert_eq!(again.body, first.body, "{name}");
        assert_eq!(again.header("cache-control"), Some("no-store"), "{name}");
    }
    assert_eq!(server.runs("a"), (4, 4));
}

/// A repeat of what cannot be replayed is refused, and nothing runs again.
fn assert_gone(server: &Server, key: &str, steering: &[(&str, &str)], reason: &str) {
    let refused = server.post("/probe/a", key, steering);
    assert_eq!(refused.status(), 409, "{reason}");
    assert_eq!(refused.code(), "idempotency_result_unavailable");
    assert_eq!(refused.header("retry-after"), None);
    assert_eq!(refused.json()["reason"], reason);
}

#[test]
fn a_stream_reaches_its_client_and_leaves_a_tombstone() {
    let server = Server::start(&[]);
    let steering = [("X-Resp", "sse")];
    let first = server.post("/probe/a", "k", &steering);
    assert_eq!(first.header("content-type"), Some("text/event-stream"));
    assert_eq!(
        String::from_utf8(first.body)
            .unwrap()
            .matches("data: ")
            .count(),
        3
    );
    assert_gone(&server, "k", &steering, "streamed");
    assert_eq!(server.runs("a"), (1, 1));
}

#[test]
fn an_answer_over_the_limit_reaches_its_client_and_leaves_a_tombstone() {
    let server = Server::start(&["--max-stored", "1000"]);
    for (key, steering, length) in [
        ("known", [("X-Body-Bytes", "100000")], 100_000),
        ("unknown", [("X-Resp", "chunked")], 300 * 1024),
    ] {
        let first = server.post("/probe/a", key, &steering);
        assert_eq!(first.was_chunked, key == "unknown");
        assert_eq!(first.body.len(), length);
        assert!(first.body.iter().all(|&byte| byte == b'a'));
        assert_gone(&server, key, &steering, "too_large");
    }
    let fits = [("X-Body-Bytes", "1000")];
    server.post("/probe/a", "fits", &fits);
    assert!(server.post("/probe/a", "fits", &fits).is_replay());
}

#[test]
fn a_body_that_breaks_off_is_never_replayed() {
    let server = Server::start(&[]);
    let steering = [("X-Resp", "broken")];
    let first = send(server.address, &keyed("/probe/a", "k", &steering));
    receive(&first).expect_err("the body is not whole");
    assert_gone(&server, "k", &steering, "body_error");
    assert_eq!(server.runs("a"), (1, 1));
}

#[test]
fn a_switch_of_protocols_leaves_a_tombstone() {
    let server = Server::start(&[]);
    let steering = [("X-Status", "101")];
    assert_eq!(server.post("/probe/a", "k", &steering).status(), 101);
    assert_gone(&server, "k", &steering, "streamed");
}

#[test]
fn i10_routes_tenants_and_names_never_answer_for_each_other() {
    let server = Server::start(&[]);
    let mut runs = 0;
    for path in ["/probe/a", "/nested/a/probe/a", "/nested/b/probe/a"] {
        for tenant in ["t0", "t1"] {
            let steering = [("X-Tenant", tenant)];
            runs += 1;
            let first = server.post(path, "k", &steering).json();
            assert_eq!(first["run"], runs, "{path} {tenant}");
            assert_eq!(first["tenant"], tenant);
            assert!(server.post(path, "k", &steering).is_replay());
        }
    }
    assert!(!server.post("/probe/b", "k", &[]).is_replay());
    assert_eq!(server.runs("a"), (6, 6));
}

#[test]
fn i10_who_names_no_tenant_is_t0() {
    let server = Server::start(&[]);
    server.post("/probe/a", "k", &[]);
    assert!(
        server
            .post("/probe/a", "k", &[("X-Tenant", "t0")])
            .is_replay()
    );
}

#[test]
fn i09_steering_is_no_part_of_the_request() {
    let server = Server::start(&[]);
    server.post("/probe/a", "k", &[("X-Body-Bytes", "3")]);
    let again = server.post("/probe/a", "k", &[("X-Panic", "1")]);
    assert!(again.is_replay());
    assert_eq!(again.body, b"aaa");
}

#[test]
fn only_post_and_patch_are_covered() {
    let server = Server::start(&[]);
    let keyed = |method| {
        exchange(
            server.address,
            &request(method, "/probe/a", &[("Idempotency-Key", "k")], ""),
        )
    };
    for method in ["GET", "PUT", "DELETE"] {
        keyed(method);
        assert!(!keyed(method).is_replay(), "{method}");
    }
    for method in ["POST", "PATCH"] {
        assert!(!keyed(method).is_replay(), "{method}");
        assert!(keyed(method).is_replay(), "{method}");
    }
}

#[test]
fn i11_a_key_is_free_again_after_the_ttl() {
    let server = Server::start(&["--lease", "150ms", "--ttl", "150ms"]);
    assert_eq!(server.post("/probe/a", "k", &[]).json()["run"], 1);
    while server.post("/probe/a", "k", &[]).is_replay() {}
    assert_eq!(server.runs("a"), (2, 2));
}
