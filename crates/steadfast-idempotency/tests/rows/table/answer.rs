//! Rows 18 to 26: what the handler's answer makes of the claim.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};

use futures_util::FutureExt as _;
use http::Response;
use steadfast_idempotency::{DoNotStore, OnFailure, TombstoneReason};
use steadfast_testing::poll_times;
use tokio::time::{Instant, sleep, timeout};
use tower::{ServiceBuilder, ServiceExt as _, service_fn, timeout::Timeout};

use crate::kit::{
    Api, Content, Fault, Faulty, Handled, Incoming, Layer, Op, Reply, State, answer, post, seconds,
    slow_order,
};

#[tokio::test(start_paused = true)]
async fn row_18_a_2xx_is_stored_and_sent_without_the_mark_of_a_replay() {
    for status in [200, 201, 202, 299] {
        let api = Api::new(move |_| async move { Ok(answer(status, "done")) });
        api.post("k1", "one").await.assert_first(status, "done");
        assert_eq!(api.store.state().await, State::Completed);
        assert_eq!(api.store.log(), [Op::Claim, Op::Complete]);
        api.post("k1", "one").await.assert_replay(status, "done");
        assert_eq!(api.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn row_19_an_answer_that_is_not_2xx_frees_the_key() {
    for status in [199, 302, 304, 400, 404, 408, 409, 422, 429, 500, 502, 503] {
        let api = Api::new(move |_| async move { Ok(answer(status, "no")) });
        for run in 1..=2 {
            api.post("k1", "one").await.assert_first(status, "no");
            assert_eq!(api.store.state().await, State::Free);
            assert_eq!(api.runs(), run);
        }
    }
}

async fn panicking(_request: Incoming) -> Handled {
    panic!("the handler's own")
}

#[tokio::test(start_paused = true)]
async fn row_20_a_panic_goes_on_unwinding_once_the_claim_has_ended() {
    for (on_failure, state) in [
        (OnFailure::Release, State::Free),
        (OnFailure::Hold, State::Held),
    ] {
        let api = Api::with(|layer| layer.on_failure(on_failure), panicking);
        let unwound = AssertUnwindSafe(api.call(post("k1", "one"))).catch_unwind();
        let panic = unwound.await.unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"the handler's own"));
        assert_eq!(api.store.state().await, state);
        assert_eq!(api.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn row_20_a_panic_waits_for_a_hanging_store_no_longer_than_a_step_may_take() {
    let api = Api::new(panicking);
    api.store.always(Op::Release, Fault::Hang);
    let start = Instant::now();
    let unwound = AssertUnwindSafe(api.call(post("k1", "one"))).catch_unwind();
    unwound.await.unwrap_err();
    assert_eq!(start.elapsed(), seconds(2));
}

#[tokio::test(start_paused = true)]
async fn row_21_an_error_of_the_service_is_passed_on_and_frees_the_key() {
    for (on_failure, state) in [
        (OnFailure::Release, State::Free),
        (OnFailure::Hold, State::Held),
    ] {
        let configure = |layer: Layer| layer.on_failure(on_failure);
        let api = Api::with(configure, |_| async { Err("refused") });
        let error = api.call(post("k1", "one")).await.unwrap_err();
        assert_eq!(error, "refused");
        assert_eq!(api.store.state().await, state);
        assert_eq!(api.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn row_22_a_client_that_disconnects_does_not_stop_the_call() {
    let api = Api::new(slow_order);
    assert!(poll_times(api.call(post("k1", "one")), 1).await.is_none());
    assert_eq!((api.runs(), api.finished()), (1, 0));
    assert_eq!(api.store.state().await, State::Claimed);

    api.settled().await;
    assert_eq!((api.runs(), api.finished()), (1, 1));
    assert_eq!(api.store.state().await, State::Completed);
    api.post("k1", "one").await.assert_replay(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn row_22_an_outer_timeout_does_not_stop_the_call() {
    let api = Api::new(slow_order);
    let outer = Timeout::new(api.service.clone(), seconds(1));
    outer.oneshot(post("k1", "one")).await.unwrap_err();
    assert_eq!((api.runs(), api.finished()), (1, 0));

    api.post("k1", "one").await.assert_in_progress();
    sleep(seconds(5)).await;
    api.post("k1", "one").await.assert_replay(201, "order 1");
    assert_eq!((api.runs(), api.finished()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn row_23_an_inner_timeout_is_a_failure_like_any_other() {
    for (on_failure, state) in [
        (OnFailure::Release, State::Free),
        (OnFailure::Hold, State::Held),
    ] {
        let handler = ServiceBuilder::new()
            .then(|handled: Handled| async {
                Ok::<_, &str>(handled.unwrap_or_else(|_elapsed| answer(504, "too late")))
            })
            .map_err(|_elapsed: tower::BoxError| "elapsed")
            .timeout(seconds(1))
            .service(service_fn(slow_order));
        let configure = |layer: Layer| layer.on_failure(on_failure);
        let api = Api::around(Faulty::default(), configure, handler);
        api.post("k1", "one").await.assert_first(504, "too late");
        assert_eq!(api.store.state().await, state);
        assert_eq!(api.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn row_24_an_answer_over_the_cap_streams_and_is_remembered_without_its_body() {
    let api = Api::with(
        |layer| layer.max_stored_body(4),
        |_| async { Ok(Response::new(Content::new(["abc", "def", "ghi"]))) },
    );
    // The claim has ended by the time the head is there: the rest of the body is between handler and client.
    let response = api.call(post("k1", "one")).await.unwrap();
    let gone = State::Gone(200, TombstoneReason::TooLarge);
    assert_eq!(api.store.state().await, gone);
    Reply::read(response).await.assert_first(200, "abcdefghi");

    api.post("k1", "one").await.assert_gone(200, "too_large");
    assert_eq!(api.runs(), 1);
    assert_eq!(api.store.state().await, gone);
}

#[tokio::test(start_paused = true)]
async fn row_25_a_stream_passes_through_and_is_remembered_without_its_body() {
    let typed = |content_type: &str| Response::builder().header("content-type", content_type);
    let heads = [
        ("events", typed("text/event-stream")),
        ("frames", typed("multipart/x-mixed-replace; boundary=b")),
        ("marked", Response::builder().extension(DoNotStore)),
        ("switched", Response::builder().status(101)),
    ];
    for (kind, head) in heads {
        // It has no end: whoever reads it before answering never answers.
        let response = head.body(Content::new(["event"]).stall()).unwrap();
        let status = response.status().as_u16();
        let response = Arc::new(Mutex::new(Some(response)));
        let api = Api::new(move |_| {
            let response = Arc::clone(&response);
            async move { Ok(response.lock().unwrap().take().unwrap()) }
        });
        let answer = timeout(seconds(60), api.call(post("k1", "one"))).await;
        let response = answer.expect("its body is not read").unwrap();
        assert_eq!(response.status(), status, "{kind}");
        let gone = State::Gone(status, TombstoneReason::Streamed);
        assert_eq!(api.store.state().await, gone, "{kind}");
        api.post("k1", "one").await.assert_gone(status, "streamed");
        assert_eq!(api.runs(), 1, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn row_26_a_body_that_breaks_off_reaches_the_client_broken_and_is_never_stored() {
    let api = Api::new(|_| async {
        let body = Content::new(["half"]).error("disk gone");
        Ok(Response::builder().status(201).body(body).unwrap())
    });
    let reply = api.post("k1", "one").await;
    assert_eq!((reply.status, &reply.body[..]), (201, &b"half"[..]));
    assert_eq!(reply.error, Some("disk gone"));

    let gone = State::Gone(201, TombstoneReason::BodyError);
    assert_eq!(api.store.state().await, gone);
    api.post("k1", "one").await.assert_gone(201, "body_error");
    assert_eq!(api.runs(), 1);
}
