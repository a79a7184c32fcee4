//! I15: a client that goes away, at whichever await.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use http::Response;
use steadfast_testing::{drop_at_every_await, poll_times};
use tokio::{task::yield_now, time::sleep};

use crate::kit::{
    Api, Content, Fault, Handled, Incoming, Op, State, answer, millis, post, request, seconds,
};

/// Every await there is: the request's body, each step of the store, the handler, the answer's body.
fn with_awaits(handler: fn() -> Result<Response<Content>, &'static str>) -> Api {
    let api = Api::new(move |_request: Incoming| async move {
        yield_now().await;
        sleep(millis(100)).await;
        yield_now().await;
        handler()
    });
    for op in [Op::Claim, Op::Complete, Op::Release, Op::Tombstone] {
        api.store.always(op, Fault::Pause);
    }
    api
}

fn slow_request() -> http::Request<Content> {
    let body = Content::new(["o", "ne"]).pending();
    request()
        .header("idempotency-key", "k1")
        .body(body)
        .unwrap()
}

/// Drops a call at each of its awaits. Before the claim was sent, nothing may have run; from then on, everything must
/// run to its end, once. Returns how many drops there were before and after.
async fn at_every_await(
    handler: fn() -> Result<Response<Content>, &'static str>,
    mut check: impl AsyncFnMut(&Api),
) -> (usize, usize) {
    let (mut before, mut after) = (0, 0);
    let setup = async || {
        let api = with_awaits(handler);
        (api.call(slow_request()), api)
    };
    drop_at_every_await(setup, async |api: Api| {
        let claimed = api.store.count(Op::Claim) > 0;
        api.settled().await;
        let runs = usize::from(claimed);
        assert_eq!((api.runs(), api.finished()), (runs, runs));
        if claimed {
            after += 1;
            check(&api).await;
        } else {
            before += 1;
            assert_eq!(api.store.log(), []);
        }
        assert_eq!(api.drain.running(), 0);
    })
    .await;
    (before, after)
}

#[tokio::test(start_paused = true)]
async fn i15_an_answer_is_stored_wherever_its_client_was_lost() {
    let handler = || {
        let body = Content::new(["do", "ne"]).pending();
        Ok(Response::builder().status(201).body(body).unwrap())
    };
    let (before, after) = at_every_await(handler, async |api| {
        assert_eq!(api.store.state().await, State::Completed);
        api.send(slow_request()).await.assert_replay(201, "done");
        assert_eq!(api.runs(), 1);
    })
    .await;
    // Unpolled, and three times in the request's body; twice in the claim, three times in the handler, three times in
    // the answer's body, and twice in the save.
    assert_eq!((before, after), (4, 10));
}

#[tokio::test(start_paused = true)]
async fn i15_a_failure_frees_the_key_wherever_its_client_was_lost() {
    let handlers: [fn() -> Handled; 2] = [|| Ok(answer(500, "no")), || Err("no")];
    for handler in handlers {
        let (_, after) = at_every_await(handler, async |api| {
            assert_eq!(api.store.state().await, State::Free);
        })
        .await;
        assert_eq!(after, 7);
    }
}

#[tokio::test(start_paused = true)]
async fn i15_a_panic_without_a_client_frees_the_key() {
    let handler = || -> Handled { panic!("the handler's own") };
    // As long as there is a client the panic is the client's.
    let api = with_awaits(handler);
    AssertUnwindSafe(api.call(slow_request()))
        .catch_unwind()
        .await
        .unwrap_err();

    let mut polls = 5;
    loop {
        let api = with_awaits(handler);
        let call = AssertUnwindSafe(api.call(slow_request())).catch_unwind();
        if poll_times(call, polls).await.is_some() {
            break;
        }
        api.settled().await;
        assert_eq!(api.runs(), 1, "after {polls} polls");
        assert_eq!(api.store.state().await, State::Free);
        polls += 1;
    }
    assert!(polls > 8, "{polls}");
}

#[tokio::test(start_paused = true)]
async fn i15_a_stream_nobody_waits_for_is_remembered_as_done() {
    let handler = || {
        let head = Response::builder().header("content-type", "text/event-stream");
        Ok(head.body(Content::new(["event"]).stall()).unwrap())
    };
    at_every_await(handler, async |api| {
        api.send(slow_request()).await.assert_gone(200, "streamed");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i15_a_client_that_comes_back_at_once_is_told_that_its_call_runs() {
    let api = Api::new(crate::kit::slow_order);
    for _ in 0..3 {
        drop(poll_times(api.call(post("k1", "one")), 1).await);
        sleep(seconds(1)).await;
    }
    api.post("k1", "one").await.assert_in_progress();
    sleep(seconds(3)).await;
    api.post("k1", "one").await.assert_replay(201, "order 1");
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_the_layer_does_not_cover_ends_with_its_client() {
    let api = with_awaits(|| Ok(answer(200, "")));
    let keyless = request().body(Content::new(["one"])).unwrap();
    assert!(poll_times(api.call(keyless), 1).await.is_none());
    sleep(seconds(10)).await;
    assert_eq!((api.runs(), api.finished()), (1, 0));
}
