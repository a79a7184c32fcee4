//! The handler, and the routes beside it.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::json;

use crate::kit::{Server, exchange, receive, request, send};

fn get(server: &Server, headers: &[(&str, &str)]) -> crate::kit::Message {
    exchange(server.address, &request("GET", "/probe/a", headers, ""))
}

#[test]
fn a_name_is_what_the_path_says() {
    let server = Server::start(&[]);
    let answer = server.get("/probe/caf%C3%A9%20au%20lait").json();
    assert_eq!(answer["name"], "café au lait");
    assert_eq!(server.runs("caf%C3%A9%20au%20lait"), (1, 1));
    assert_eq!(server.runs("tea"), (0, 0));
}

#[test]
fn letters_come_with_their_length() {
    let server = Server::start(&[]);
    for length in [0, 1, 65_536, 65_537, 3_000_000] {
        let length = length.to_string();
        let answer = get(&server, &[("X-Body-Bytes", &length)]);
        assert_eq!(answer.header("content-length"), Some(&*length));
        assert!(answer.body.iter().all(|&byte| byte == b'a'));
    }
}

#[test]
fn an_echo_is_the_request_body() {
    let server = Server::start(&[]);
    let headers = [("X-Echo", "1"), ("Content-Type", "text/tea")];
    for body in [String::new(), "tea".to_owned(), "tea".repeat(1_000_000)] {
        let request = request("POST", "/probe/a", &headers, &body);
        let answer = exchange(server.address, &request);
        assert_eq!(answer.header("content-type"), Some("text/tea"));
        assert!(answer.body == body.as_bytes());
    }
}

#[test]
fn a_status_without_a_body_has_none() {
    let server = Server::start(&[]);
    for status in ["204", "205", "304"] {
        let answer = get(&server, &[("X-Status", status), ("X-Body-Bytes", "9")]);
        assert_eq!(answer.status().to_string(), status);
        assert_eq!(answer.body, b"");
    }
    assert_eq!(get(&server, &[("X-Status", "418")]).json()["run"], 4);
}

#[test]
fn a_broken_body_begins_before_it_breaks() {
    let server = Server::start(&[]);
    let headers = [("X-Resp", "broken")];
    let stream = send(server.address, &request("GET", "/probe/a", &headers, ""));
    let mut seen = Vec::new();
    let read = std::io::Read::read_to_end(&mut &stream, &mut seen);
    assert!(seen.starts_with(b"HTTP/1.1 200 OK\r\n"), "{read:?}");
    assert_eq!(seen.iter().filter(|&&byte| byte == b'a').count() / 2048, 1);
    assert!(!seen.ends_with(b"0\r\n\r\n"));
}

#[test]
fn bad_steering_is_400_and_no_start() {
    let server = Server::start(&[]);
    for header in [
        ("X-Delay-Ms", "soon"),
        ("X-Status", "99"),
        ("X-Body-Bytes", "-1"),
        ("X-Echo", "yes"),
        ("X-Panic", "2"),
        ("X-Resp", "tea"),
    ] {
        assert_eq!(get(&server, &[header]).status(), 400, "{header:?}");
    }
    assert_eq!(server.runs("a"), (0, 0));
}

#[test]
fn routes_that_are_not_there_are_404() {
    let server = Server::start(&[]);
    for path in [
        "/",
        "/probe",
        "/nested/c/probe/a",
        "/verify/nobody",
        "/oneshot",
        "/event/nobody/a",
        "/limited",
        "/stack/a",
        "/deliveries",
    ] {
        assert_eq!(server.get(path).status(), 404, "{path}");
    }
    // Not even a key makes something of them.
    assert_eq!(server.post("/nested/a/probes/a", "k", &[]).status(), 404);
}

#[test]
fn the_clock_stands_where_it_was_set() {
    let server = Server::start(&["--now", "1768478400"]);
    let set = |body: &str| exchange(server.address, &request("POST", "/clock", &[], body));
    assert_eq!(
        set(r#"{"now": 1768478430}"#).json(),
        json!({"now": 1_768_478_430})
    );
    assert_eq!(set(r#"{"now": 0}"#).json(), json!({"now": 0}));
    for bad in [
        "",
        "{}",
        r#"{"now": "0"}"#,
        r#"{"now": -1}"#,
        r#"{"now": 0, "at": 0}"#,
    ] {
        assert_eq!(set(bad).status(), 400, "{bad}");
    }
}

#[test]
fn flags_of_later_capabilities_are_taken() {
    let keys = std::env::temp_dir().join(format!("probe-keys-{}.toml", std::process::id()));
    std::fs::write(&keys, "[botix]\ndefault = [\"s\", \"hex:01\"]\n").expect("it is written");
    let keys_path = keys.to_str().expect("text");
    let server = Server::start(&[
        "--keys",
        keys_path,
        "--limit",
        "5",
        "--window",
        "1m",
        "--segments",
        "2",
        "--public-url",
        "https://probe.example/hook",
    ]);
    assert_eq!(server.get("/probe/a").status(), 200);
    std::fs::remove_file(&keys).expect("it is there");
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let server = Server::start(&[]);
    let one = b"POST /probe/a HTTP/1.1\r\nHost: probe\r\nContent-Length: 3\r\n\r\ntea";
    let stream = send(server.address, &[&one[..], one].concat());
    let mut reader = std::io::BufReader::new(&stream);
    for run in 1..=2 {
        let answer = crate::kit::Message::read(&mut reader, true).expect("an answer");
        assert_eq!(answer.json()["run"], run);
    }
}

#[tokio::test]
async fn http2_is_spoken_where_it_is_asked_for() {
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http::<Empty<Bytes>>();
    let get = |server: &Server| {
        let url = format!("http://{}/probe/a", server.address);
        client.get(url.parse().expect("a URL"))
    };

    let server = Server::start(&["--http2"]);
    let answer = get(&server).await.expect("an answer");
    assert_eq!(answer.version(), http::Version::HTTP_2);
    let body = answer.into_body().collect().await.expect("a body");
    assert!(body.to_bytes().starts_with(b"{\"name\":\"a\""));
    assert_eq!(server.get("/probe/a").json()["run"], 2);

    let server = Server::start(&[]);
    get(&server).await.expect_err("only HTTP/1.1 is spoken");
}

#[test]
fn a_request_that_breaks_off_is_no_run_where_there_is_a_key() {
    let server = Server::start(&[]);
    let cut = b"POST /probe/a HTTP/1.1\r\nHost: probe\r\nIdempotency-Key: k\r\nContent-Length: 9\r\n\r\ntea";
    let stream = send(server.address, cut);
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("it is open");
    // Whether the rest of a connection that is half closed gets an answer is up to the server.
    drop(receive(&stream));
    assert_eq!(server.runs("a"), (0, 0));
    assert_eq!(server.post("/probe/a", "k", &[]).json()["run"], 1);
}
