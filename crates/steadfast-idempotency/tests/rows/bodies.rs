//! Bodies on both ways: caps, ends, trailers, and what the handler and the client see of them.

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use steadfast_core::Body;
use steadfast_idempotency::{IdempotencyLayer, MemoryStore, Rejection, Scope, TombstoneReason};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::kit::{Api, Content, Handled, Incoming, Op, State, order, post, request, text};

fn keyed(body: Content) -> Request<Content> {
    request()
        .header("idempotency-key", "k1")
        .body(body)
        .unwrap()
}

fn trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("7"));
    trailers
}

async fn echo(request: Incoming) -> Handled {
    let body = request.into_body().collect().await?;
    Ok(text(200, body.to_bytes()))
}

#[tokio::test(start_paused = true)]
async fn a_request_body_of_exactly_the_cap_is_let_through_byte_for_byte() {
    const MIB: usize = 1024 * 1024;
    let bytes = |len: usize| Bytes::from((0..=255_u8).cycle().take(len).collect::<Vec<_>>());
    let api = Api::new(echo);
    for (key, body) in [
        ("k1", Content::new([bytes(MIB)]).exact()),
        ("k2", Content::new([bytes(1), bytes(MIB - 1)])),
    ] {
        let request = request().header("idempotency-key", key).body(body);
        let reply = api.send(request.unwrap()).await;
        assert_eq!((reply.status, reply.body.len()), (200, MIB));
    }
    for body in [
        Content::new([bytes(MIB + 1)]).exact(),
        Content::new([bytes(MIB), bytes(1)]),
    ] {
        let reply = api.send(keyed(body)).await;
        assert_eq!(reply.rejection(), Some(Rejection::BodyTooLarge));
    }
    assert_eq!(api.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_announced_body_over_the_cap_is_not_read() {
    let api = Api::with(|layer| layer.max_body(3), order);
    let body = Content::new(["four"]).exact();
    let meter = body.meter();
    assert_eq!(api.send(keyed(body)).await.status, 413);
    assert_eq!(meter.polls(), 0);
    assert!(meter.is_dropped());
}

#[tokio::test(start_paused = true)]
async fn an_endless_body_is_read_to_the_cap_and_no_further() {
    let api = Api::with(|layer| layer.max_body(10), order);
    let body = Content::new(vec!["four"; 1000]);
    let meter = body.meter();
    assert_eq!(api.send(keyed(body)).await.status, 413);
    assert_eq!(meter.frames(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_handler_sees_the_whole_request() {
    let seen = Arc::new(Mutex::new(None));
    let sight = Arc::clone(&seen);
    let api = Api::new(move |request: Incoming| {
        let sight = Arc::clone(&sight);
        async move {
            let size = request.body().size_hint().exact();
            let (head, body) = request.into_parts();
            let body = body.collect().await?;
            let trailers = body.trailers().cloned();
            *sight.lock().unwrap() = Some((head, size, trailers, body.to_bytes()));
            Ok(text(200, ""))
        }
    });
    let mut request = keyed(Content::new(["o", "ne"]).trailers(trailers()));
    *request.version_mut() = http::Version::HTTP_2;
    request.extensions_mut().insert("put there outside");
    api.send(request).await.assert_first(200, "");

    let (head, size, seen_trailers, body) = seen.lock().unwrap().take().unwrap();
    assert_eq!((head.method.as_str(), head.uri.path()), ("POST", "/orders"));
    assert_eq!(head.version, http::Version::HTTP_2);
    assert_eq!(head.headers["idempotency-key"], "k1");
    assert_eq!(head.extensions.get(), Some(&"put there outside"));
    assert_eq!((&body[..], size), (&b"one"[..], Some(3)));
    assert_eq!(seen_trailers, Some(trailers()));
}

#[tokio::test(start_paused = true)]
async fn a_stored_body_has_at_most_the_cap() {
    for (chunks, state) in [
        (&["abcd"][..], State::Completed),
        (&["ab", "cd"], State::Completed),
        (&["abcde"], State::Gone(200, TombstoneReason::TooLarge)),
        (&["abcd", "e"], State::Gone(200, TombstoneReason::TooLarge)),
    ] {
        for exact in [false, true] {
            let body = move || match exact {
                true => Content::new(chunks.iter().copied()).exact(),
                false => Content::new(chunks.iter().copied()),
            };
            let handler = move |_| async move { Ok(Response::new(body())) };
            let api = Api::with(|layer| layer.max_stored_body(4), handler);
            let whole = chunks.concat();
            api.post("k1", "one").await.assert_first(200, &whole);
            assert_eq!(api.store.state().await, state, "{chunks:?} {exact}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_announced_answer_over_the_cap_is_not_read_by_the_layer() {
    let body = Content::new(["four"]).exact();
    let meter = body.meter();
    let body = Arc::new(Mutex::new(Some(body)));
    let api = Api::with(
        |layer| layer.max_stored_body(3),
        move |_| {
            let body = body.lock().unwrap().take().unwrap();
            async { Ok(Response::new(body)) }
        },
    );
    let response = api.call(post("k1", "one")).await.unwrap();
    assert_eq!(meter.polls(), 0);
    assert_eq!(response.body().size_hint().exact(), Some(4));
    drop(response);
    assert!(meter.is_dropped());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_under_an_announced_length_does_not_look_whole() {
    let api = Api::new(|_| async {
        let body = Content::new(["half"]).error("cut").exact();
        Ok(Response::new(body))
    });
    let response = api.call(post("k1", "one")).await.unwrap();
    assert_eq!(response.body().size_hint().exact(), None);
    assert!(!response.body().is_end_stream());
    let reply = crate::kit::Reply::read(response).await;
    assert_eq!((&reply.body[..], reply.error), (&b"half"[..], Some("cut")));
}

#[tokio::test(start_paused = true)]
async fn trailers_reach_the_first_client_and_are_not_replayed() {
    let api = Api::new(|_| async {
        let body = Content::new(["body"]).trailers(trailers());
        Ok(Response::new(body))
    });
    let first = api.post("k1", "one").await;
    assert_eq!(
        (&first.body[..], first.trailers),
        (&b"body"[..], Some(trailers()))
    );
    let repeat = api.post("k1", "one").await;
    repeat.assert_replay(200, "body");
    assert_eq!(repeat.trailers, None);
}

#[tokio::test(start_paused = true)]
async fn a_body_of_any_bytes_is_replayed() {
    let all: Vec<u8> = (0..=255).collect();
    let api = Api::new(echo);
    for replay in [false, true] {
        let reply = api.send(keyed(Content::new([all.clone()]))).await;
        assert_eq!((&reply.body[..], reply.is_replay()), (&all[..], replay));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_body_has_none_when_it_is_replayed() {
    for status in [204, 205] {
        let api = Api::new(move |_| async move {
            let body = Content::new([""; 0]).exact();
            Ok(Response::builder().status(status).body(body).unwrap())
        });
        for replay in [false, true] {
            let response = api.call(post("k1", "one")).await.unwrap();
            assert!(response.body().is_end_stream());
            assert_eq!(response.body().size_hint().exact(), Some(0));
            assert!(!response.headers().contains_key("content-length"));
            assert_eq!(response.status(), status);
            let replayed = response.headers().contains_key("idempotent-replayed");
            assert_eq!(replayed, replay);
        }
    }
}

/// A body that panics when it is read.
struct Bomb;

impl http_body::Body for Bomb {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        panic!("the body's own")
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_panics_belongs_to_a_call_that_was_done() {
    let store = MemoryStore::new(10, 1024);
    let layer = IdempotencyLayer::new(store, Scope::global());
    let handler =
        service_fn(|_request: Request<Body<Content>>| async { Ok::<_, &str>(Response::new(Bomb)) });
    let service = layer.layer(handler);
    let call = service.clone().oneshot(post("k1", "one"));
    let panic = AssertUnwindSafe(call).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"the body's own"));
    let repeat = service.oneshot(post("k1", "one")).await.unwrap();
    let Some(Rejection::ResultUnavailable(tombstone)) = repeat.extensions().get() else {
        panic!("it was done: {repeat:?}");
    };
    assert_eq!(tombstone.reason, TombstoneReason::BodyError);
}

#[tokio::test(start_paused = true)]
async fn i15_a_client_that_leaves_while_its_answer_is_read_leaves_a_whole_record() {
    let api = Api::new(|_| async {
        let body = Content::new(["a", "b", "c"]).pending();
        Ok(Response::new(body))
    });
    let cut = steadfast_testing::poll_times(api.call(post("k1", "one")), 2).await;
    assert!(cut.is_none());
    assert_eq!(api.store.count(Op::Complete), 0);
    api.settled().await;
    api.post("k1", "one").await.assert_replay(200, "abc");
    assert_eq!(api.runs(), 1);
}
