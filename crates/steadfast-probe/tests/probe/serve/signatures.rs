//! What passes `/verify/{scheme}`.

use std::io::{BufReader, Write as _};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::kit::{
    self, Headers, KeyFile, Message, SCHEMES, SECRET, Sample, Server, exchange, probe, receive,
    refs, request, sign,
};

const NOW: u64 = 1_700_000_000;
const PUBLIC_URL: &str = "https://example.com/hook";
const BODY: &str = r#"{"tea":"gr\u00fcn"}"#;
const BODY_SHA256: &str = "ce4418f7bda1da54e415cf73a6fbf8553e4aae1b1730029f22235ca7febf49c4";

fn start(keys: &KeyFile, more: &[&str]) -> Server {
    let args = ["--keys", keys.path(), "--now", "1700000000"];
    Server::start(&[&args, more].concat())
}

fn path(scheme: &str) -> String {
    format!("/verify/{scheme}?a=b&c=%64")
}

fn line(scheme: &Sample, body: &[u8]) -> Value {
    let id = scheme.id.map(|id| (id, "msg_1"));
    let url = match scheme.name {
        "square" => PUBLIC_URL.to_owned(),
        name => format!("http://probe{}", path(name)),
    };
    json!({
        "scheme": scheme.name,
        "secret": scheme.signs,
        "method": "POST",
        "url": url,
        "headers": id.as_slice(),
        "body_base64": BASE64_STANDARD.encode(body),
        "now": NOW,
    })
}

fn sample(name: &str) -> Sample {
    let mut schemes = SCHEMES.into_iter();
    schemes.find(|scheme| scheme.name == name).expect("a name")
}

/// The headers of a request in one scheme.
fn signed(name: &str, body: &[u8]) -> Headers {
    sign(&[line(&sample(name), body)]).remove(0)
}

fn send(server: &Server, name: &str, headers: &[(&str, &str)], body: &str) -> Message {
    let request = request("POST", &path(name), headers, body);
    exchange(server.address, &request)
}

fn set_clock(server: &Server, now: u64) {
    let body = json!({"now": now}).to_string();
    let set = exchange(server.address, &request("POST", "/clock", &[], &body));
    assert_eq!(set.json(), json!({"now": now}));
}

fn assert_refused(refused: &Message) {
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.code(), "signature_invalid");
    assert_eq!(refused.header("www-authenticate"), Some("Signature"));
}

#[test]
fn s01_s04_every_scheme_passes_what_is_signed_and_nothing_else() {
    let keys = KeyFile::of_all();
    let server = start(&keys, &["--public-url", PUBLIC_URL]);
    let lines = SCHEMES.map(|scheme| line(&scheme, BODY.as_bytes()));
    for (Sample { name, .. }, headers) in SCHEMES.iter().zip(sign(&lines)) {
        let headers = refs(&headers);
        let passed = send(&server, name, &headers, BODY);
        assert_eq!(passed.status(), 200, "{name}");
        assert_eq!(
            passed.json(),
            json!({"sha256": BODY_SHA256, "len": BODY.len()}),
            "{name}"
        );
        assert_refused(&send(&server, name, &[], BODY));
        let tampered = send(&server, name, &headers, "{\"tea\":\"schwarz\"}");
        match headers[..] {
            // The token says who sent it, and no more.
            [(token, value)] if value == SECRET => {
                assert_eq!(tampered.status(), 200, "{name}");
                let wrong = value.replace('e', "a");
                assert_refused(&send(&server, name, &[(token, &wrong)], BODY));
            }
            _ => assert_refused(&tampered),
        }
    }
}

#[test]
fn s05_a_timestamp_is_good_up_to_the_edges_of_its_window() {
    let keys = KeyFile::of_all();
    let server = start(&keys, &[]);
    let timed = SCHEMES.iter().filter(|scheme| scheme.tolerance.is_some());
    let timed: Vec<_> = timed.collect();
    let lines: Vec<_> = timed
        .iter()
        .map(|scheme| line(scheme, BODY.as_bytes()))
        .collect();
    for (
        Sample {
            name, tolerance, ..
        },
        headers,
    ) in timed.into_iter().zip(sign(&lines))
    {
        let (past, future) = tolerance.expect("it is timed");
        for (now, passes) in [
            (NOW + past, true),
            (NOW + past + 1, false),
            (NOW - future, true),
            (NOW - future - 1, false),
        ] {
            set_clock(&server, now);
            let answer = send(&server, name, &refs(&headers), BODY);
            match passes {
                true => assert_eq!(answer.status(), 200, "{name} at {now}"),
                false => assert_refused(&answer),
            }
        }
    }
}

