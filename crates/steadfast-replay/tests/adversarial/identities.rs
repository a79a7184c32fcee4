//! By what an event is known again.

use std::time::Duration;

use http::request::Parts;
use steadfast_core::{
    Key,
    facts::{MessageId, Verified},
};
use steadfast_replay::{MemoryStore, ReplayGuardLayer};
use tower::{Layer as _, ServiceExt as _};

use super::kit::{Answer, Runs, event, request, signed, unsigned};

/// Delivers these one after the other, and says which were duplicates.
async fn duplicates(
    trust: bool,
    deliveries: impl IntoIterator<Item = (&'static str, Verified)>,
) -> Vec<bool> {
    let runs = Runs::default();
    let mut layer = ReplayGuardLayer::events(MemoryStore::new(100));
    if trust {
        layer = layer.trust_unsigned_ids();
    }
    let service = layer.layer(runs.handler(200, Duration::ZERO));
    let mut duplicates = Vec::new();
    for (path, verified) in deliveries {
        let answer: Answer = service
            .clone()
            .oneshot(request(path, verified))
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        duplicates.push(answer.headers().contains_key("event-duplicate"));
    }
    assert_eq!(runs.count(), duplicates.iter().filter(|it| !**it).count());
    duplicates
}

#[tokio::test]
async fn g03_one_id_on_two_routes_is_two_events() {
    for id in [signed, unsigned] {
        let got = duplicates(
            false,
            [
                ("/a", event(id("1"), "x")),
                ("/b", event(id("1"), "x")),
                ("/a?q=1", event(id("1"), "x")),
                ("/a/", event(id("1"), "x")),
                ("/b", event(id("1"), "x")),
            ],
        );
        // The query is no part of the path; a slash is.
        assert_eq!(got.await, [false, false, true, false, true]);
    }
}

#[tokio::test]
async fn g03_another_spelling_of_a_path_is_no_other_source() {
    for id in [signed, unsigned] {
        let got = duplicates(
            false,
            ["/hook", "/hoo%6b", "/hoo%6B", "/%68ook", "/hook?x=1"]
                .map(|path| (path, event(id("1"), "x"))),
        );
        assert_eq!(got.await, [false, true, true, true, true]);
    }
}

#[tokio::test]
async fn g03_an_unsigned_id_swapped_over_the_same_body_gets_no_second_run() {
    let got = duplicates(
        false,
        [
            ("/a", event(unsigned("1"), "x")),
            ("/a", event(unsigned("2"), "x")),
            ("/a", event(None, "x")),
            ("/a", event(unsigned(""), "x")),
            // A duplicate marked nothing: the id 2 is free for another event.
            ("/a", event(unsigned("2"), "y")),
            ("/a", event(unsigned("2"), "z")),
        ],
    );
    assert_eq!(got.await, [false, true, true, true, false, true]);
}

#[tokio::test]
async fn g03_one_id_with_another_body_is_one_event() {
    for id in [signed, unsigned] {
        let got = duplicates(
            false,
            [("/a", event(id("1"), "x")), ("/a", event(id("1"), "y"))],
        );
        assert_eq!(got.await, [false, true]);
    }
    let got = duplicates(
        false,
        [
            ("/a", event(signed("1"), "x")),
            ("/a", event(signed("2"), "x")),
        ],
    );
    assert_eq!(got.await, [false, false], "a signed id is all there is");
}

#[tokio::test]
async fn g03_trusted_ids_are_all_there_is_and_their_absence_is_made_up_for_by_the_body() {
    let got = duplicates(
        true,
        [
            ("/a", event(unsigned("1"), "x")),
            ("/a", event(unsigned("2"), "x")),
            ("/a", event(unsigned("1"), "y")),
            ("/a", event(None, "x")),
            ("/a", event(unsigned(""), "x")),
            ("/a", event(None, "y")),
        ],
    );
    assert_eq!(got.await, [false, false, true, false, true, false]);
}

#[tokio::test]
async fn g03_long_ids_and_bodies_and_any_bytes_are_told_apart() {
    let long = |last: u8| {
        let mut id = vec![b'a'; 1 << 20];
        id.push(last);
        id
    };
    let id = |bytes: Vec<u8>| Some(MessageId::signed(bytes.into()));
    let got = duplicates(
        false,
        [
            ("/a", event(id(long(0)), "x")),
            ("/a", event(id(long(1)), "x")),
            ("/a", event(id(long(0)), "x")),
            ("/a", event(None, long(0))),
            ("/a", event(None, long(0))),
            ("/a", event(id(vec![0]), "")),
            ("/a", event(id(vec![0, 0]), "")),
            ("/a", event(id(vec![0xff, 0xfe]), "")),
            ("/a", event(None, "")),
            ("/a", event(None, "")),
        ],
    );
    assert_eq!(
        got.await,
        [
            false, false, true, false, true, false, false, false, false, true
        ]
    );
}

#[tokio::test]
async fn g03_an_id_is_no_body_and_a_body_no_id() {
    let got = duplicates(
        false,
        [
            ("/a", event(unsigned("x"), "1")),
            ("/a", event(None, "x")),
            ("/a", event(signed("1"), "2")),
        ],
    );
    assert_eq!(got.await, [false, false, false]);
}

#[tokio::test]
async fn g03_a_given_source_takes_the_place_of_scheme_and_path() {
    let runs = Runs::default();
    let source = |parts: &Parts| Ok(Key::from(parts.uri.query().unwrap_or_default().as_bytes()));
    let service = ReplayGuardLayer::events(MemoryStore::new(100))
        .source(source)
        .layer(runs.handler(200, Duration::ZERO));
    let mut got = Vec::new();
    for path in ["/a?t=1", "/b?t=1", "/a?t=2", "/a"] {
        let delivery = request(path, event(signed("1"), "x"));
        got.push(
            service
                .clone()
                .oneshot(delivery)
                .await
                .unwrap()
                .headers()
                .contains_key("event-duplicate"),
        );
    }
    assert_eq!(got, [false, true, false, false]);
}
