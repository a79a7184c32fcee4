//! Random calls at random times against a small model of what each of them has to get.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::join_all};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use proptest::prelude::*;
use steadfast_core::Body;
use steadfast_idempotency::{
    Drained, IdempotencyLayer, MemoryStore, OnFailure, Rejection, Scope, Timing,
};
use tokio::time::sleep;
use tower::{Layer as _, ServiceExt as _, service_fn};

/// A call as a client makes it.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// How long after the call before, in milliseconds.
    after: u64,
    key: u8,
    body: u8,
    outcome: Outcome,
    /// How long its handler takes, if it comes to that.
    takes: u64,
    /// After how long its client goes away, if it does.
    patience: Option<u64>,
}

/// What the handler makes of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outcome {
    Done,
    DoneTooLarge,
    Error,
    Panic,
    Refused,
}

/// What the client gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Got {
    /// Its own run, this one.
    Ran(usize, Outcome),
    /// The answer of that run.
    Replay(usize),
    InProgress,
    Gone,
    Reuse,
    Unknown,
    /// It did not wait for it.
    Left,
}

const LEASE: u64 = 30;
const TTL: u64 = 100;
/// The longest body that is stored.
const CAP: usize = 8;

/// All spans are such that no two things happen at the same instant: calls come and clients leave at even
/// milliseconds, handlers end at odd ones, and so does all that follows from them.
fn calls() -> impl Strategy<Value = Vec<Call>> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Done),
        1 => Just(Outcome::DoneTooLarge),
        1 => Just(Outcome::Error),
        1 => Just(Outcome::Panic),
        1 => Just(Outcome::Refused),
    ];
    let even = |most: u64| (1..most / 2).prop_map(|half| 2 * half);
    let call = (
        even(40),
        0_u8..3,
        0_u8..2,
        outcome,
        even(120),
        prop::option::weighted(0.3, even(60)),
    );
    let call = call.prop_map(|(after, key, body, outcome, takes, patience)| Call {
        after,
        key,
        body,
        outcome,
        takes: takes + 1,
        patience,
    });
    prop::collection::vec(call, 1..30)
}

/// What the model knows of a key.
#[derive(Clone, Copy, Debug)]
struct Known {
    body: u8,
    run: usize,
    outcome: Outcome,
    /// When the handler ends.
    ends: u64,
}

/// What each call has to get, and how many of them run.
fn model(calls: &[Call], on_failure: OnFailure) -> (Vec<Got>, usize) {
    let mut keys = HashMap::<u8, Known>::new();
    let (mut now, mut runs) = (0, 0);
    let got = calls.iter().map(|call| {
        now += call.after;
        if let Some(known) = keys.get(&call.key) {
            let running = now < known.ends;
            let kept = match known.outcome {
                Outcome::Done | Outcome::DoneTooLarge => true,
                Outcome::Error | Outcome::Panic => on_failure == OnFailure::Hold,
                Outcome::Refused => false,
            };
            if running || (kept && now < known.ends + TTL) {
                return match known.outcome {
                    _ if known.body != call.body => Got::Reuse,
                    _ if running => Got::InProgress,
                    Outcome::Done => Got::Replay(known.run),
                    Outcome::DoneTooLarge => Got::Gone,
                    Outcome::Error | Outcome::Panic | Outcome::Refused => Got::Unknown,
                };
            }
        }
        runs += 1;
        let ends = now + call.takes;
        let known = Known {
            body: call.body,
            run: runs,
            outcome: call.outcome,
            ends,
        };
        keys.insert(call.key, known);
        match call.patience {
            Some(patience) if patience < call.takes => Got::Left,
            _ => Got::Ran(runs, call.outcome),
        }
    });
    let got = got.collect();
    (got, runs)
}

/// Which call a request is, for the handler.
#[derive(Clone, Copy)]
struct Steer(Call);

type Handled = Result<Response<Full<Bytes>>, &'static str>;