#[test]
fn s05_a_body_over_the_cap_gets_413_with_and_without_a_length() {
    let keys = KeyFile::of_all();
    let server = start(&keys, &["--max-body", "3"]);
    for (body, status) in [("tea", 200), ("teas", 413)] {
        let headers = signed("github", body.as_bytes());
        let answer = send(&server, "github", &refs(&headers), body);
        assert_eq!(answer.status(), status, "{body}");
        let answer = exchange(
            server.address,
            &chunked("github", &headers, body.as_bytes()),
        );
        assert_eq!(answer.status(), status, "{body} in chunks");
    }
    let headers = signed("github", b"teas");
    let refused = send(&server, "github", &refs(&headers), "teas");
    assert_eq!(refused.code(), "signature_body_too_large");
}

#[test]
fn s01_a_body_without_a_length_is_verified_and_arrives_as_it_is() {
    let keys = KeyFile::of_all();
    let server = start(&keys, &[]);
    let body = [b"\xff\x00\x80\r\n0\r\n\r\n".as_slice(), &[b'a'; 9_000]].concat();
    for name in ["github", "payments", "standard_webhooks"] {
        let headers = signed(name, &body);
        let passed = exchange(server.address, &chunked(name, &headers, &body));
        assert_eq!(passed.status(), 200, "{name}");
        assert_eq!(
            passed.json(),
            json!({
                "sha256": "596d4f7ccf2af484e01678163472fa17c96ad09a4a6327541a15c95225d1fb7e",
                "len": body.len(),
            })
        );
        let mut tampered = body.clone();
        tampered[0] = 0xfe;
        assert_refused(&exchange(
            server.address,
            &chunked(name, &headers, &tampered),
        ));
    }
}

/// A request whose body comes in chunks of 4 KiB at most, without a length.
fn chunked(name: &str, headers: &Headers, body: &[u8]) -> Vec<u8> {
    let path = path(name);
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "Transfer-Encoding: chunked\r\n\r\n";
    let mut request = head.into_bytes();
    for chunk in body.chunks(4_096) {
        request.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        request.extend(chunk);
        request.extend(b"\r\n");
    }
    request.extend(b"0\r\n\r\n");
    request
}

#[test]
fn s05_a_timestamp_that_grows_stale_while_the_body_arrives_is_refused() {
    let keys = KeyFile::of_all();
    let headers = signed("payments", BODY.as_bytes());
    for (now, status) in [(NOW + 30, 200), (NOW + 31, 401)] {
        let server = start(&keys, &[]);
        let headers = [&refs(&headers)[..], &[("Expect", "100-continue")]].concat();
        let whole = request("POST", &path("payments"), &headers, BODY);
        let (head, body) = whole.split_at(whole.len() - BODY.len());
        let mut stream = kit::send(server.address, head);
        // The body is asked for when the head was good.
        let go_on = Message::read(&mut BufReader::new(&stream), false).expect("an answer");
        assert_eq!(go_on.status(), 100);
        set_clock(&server, now);
        stream.write_all(body).expect("it reads");
        assert_eq!(receive(&stream).expect("an answer").status(), status);
    }
}

#[test]
fn s05_a_header_that_stands_there_twice_is_refused() {
    let keys = KeyFile::of_all();
    let server = start(&keys, &[]);
    for name in ["github", "payments", "slack", "stripe", "svix"] {
        let headers = signed(name, BODY.as_bytes());
        for twice in &headers {
            let mut headers = refs(&headers);
            headers.push((&twice.0, &twice.1));
            assert_refused(&send(&server, name, &headers, BODY));
        }
    }
}

