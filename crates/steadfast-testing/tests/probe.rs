//! The probe against callers that keep Tower's contract and callers that break it.

use std::{
    convert::Infallible,
    future::{pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use steadfast_testing::{
    ServiceProbe, assert_error, assert_service_contract, drop_at_every_await, poll_times,
};
use tokio::{sync::Semaphore, task::LocalSet};
use tower_service::Service;

type Reply = Response<Full<Bytes>>;

fn ok() -> ServiceProbe<()> {
    ServiceProbe::respond(|_request| Reply::default())
}

async fn ready<S: Service<Request<()>>>(service: &mut S) -> Result<(), S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await
}

#[test]
fn it_fits_the_contract_it_checks() {
    assert_service_contract::<_, Request<()>>(&ok());
    assert_error::<_, Request<()>, Infallible>(&ok());
    let named = ServiceProbe::<(), Full<Bytes>, &str>::script([Err("down")]);
    assert_error::<_, Request<()>, &str>(&named);
}

#[tokio::test]
async fn a_call_uses_up_the_one_reservation_of_its_instance() {
    let mut service = ok();
    let probe = service.handle();
    for _ in 0..3 {
        ready(&mut service).await.unwrap();
    }
    assert_eq!(probe.live_reservations(), 1, "repeated polls reserve once");

    let future = service.call(Request::new(()));
    assert_eq!((probe.live_reservations(), probe.in_flight()), (0, 1));
    assert_eq!(future.await.unwrap().status(), StatusCode::OK);
    assert_eq!((probe.calls(), probe.completed()), (1, 1));
    assert_eq!((probe.in_flight(), probe.peak_in_flight()), (0, 1));
    probe.assert_quiescent();
}

#[tokio::test]
async fn a_call_without_a_reservation_panics_and_is_kept() {
    let mut service = ok();
    let probe = service.handle();
    ready(&mut service).await.unwrap();
    let mut unready = service.clone();
    let result = catch_unwind(AssertUnwindSafe(|| unready.call(Request::new(()))));
    result.expect_err("the clone was not readied");
    assert_eq!(probe.breaches().len(), 1);
    drop(service);
    assert_eq!((probe.live_reservations(), probe.calls()), (0, 0));
    catch_unwind(|| probe.assert_quiescent()).expect_err("the breach is remembered");
}

#[tokio::test]
async fn a_second_call_needs_a_second_reservation() {
    let mut service = ok();
    ready(&mut service).await.unwrap();
    service.call(Request::new(())).await.unwrap();
    catch_unwind(AssertUnwindSafe(|| service.call(Request::new(()))))
        .expect_err("not readied again");
}

#[tokio::test]
async fn a_reservation_that_is_dropped_is_given_back_unused() {
    let mut service = ok();
    let probe = service.handle();
    ready(&mut service).await.unwrap();
    catch_unwind(|| probe.assert_quiescent()).expect_err("one is held");
    drop(service);
    assert_eq!(probe.unused_reservations(), 1);
    probe.assert_quiescent();
}

#[tokio::test]
async fn dropped_and_panicked_answers_are_told_apart() {
    let mut service = ServiceProbe::<(), Full<Bytes>>::new(|_request| async {
        tokio::task::yield_now().await;
        panic!("the handler's own")
    });
    let probe = service.handle();

    ready(&mut service).await.unwrap();
    let future = service.call(Request::new(()));
    catch_unwind(|| probe.assert_quiescent()).expect_err("one is in flight");
    drop(future);
    assert_eq!((probe.dropped(), probe.panicked()), (1, 0));

    ready(&mut service).await.unwrap();
    let future = service.call(Request::new(()));
    tokio::spawn(future).await.expect_err("it panics");
    assert_eq!((probe.dropped(), probe.panicked()), (1, 1));
    probe.assert_quiescent();
}

#[tokio::test]
async fn an_answer_that_panics_in_the_call_itself_is_counted() {
    let mut service = ServiceProbe::<()>::respond(|_request| panic!("the handler's own"));
    let probe = service.handle();
    ready(&mut service).await.unwrap();
    catch_unwind(AssertUnwindSafe(|| service.call(Request::new(())))).expect_err("it panics");
    assert_eq!((probe.calls(), probe.panicked()), (1, 1));
    probe.assert_quiescent();
}

#[tokio::test]
async fn a_script_answers_in_order_and_then_refuses() {
    let mut teapot = Response::new(());
    *teapot.status_mut() = StatusCode::IM_A_TEAPOT;
    let mut service = ServiceProbe::<(), _, &str>::script([Ok(teapot), Err("down")]);
    let probe = service.handle();
    for expected in [Ok(StatusCode::IM_A_TEAPOT), Err("down")] {
        let mut clone = service.clone();
        ready(&mut clone).await.unwrap();
        let answer = clone.call(Request::new(())).await;
        assert_eq!(answer.map(|response| response.status()), expected);
    }
    probe.assert_quiescent();

    ready(&mut service).await.unwrap();
    catch_unwind(AssertUnwindSafe(|| service.call(Request::new(())))).expect_err("it is used up");
    assert_eq!(probe.breaches().len(), 1);
    assert_eq!(probe.in_flight(), 0);
}

#[tokio::test]
async fn readiness_is_pending_as_often_as_asked_for_each_reservation() {
    let mut service = ok().pending_first(2);
    for _ in 0..2 {
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            service.poll_ready(cx)
        })
        .await
        .unwrap();
        assert_eq!(polls, 3);
        service.call(Request::new(())).await.unwrap();
    }
}

