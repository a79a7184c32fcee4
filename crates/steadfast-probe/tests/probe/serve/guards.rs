//! What passes `/oneshot/{name}` and `/event/{scheme}/{name}`, and how often.

use std::thread;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::json;

use crate::kit::{Headers, KeyFile, Message, SCHEMES, Server, exchange, refs, request, send, sign};

const NOW: u64 = 1_700_000_000;

/// A signed request that can be sent again.
#[derive(Clone, Debug)]
struct Signed {
    path: String,
    headers: Headers,
    body: &'static str,
}

impl Signed {
    fn new(scheme: &str, path: &str, now: u64, ids: &[(&str, &str)], body: &'static str) -> Self {
        let sample = SCHEMES.iter().find(|sample| sample.name == scheme);
        let line = json!({
            "scheme": scheme,
            "secret": sample.expect("a name").signs,
            "method": "POST",
            "url": path,
            "headers": ids,
            "body_base64": BASE64_STANDARD.encode(body),
            "now": now,
        });
        Self {
            path: path.to_owned(),
            headers: sign(&[line]).remove(0),
            body,
        }
    }

    fn payments(path: &str, now: u64) -> Self {
        Self::new("payments", path, now, &[], "tea")
    }

    /// An event whose id is not signed.
    fn github(id: &str, body: &'static str) -> Self {
        let ids = [("x-github-delivery", id)];
        Self::new("github", "/event/github/a", NOW, &ids, body)
    }

    /// An event whose id is signed.
    fn svix(id: &str, now: u64) -> Self {
        Self::new("svix", "/event/svix/a", now, &[("svix-id", id)], "tea")
    }

    fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    fn bytes(&self, steering: &[(&str, &str)]) -> Vec<u8> {
        let headers = [&refs(&self.headers), steering].concat();
        request("POST", &self.path, &headers, self.body)
    }

    fn sent(&self, server: &Server) -> Message {
        self.steered(server, &[])
    }

    fn steered(&self, server: &Server, steering: &[(&str, &str)]) -> Message {
        exchange(server.address, &self.bytes(steering))
    }

    /// Sent until the event is not in work any more.
    fn settled(&self, server: &Server) -> Message {
        loop {
            let answer = self.sent(server);
            if answer.status() != 409 {
                return answer;
            }
        }
    }
}

fn start(more: &[&str]) -> Server {
    let keys = KeyFile::of_all();
    let args = ["--keys", keys.path(), "--now", "1700000000"];
    Server::start(&[&args, more].concat())
}

fn set_clock(server: &Server, now: u64) {
    let body = json!({"now": now}).to_string();
    exchange(server.address, &request("POST", "/clock", &[], &body));
}

fn assert_replayed(refused: &Message) {
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.body, b"Request signature has already been used");
    assert_eq!(refused.header("www-authenticate"), Some("Signature"));
}

fn assert_unsigned(refused: &Message) {
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.code(), "signature_invalid");
}

fn assert_duplicate(answer: &Message) {
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.header("event-duplicate"), Some("1"));
}

fn assert_ran(answer: &Message, run: u64) {
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.header("event-duplicate"), None);
    assert_eq!(
        answer.json(),
        json!({"name": "a", "tenant": "t0", "run": run})
    );
}

#[test]
fn g01_a_signed_request_is_good_once() {
    let server = start(&[]);
    let order = Signed::payments("/oneshot/a", NOW);
    assert_ran(&order.sent(&server), 1);
    assert_replayed(&order.sent(&server));
    assert_eq!(server.runs("a"), (1, 1));
    // The same order, signed again.
    assert_ran(&Signed::payments("/oneshot/a", NOW).sent(&server), 2);
}

#[test]
fn g01_a_request_that_failed_is_used_up_too() {
    let server = start(&[]);
    for (steering, status) in [(("X-Status", "500"), 500), (("X-Panic", "1"), 500)] {
        let order = Signed::payments("/oneshot/a", NOW);
        assert_eq!(order.steered(&server, &[steering]).status(), status);
        assert_replayed(&order.sent(&server));
    }
    assert_eq!(server.runs("a").0, 2);
}

#[test]
fn g01_one_of_many_that_race_runs() {
    let server = start(&[]);
    let order = Signed::payments("/oneshot/a", NOW).bytes(&[]);
    let address = server.address;
    let racing: Vec<_> = (0..16)
        .map(|_| {
            let order = order.clone();
            thread::spawn(move || exchange(address, &order))
        })
        .collect();
    let answers = racing
        .into_iter()
        .map(|racer| racer.join().expect("no panic"));
    let (good, refused): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.status() == 200);
    assert_eq!(good.len(), 1);
    refused.iter().for_each(assert_replayed);
    assert_eq!(server.runs("a"), (1, 1));
}

#[test]
fn g02_a_request_of_the_very_edge_stays_used_as_long_as_it_is_fresh() {
    let server = start(&[]);
    let order = Signed::payments("/oneshot/a", NOW);
    set_clock(&server, NOW - 30);
    assert_ran(&order.sent(&server), 1);
    for now in [NOW - 30, NOW, NOW + 30] {
        set_clock(&server, now);
        assert_replayed(&order.sent(&server));
    }
    set_clock(&server, NOW + 31);
    assert_unsigned(&order.sent(&server));
    assert_eq!(server.runs("a"), (1, 1));
}

