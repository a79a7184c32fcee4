//! I13: a duplicate that may wait for the running call.

use futures_util::{future::join_all, join};
use steadfast_idempotency::Timing;
use steadfast_testing::poll_times;
use tokio::time::{Instant, sleep};

use crate::kit::{
    Api, Fault, Handled, Incoming, Layer, Op, State, answer, order, post, run_of, seconds,
    slow_order,
};

fn waits(wait: u64) -> impl FnOnce(Layer) -> Layer {
    let timing = Timing::new(seconds(30), seconds(3600)).unwrap();
    let timing = timing.wait_for(seconds(wait)).unwrap();
    move |layer| layer.timing(timing)
}

#[tokio::test(start_paused = true)]
async fn i13_a_waiter_gets_the_replay() {
    let api = Api::with(waits(20), slow_order);
    let start = Instant::now();
    let (first, waiters) = join!(
        api.post("k1", "one"),
        join_all((0..10).map(|_| async {
            sleep(seconds(1)).await;
            api.post("k1", "one").await
        }))
    );
    first.assert_first(201, "order 1");
    for waiter in waiters {
        waiter.assert_replay(201, "order 1");
    }
    assert_eq!(api.runs(), 1);
    // Not a blind sleep for all of the wait: they look again while they wait.
    assert!(start.elapsed() < seconds(6), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn i13_a_waiter_runs_when_the_first_call_has_failed() {
    async fn first_fails(request: Incoming) -> Handled {
        sleep(seconds(5)).await;
        match run_of(&request) {
            1 => Ok(answer(503, "not now")),
            _ => order(request).await,
        }
    }
    let api = Api::with(waits(20), first_fails);
    let (first, waiter) = join!(api.post("k1", "one"), async {
        sleep(seconds(1)).await;
        api.post("k1", "one").await
    });
    first.assert_first(503, "not now");
    waiter.assert_first(201, "order 2");
    assert_eq!(api.runs(), 2);
    assert_eq!(api.store.state().await, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn i13_a_wait_ends_in_409_no_earlier_and_no_later() {
    let api = Api::with(waits(3), slow_order);
    let (_, waited) = join!(api.post("k1", "one"), async {
        sleep(seconds(1)).await;
        let start = Instant::now();
        api.post("k1", "one").await.assert_in_progress();
        start.elapsed()
    });
    assert_eq!(waited, seconds(3));
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn i13_a_waiter_that_goes_away_leaves_nothing_behind() {
    // At whichever of its looks it goes, the first call fails and frees the key, and nothing runs for it.
    for polls in 1..10 {
        let api = Api::with(waits(20), |_| async {
            sleep(seconds(5)).await;
            Ok(answer(500, "no"))
        });
        let (first, waiter) = join!(api.post("k1", "one"), async {
            sleep(seconds(1)).await;
            poll_times(api.call(post("k1", "one")), polls).await
        });
        first.assert_first(500, "no");
        assert!(waiter.is_none(), "after {polls} polls");
        api.settled().await;
        sleep(seconds(100)).await;
        assert_eq!(api.runs(), 1, "after {polls} polls");
        assert_eq!(api.store.state().await, State::Free);
    }
}

#[tokio::test(start_paused = true)]
async fn i09_another_request_does_not_wait() {
    let api = Api::with(waits(20), slow_order);
    let (first, waited) = join!(api.post("k1", "one"), async {
        sleep(seconds(1)).await;
        let start = Instant::now();
        api.post("k1", "two").await.assert_reuse();
        start.elapsed()
    });
    first.assert_first(201, "order 1");
    assert_eq!(waited, seconds(0));
}

#[tokio::test(start_paused = true)]
async fn i13_a_store_that_fails_during_a_wait_ends_it() {
    let api = Api::with(waits(20), slow_order);
    let (first, waiter) = join!(api.post("k1", "one"), async {
        sleep(seconds(1)).await;
        let waiting = api.post("k1", "one");
        let failing = async {
            sleep(seconds(1)).await;
            api.store.once(Op::Claim, Fault::Error);
        };
        join!(waiting, failing).0
    });
    first.assert_first(201, "order 1");
    waiter.assert_unavailable();
    // The claim it gave up was not the first call's.
    api.post("k1", "one").await.assert_replay(201, "order 1");
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn i13_a_waiter_takes_over_what_a_killed_process_left() {
    let api = Api::with(waits(30), slow_order);
    let mut killed = tokio_test::task::spawn(api.call(post("k1", "one")));
    tokio_test::assert_pending!(killed.poll());
    sleep(seconds(10)).await;
    let start = Instant::now();
    api.post("k1", "one").await.assert_first(201, "order 2");
    // Twenty seconds of lease, at most one look's pause, and the handler's five.
    let waited = start.elapsed();
    assert!(waited >= seconds(25) && waited < seconds(26), "{waited:?}");
}