#[tokio::test]
async fn blocked_readiness_wakes_the_waiting_task_when_it_ends() {
    let service = ok();
    let probe = service.handle();
    probe.block();
    let waiting = tokio::spawn({
        let mut service = service.clone();
        async move {
            ready(&mut service).await.unwrap();
            service
        }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    assert_eq!(probe.live_reservations(), 0);
    probe.unblock();
    let held = waiting.await.unwrap();
    assert_eq!(probe.live_reservations(), 1);
    drop(held);
    probe.assert_quiescent();
}

#[tokio::test]
async fn readiness_can_fail() {
    let mut service = ServiceProbe::<(), (), &str>::script([]).fail_ready(|| "dead");
    assert_eq!(ready(&mut service).await, Err("dead"));
    service.handle().assert_quiescent();
}

#[tokio::test]
async fn a_future_polled_after_its_end_is_a_breach() {
    let mut service = ok();
    ready(&mut service).await.unwrap();
    let mut future = pin!(service.call(Request::new(())));
    future.as_mut().await.unwrap();
    let mut cx = std::task::Context::from_waker(Waker::noop());
    catch_unwind(AssertUnwindSafe(|| {
        future.as_mut().poll(&mut cx).is_ready()
    }))
    .expect_err("it was over");
    assert_eq!(service.handle().breaches().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn polls_are_counted_and_the_clock_goes_on_between_them() {
    let future = || async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        tokio::task::yield_now().await;
        7
    };
    assert_eq!(poll_times(future(), 0).await, None);
    assert_eq!(poll_times(future(), 1).await, None);
    assert_eq!(poll_times(future(), 2).await, None);
    assert_eq!(poll_times(future(), 3).await, Some(7));
}

#[tokio::test(start_paused = true)]
async fn a_lost_waker_is_a_failure_not_a_hang() {
    let lost = poll_times(pending::<()>(), 5);
    let failure = tokio::spawn(lost).await.expect_err("nothing ever wakes it");
    assert!(failure.is_panic());
}

#[tokio::test(start_paused = true)]
async fn a_clean_future_passes_at_every_await() {
    let setup = async || {
        let mut service = ServiceProbe::<()>::new(|_request| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            tokio::task::yield_now().await;
            Ok(Reply::default())
        })
        .pending_first(1);
        let probe = service.handle();
        let future = async move {
            ready(&mut service).await.unwrap();
            service.call(Request::new(())).await
        };
        (future, probe)
    };
    let mut dropped = 0;
    let places = drop_at_every_await(setup, async |probe: steadfast_testing::ProbeHandle| {
        dropped += probe.dropped();
        probe.assert_quiescent();
    })
    .await;
    // Unpolled, while not ready, in the sleep, in the yield.
    assert_eq!((places, dropped), (4, 2));
}

#[tokio::test(start_paused = true)]
async fn a_leak_at_one_await_only_is_found() {
    let setup = async || {
        let permits = Arc::new(Semaphore::new(1));
        let future = {
            let permits = Arc::clone(&permits);
            async move {
                tokio::task::yield_now().await;
                permits.acquire().await.unwrap().forget();
                tokio::task::yield_now().await;
                permits.add_permits(1);
                tokio::task::yield_now().await;
            }
        };
        (future, permits)
    };
    let local = LocalSet::new();
    let found = local.spawn_local(async move {
        let mut seen = Vec::new();
        drop_at_every_await(setup, async |permits: Arc<Semaphore>| {
            seen.push(permits.available_permits());
            assert_eq!(permits.available_permits(), 1, "{seen:?}");
        })
        .await
    });
    let failure = local
        .run_until(found)
        .await
        .expect_err("the permit leaks at the second yield");
    let message = failure.into_panic().downcast::<String>().unwrap();
    assert!(message.contains("[1, 1, 0]"), "{message}");
}

#[test]
fn a_pending_poll_is_not_ready() {
    let mut service = ok().pending_first(1);
    let mut cx = std::task::Context::from_waker(Waker::noop());
    assert!(matches!(
        Service::<Request<()>>::poll_ready(&mut service, &mut cx),
        Poll::Pending
    ));
    service.handle().assert_quiescent();
}