#[test]
fn s04_several_secrets_of_a_key_are_accepted_at_once() {
    let keys = KeyFile::new(&format!(
        "[github]\ndefault = [\"the new secret of the hook\", \"hex:{}\"]\nother = [\"another secret\"]\n",
        SECRET
            .bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>(),
    ));
    let server = start(&keys, &[]);
    for (secret, status) in [
        (SECRET, 200),
        ("the new secret of the hook", 200),
        ("another secret", 401),
        ("", 401),
    ] {
        let mut line = line(&sample("github"), BODY.as_bytes());
        line["secret"] = match secret {
            "" => "hex:01".into(),
            secret => secret.into(),
        };
        let headers = sign(&[line]).remove(0);
        let answer = send(&server, "github", &refs(&headers), BODY);
        assert_eq!(answer.status(), status, "{secret}");
    }
}

#[test]
fn s02_requests_name_their_key() {
    let keys = KeyFile::new(&format!(
        "[payments]\nkey_1 = [\"{SECRET}\"]\nkey_2 = [\"the secret of the other key\"]\n"
    ));
    let server = start(&keys, &[]);
    for (key_id, status) in [
        ("key_1", 200),
        ("key_2", 401),
        ("key_3", 401),
        ("default", 401),
    ] {
        let mut line = line(&sample("payments"), BODY.as_bytes());
        line["key_id"] = key_id.into();
        let headers = sign(&[line]).remove(0);
        let answer = send(&server, "payments", &refs(&headers), BODY);
        assert_eq!(answer.status(), status, "{key_id}");
    }
}

#[test]
fn s05_nothing_passes_for_want_of_a_key() {
    let keys = KeyFile::new("[botix]\n");
    let lines = SCHEMES.map(|scheme| line(&scheme, BODY.as_bytes()));
    let all = KeyFile::of_all();
    let servers = [
        (start(&keys, &[]), &SCHEMES[..]),
        (Server::start(&["--now", "1700000000"]), &SCHEMES),
        // Without its URL, Square signs something that nobody knows.
        (start(&all, &[]), &[sample("square")]),
    ];
    let signed = sign(&lines);
    for (server, schemes) in servers {
        for scheme in schemes {
            let at = SCHEMES.iter().position(|known| known.name == scheme.name);
            let headers = refs(&signed[at.expect("a name")]);
            assert_refused(&send(&server, scheme.name, &headers, BODY));
        }
    }
    // Not even what was signed over no URL at all.
    let server = start(&all, &[]);
    let mut line = line(&sample("shopify"), BODY.as_bytes());
    line["secret"] = SECRET.into();
    let headers = sign(&[line]).remove(0);
    let signature = &headers[0].1;
    let headers = [("x-square-hmacsha256-signature", signature.as_str())];
    assert_refused(&send(&server, "square", &headers, BODY));
}

#[test]
fn an_unknown_scheme_is_404() {
    let keys = KeyFile::of_all();
    let server = start(&keys, &[]);
    for path in [
        "/verify",
        "/verify/",
        "/verify/githob",
        "/verify/GitHub",
        "/verify/github/",
    ] {
        assert_eq!(server.get(path).status(), 404, "{path}");
    }
}

#[test]
fn s05_files_that_hold_no_secrets_do_not_start_and_show_none() {
    for (text, says) in [
        (
            "[botix]\ndefault = [\"\"]",
            "[botix] default: the secret is empty",
        ),
        (
            "[botix]\ndefault = [\"hex:\"]",
            "[botix] default: the secret is empty",
        ),
        ("[botix]\ndefault = [\"hex:s3cret\"]", "[botix] default: "),
        ("[botix]\ndefault = [\"s3cret\", \"\"]", "[botix] default: "),
        ("[botix]\ndefault = []", "[botix] default: "),
        ("[svix]\ndefault = [\"whsec_s3cret\"]", "[svix] default: "),
        ("[coinbase]\nk = [\"s3cret!\"]", "[coinbase] k: "),
        ("[discord]\ndefault = [\"s3cret\"]", "[discord] default: "),
        (
            "[botox]\ndefault = [\"s3cret\"]",
            "[botox]: there is no such scheme",
        ),
        ("[botix]\ndefault = \"s3cret\"", "not TOML of the form"),
        ("s3cret", "not TOML of the form"),
    ] {
        let keys = KeyFile::new(text);
        let output = probe(&["serve", "--keys", keys.path()]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(output.stdout, b"", "{text}");
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(said.contains(says), "{text}: {said}");
        assert!(!said.contains("s3cret"), "{text}: {said}");
    }
}
