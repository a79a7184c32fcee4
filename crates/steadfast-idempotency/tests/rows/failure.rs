//! I12: what becomes of the key when the handler did not succeed.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use steadfast_idempotency::{Disposition, OnFailure};

use crate::kit::{
    Api, Content, Fault, Faulty, Handled, Layer, Op, Reply, State, TICK, answer, order, pass, post,
    seconds,
};

const STRICT: fn(Layer) -> Layer = |layer| layer.on_failure(OnFailure::Hold);

#[tokio::test(start_paused = true)]
async fn i12_strict_holds_what_is_unknown_and_frees_what_was_refused() {
    for (status, state) in [
        (302, State::Free),
        (400, State::Free),
        (404, State::Free),
        (408, State::Held),
        (409, State::Free),
        (422, State::Free),
        (429, State::Free),
        (500, State::Held),
        (502, State::Held),
        (503, State::Held),
        (504, State::Held),
    ] {
        let api = Api::with(STRICT, move |_| async move { Ok(answer(status, "no")) });
        api.post("k1", "one").await.assert_first(status, "no");
        assert_eq!(api.store.state().await, state, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_key_is_free_after_the_ttl_from_the_failure() {
    let api = Api::with(STRICT, |_| async {
        tokio::time::sleep(seconds(100)).await;
        Ok(answer(500, "no"))
    });
    api.post("k1", "one").await.assert_first(500, "no");
    pass(seconds(24 * 3600) - TICK).await;
    api.post("k1", "one").await.assert_unknown();
    pass(TICK).await;
    assert_eq!(api.store.state().await, State::Free);
}

#[tokio::test(start_paused = true)]
async fn a_hook_decides_from_the_head_alone() {
    let by_header = |layer: Layer| {
        layer.classify_response(|head| match head.headers["x-outcome"].to_str() {
            Ok("store") => Disposition::Store,
            Ok("hold") => Disposition::Hold,
            _ => Disposition::Release,
        })
    };
    for (status, outcome, state) in [
        (402, "store", State::Completed),
        (500, "store", State::Completed),
        (200, "hold", State::Held),
        (200, "release", State::Free),
        (500, "release", State::Free),
        (404, "hold", State::Held),
    ] {
        let handler = move |_| async move {
            let mut response = answer(status, "body");
            let outcome = http::HeaderValue::from_static(outcome);
            response.headers_mut().insert("x-outcome", outcome);
            Ok(response)
        };
        let api = Api::with(by_header, handler);
        api.post("k1", "one").await.assert_first(status, "body");
        assert_eq!(api.store.state().await, state, "{status} {outcome}");
        if state == State::Completed {
            api.post("k1", "one").await.assert_replay(status, "body");
            assert_eq!(api.runs(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_does_not_free_the_key_of_a_call_that_was_answered() {
    let api = Api::with(
        |layer| layer.classify_response(|_| panic!("the hook's own")),
        order,
    );
    let unwound = AssertUnwindSafe(api.call(post("k1", "one"))).catch_unwind();
    let panic = unwound.await.unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"the hook's own"));
    assert_eq!(api.store.state().await, State::Held);
    api.post("k1", "one").await.assert_unknown();
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_before_its_first_await_is_no_exception() {
    let api = Api::around(
        Faulty::default(),
        |layer| layer,
        tower::service_fn(|_| -> std::future::Ready<Handled> { panic!("in the call itself") }),
    );
    let unwound = AssertUnwindSafe(api.call(post("k1", "one"))).catch_unwind();
    unwound.await.unwrap_err();
    assert_eq!(api.store.state().await, State::Free);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_frees_the_key_when_its_lease_is_over() {
    for fault in [Fault::Error, Fault::Hang] {
        let api = Api::new(|_| async { Ok(answer(500, "no")) });
        api.store.once(Op::Release, fault);
        api.post("k1", "one").await.assert_first(500, "no");
        api.post("k1", "one").await.assert_in_progress();
        tokio::time::sleep(seconds(30)).await;
        api.post("k1", "one").await.assert_first(500, "no");
        assert_eq!(api.runs(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_fails_is_made_later() {
    let api = Api::with(STRICT, |_| async { Ok(answer(500, "no")) });
    for _ in 0..8 {
        api.store.once(Op::Hold, Fault::Error);
    }
    api.post("k1", "one").await.assert_first(500, "no");
    assert_eq!(api.store.state().await, State::Claimed);
    api.settled().await;
    assert_eq!(api.store.state().await, State::Held);
    api.post("k1", "one").await.assert_unknown();
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_failure_streams() {
    let api = Api::new(|_| async {
        let body = Content::new(["no"]).error("and no end");
        Ok(http::Response::builder().status(500).body(body).unwrap())
    });
    // The key is free with the head; nobody reads the body for it.
    let response = api.call(post("k1", "one")).await.unwrap();
    assert_eq!(api.store.state().await, State::Free);
    let reply = Reply::read(response).await;
    assert_eq!((reply.status, reply.error), (500, Some("and no end")));
}