async fn handle(run: usize, call: Call) -> Handled {
    sleep(Duration::from_millis(call.takes)).await;
    let answer = |status, body: String| {
        let response = Response::builder().status(status);
        Ok(response.body(Full::from(body)).unwrap())
    };
    match call.outcome {
        Outcome::Done => answer(201, run.to_string()),
        Outcome::DoneTooLarge => answer(201, format!("{run:0width$}", width = CAP + 1)),
        Outcome::Error => Err("refused"),
        Outcome::Panic => resume_unwind(Box::new(run)),
        Outcome::Refused => answer(409, run.to_string()),
    }
}

/// Makes the calls on a paused clock.
async fn play(calls: &[Call], on_failure: OnFailure) -> (Vec<Got>, usize) {
    let timing = Timing::new(Duration::from_millis(LEASE), Duration::from_millis(TTL)).unwrap();
    let layer = IdempotencyLayer::new(MemoryStore::new(100, 10_000), Scope::global())
        .timing(timing)
        .on_failure(on_failure)
        .max_stored_body(CAP);
    let drain = layer.drain();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let service = layer.layer(service_fn(move |request: Request<Body<Full<Bytes>>>| {
        let Steer(call) = *request.extensions().get().unwrap();
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        handle(run, call)
    }));

    let mut now = 0;
    let clients = calls.iter().map(|call| {
        now += call.after;
        let (service, call, at) = (service.clone(), *call, now);
        async move {
            sleep(Duration::from_millis(at)).await;
            let request = Request::post("/orders")
                .header("idempotency-key", format!("k{}", call.key))
                .extension(Steer(call))
                .body(Full::from(call.body.to_string()))
                .unwrap();
            let answer = AssertUnwindSafe(service.oneshot(request)).catch_unwind();
            let Some(patience) = call.patience else {
                return got(answer.await).await;
            };
            match tokio::time::timeout(Duration::from_millis(patience), answer).await {
                Ok(answer) => got(answer).await,
                Err(_) => Got::Left,
            }
        }
    });
    let got = join_all(clients).await;
    assert_eq!(drain.wait(Duration::from_secs(60)).await, Drained::All);
    (got, runs.load(Ordering::SeqCst))
}

type Answer = Result<Response<Body<Full<Bytes>>>, &'static str>;

async fn got(answer: std::thread::Result<Answer>) -> Got {
    let response = match answer {
        Ok(Ok(response)) => response,
        // It does not say which run it was of.
        Ok(Err(_)) => return Got::Ran(0, Outcome::Error),
        Err(panic) => return Got::Ran(*panic.downcast().unwrap(), Outcome::Panic),
    };
    match response.extensions().get() {
        None => {}
        Some(Rejection::InProgress) => return Got::InProgress,
        Some(Rejection::KeyReuse) => return Got::Reuse,
        Some(Rejection::OutcomeUnknown) => return Got::Unknown,
        Some(Rejection::ResultUnavailable(_)) => return Got::Gone,
        Some(other) => panic!("nothing here leads to {other:?}"),
    }
    let replayed = response.headers().contains_key("idempotent-replayed");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let run = std::str::from_utf8(&body).unwrap().parse().unwrap();
    match status {
        201 if replayed => Got::Replay(run),
        201 if body.len() > CAP => Got::Ran(run, Outcome::DoneTooLarge),
        201 => Got::Ran(run, Outcome::Done),
        _ => Got::Ran(run, Outcome::Refused),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn i13_calls_in_any_order_get_what_the_model_says(
        calls in calls(),
        on_failure in prop_oneof![Just(OnFailure::Release), Just(OnFailure::Hold)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (mut expected, expected_runs) = model(&calls, on_failure);
        for expected in &mut expected {
            if let Got::Ran(run, Outcome::Error) = expected {
                *run = 0;
            }
        }
        let (got, runs) = runtime.block_on(play(&calls, on_failure));
        prop_assert_eq!(got, expected);
        prop_assert_eq!(runs, expected_runs);
    }
}
