//! Answers that have no end to wait for, and answers that nobody may keep.

use http::{Method, Request, Response};
use steadfast_idempotency::{Disposition, DoNotStore, TombstoneReason};

use crate::kit::{Api, Content, Layer, State, answer, post};

const STREAMED: State = State::Gone(200, TombstoneReason::Streamed);

#[tokio::test(start_paused = true)]
async fn a_stream_is_known_by_its_media_type_alone() {
    for (content_type, state) in [
        ("text/event-stream", STREAMED),
        ("Text/Event-Stream; charset=utf-8", STREAMED),
        ("multipart/x-mixed-replace;boundary=x", STREAMED),
        ("text/event-streams", State::Completed),
        ("text/plain", State::Completed),
        ("application/x-ndjson", State::Completed),
        ("multipart/mixed; boundary=x", State::Completed),
    ] {
        let api = Api::new(move |_| async move {
            let mut response = answer(200, "event");
            let content_type = http::HeaderValue::from_static(content_type);
            response.headers_mut().insert("content-type", content_type);
            Ok(response)
        });
        api.post("k1", "one").await.assert_first(200, "event");
        assert_eq!(api.store.state().await, state, "{content_type}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_stream_frees_the_key() {
    let api = Api::new(|_| async {
        let head = Response::builder().status(500);
        let head = head.header("content-type", "text/event-stream");
        Ok(head
            .extension(DoNotStore)
            .body(Content::new(["no"]))
            .unwrap())
    });
    api.post("k1", "one").await.assert_first(500, "no");
    assert_eq!(api.store.state().await, State::Free);
}

#[tokio::test(start_paused = true)]
async fn i08_no_store_is_the_caches_affair_and_is_stored_all_the_same() {
    let api = Api::new(|_| async {
        let head = Response::builder().status(201);
        let head = head.header("cache-control", "no-store, private");
        Ok(head.body(Content::new(["charged"])).unwrap())
    });
    let first = api.post("k1", "one").await;
    first.assert_first(201, "charged");
    assert_eq!(first.header("cache-control"), Some("no-store, private"));
    api.post("k1", "one").await.assert_replay(201, "charged");
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_asks_to_forget_is_remembered_as_done() {
    let api = Api::new(|_| async {
        let mut response = answer(200, "secret");
        response.extensions_mut().insert(DoNotStore);
        Ok(response)
    });
    api.post("k1", "one").await.assert_first(200, "secret");
    let repeat = api.post("k1", "one").await;
    repeat.assert_gone(200, "streamed");
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_is_remembered_as_done() {
    let api = Api::with(
        |layer| layer.methods([Method::CONNECT]),
        |_| async { Ok(answer(200, "")) },
    );
    let connect = || {
        Request::connect("example.com:443")
            .header("idempotency-key", "k1")
            .body(Content::new([""]))
            .unwrap()
    };
    api.send(connect()).await.assert_first(200, "");
    api.send(connect()).await.assert_gone(200, "streamed");
}

#[tokio::test(start_paused = true)]
async fn no_hook_makes_a_protocol_switch_run_twice() {
    for disposition in [Disposition::Release, Disposition::Store, Disposition::Hold] {
        let configure = move |layer: Layer| layer.classify_response(move |_| disposition);
        let api = Api::with(configure, |_| async { Ok(answer(101, "")) });
        let response = api.call(post("k1", "one")).await.unwrap();
        assert_eq!(response.status(), 101);
        api.post("k1", "one").await.assert_gone(101, "streamed");
        assert_eq!(api.runs(), 1);
    }
}