#[test]
fn s05_what_is_not_verified_reaches_neither_guard_nor_handler() {
    let server = start(&[]);
    let order = Signed::payments("/oneshot/a", NOW);
    assert_unsigned(&order.clone().at("/oneshot/a?b").sent(&server));
    let mut unsigned = order.clone();
    unsigned.headers.clear();
    assert_unsigned(&unsigned.sent(&server));
    let mut event = Signed::github("1", "tea");
    event.body = "coffee";
    assert_unsigned(&event.sent(&server));
    assert_eq!(server.runs("a"), (0, 0));
    // None of it used anything up.
    assert_ran(&order.sent(&server), 1);
    event.body = "tea";
    assert_ran(&event.sent(&server), 2);
}

#[test]
fn g01_a_full_store_refuses_what_is_new_and_still_knows_what_was() {
    let server = start(&["--store-capacity", "1"]);
    let order = Signed::payments("/oneshot/a", NOW);
    assert_ran(&order.sent(&server), 1);
    let refused = Signed::payments("/oneshot/a", NOW).sent(&server);
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.code(), "replay_store_full");
    assert!(refused.header("retry-after").is_some());
    assert_replayed(&order.sent(&server));
    // The entry has outlived its time.
    set_clock(&server, NOW + 100);
    assert_ran(&Signed::payments("/oneshot/a", NOW + 100).sent(&server), 2);
    // Events have a store of their own.
    assert_ran(&Signed::svix("1", NOW + 100).sent(&server), 3);
    let refused = Signed::svix("2", NOW + 100).sent(&server);
    assert_eq!(refused.code(), "replay_store_full");
}

#[test]
fn g03_an_event_is_processed_once_whatever_its_signature_says_of_the_time() {
    let server = start(&[]);
    assert_ran(&Signed::svix("1", NOW).sent(&server), 1);
    // Each attempt is signed at its own time.
    assert_duplicate(&Signed::svix("1", NOW + 7).sent(&server));
    assert_ran(&Signed::svix("2", NOW).sent(&server), 2);
    assert_eq!(server.runs("a"), (2, 2));
}

#[test]
fn g03_an_id_that_nobody_signed_lets_no_body_through_twice() {
    let server = start(&[]);
    assert_ran(&Signed::github("1", "tea").sent(&server), 1);
    for again in [
        Signed::github("1", "tea"),
        Signed::github("2", "tea"),
        Signed::github("1", "coffee"),
    ] {
        assert_duplicate(&again.sent(&server));
    }
    assert_ran(&Signed::github("3", "coffee").sent(&server), 2);
    // Another route has other events.
    let elsewhere = Signed::github("1", "tea").at("/event/github/b");
    assert_eq!(elsewhere.sent(&server).json()["name"], "b");
    assert_eq!((server.runs("a"), server.runs("b")), ((2, 2), (1, 1)));
}

#[test]
fn g04_an_event_that_failed_is_processed_when_it_comes_again() {
    let server = start(&[]);
    let event = Signed::github("1", "tea");
    for (steering, starts) in [(("X-Status", "500"), 1), (("X-Panic", "1"), 2)] {
        assert_eq!(event.steered(&server, &[steering]).status(), 500);
        assert_eq!(server.runs("a").0, starts);
    }
    assert_ran(&event.settled(&server), 3);
    assert_duplicate(&event.sent(&server));
}

#[test]
fn g03_an_event_in_work_is_not_acknowledged() {
    let server = start(&[]);
    let event = Signed::github("1", "tea");
    let _running = send(server.address, &event.bytes(&[("X-Delay-Ms", "600000")]));
    server.wait_for_start("a");
    for again in [event, Signed::github("2", "tea")] {
        let refused = again.sent(&server);
        assert_eq!(refused.status(), 409);
        assert_eq!(refused.code(), "event_in_progress");
        assert!(refused.header("retry-after").is_some());
    }
    assert_eq!(server.runs("a"), (1, 0));
}

#[test]
fn g04_an_event_goes_on_without_its_sender_and_past_its_lease() {
    let server = start(&["--lease", "200ms"]);
    let event = Signed::github("1", "tea");
    let sender = send(server.address, &event.bytes(&[("X-Delay-Ms", "900")]));
    server.wait_for_start("a");
    drop(sender);
    assert_duplicate(&event.settled(&server));
    assert_eq!(server.runs("a"), (1, 1));
}

#[cfg(unix)]
#[test]
fn told_to_stop_it_waits_for_events_whose_senders_have_gone() {
    use rustix::process::{Pid, Signal, kill_process};

    let server = start(&[]);
    // What is said of a panic shows that the handler came to its end.
    let steering = [("X-Delay-Ms", "700"), ("X-Panic", "1")];
    let sender = send(server.address, &Signed::github("1", "tea").bytes(&steering));
    server.wait_for_start("a");
    drop(sender);
    kill_process(Pid::from_child(&server.process), Signal::TERM).expect("it runs");
    let (code, said) = server.end();
    assert!(said.contains("the request asked for a panic"), "{said}");
    assert_eq!(code, Some(0));
}

#[test]
fn g03_every_scheme_has_its_events() {
    let server = start(&["--public-url", "http://probe/event/square/a"]);
    for (sample, run) in SCHEMES.iter().zip(1..) {
        let path = format!("http://probe/event/{}/a", sample.name);
        let ids: Vec<_> = sample.id.map(|id| (id, "1")).into_iter().collect();
        let event = Signed::new(sample.name, &path, NOW, &ids, "tea");
        let event = event.at(&format!("/event/{}/a", sample.name));
        assert_ran(&event.sent(&server), run);
        assert_duplicate(&event.sent(&server));
    }
}
