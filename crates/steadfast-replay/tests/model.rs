//! Random deliveries at random times against a small model: an event is processed once, and never lost.

use std::{
    collections::HashMap,
    mem::ManuallyDrop,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::join_all};
use http::{Request, Response};
use http_body_util::Full;
use proptest::prelude::*;
use steadfast_core::facts::{MessageId, SignedContent, Verified};
use steadfast_replay::{Duplicate, MemoryStore, Rejection, ReplayGuardLayer};
use tokio::time::{sleep, timeout};
use tower::{Layer as _, ServiceExt as _, service_fn};

/// A delivery as a sender makes it. All spans are in seconds, and such that no two things happen at the same instant:
/// deliveries come and senders leave at even seconds, handlers and leases end at odd ones.
#[derive(Clone, Copy, Debug)]
struct Delivery {
    /// How long after the delivery before.
    after: u64,
    event: u8,
    outcome: Outcome,
    /// How long its handler takes, if it comes to that.
    takes: u64,
    /// After how long its sender goes away, if it does.
    patience: Option<u64>,
}

/// What the handler makes of a delivery.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outcome {
    Done,
    Refused,
    Error,
    Panic,
    /// Its process is killed, and its lease runs out.
    Killed,
}

/// What the sender gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Got {
    Ran(Outcome),
    Duplicate,
    InProgress,
    /// It did not wait for it.
    Left,
}

const LEASE: u64 = 31;

fn deliveries() -> impl Strategy<Value = Vec<Delivery>> {
    let outcome = prop_oneof![
        2 => Just(Outcome::Done),
        2 => Just(Outcome::Refused),
        1 => Just(Outcome::Error),
        2 => Just(Outcome::Panic),
        2 => Just(Outcome::Killed),
    ];
    let even = |most: u64| (1..most / 2).prop_map(|half| 2 * half);
    let delivery = (
        even(40),
        0_u8..3,
        outcome,
        even(120),
        prop::option::weighted(0.3, even(60)),
    );
    let delivery = delivery.prop_map(|(after, event, outcome, takes, patience)| Delivery {
        after,
        event,
        outcome,
        takes: takes + 1,
        patience,
    });
    prop::collection::vec(delivery, 1..40)
}

/// What each delivery has to get, and how often each event is run.
fn model(deliveries: &[Delivery]) -> (Vec<Got>, HashMap<u8, usize>) {
    let (mut busy, mut runs) = (HashMap::<u8, (u64, Outcome)>::new(), HashMap::new());
    let mut now = 0;
    let got = deliveries.iter().map(|delivery| {
        now += delivery.after;
        match busy.get(&delivery.event) {
            Some((until, _)) if now < *until => return Got::InProgress,
            Some((_, Outcome::Done)) => return Got::Duplicate,
            _ => {}
        }
        *runs.entry(delivery.event).or_default() += 1;
        let lasts = match delivery.outcome {
            Outcome::Killed => LEASE,
            _ => delivery.takes,
        };
        busy.insert(delivery.event, (now + lasts, delivery.outcome));
        match delivery.patience {
            _ if delivery.outcome == Outcome::Killed => Got::Left,
            Some(patience) if patience < delivery.takes => Got::Left,
            _ => Got::Ran(delivery.outcome),
        }
    });
    let got = got.collect();
    (got, runs)
}

/// What the handlers did: each event's runs, and how many of them were done.
type Log = Arc<Mutex<HashMap<u8, (usize, usize)>>>;

async fn handle(
    log: Log,
    request: Request<Full<Bytes>>,
) -> Result<Response<Full<Bytes>>, &'static str> {
    let delivery = *request.extensions().get::<Delivery>().unwrap();
    log.lock().unwrap().entry(delivery.event).or_default().0 += 1;
    sleep(Duration::from_secs(delivery.takes)).await;
    let status = match delivery.outcome {
        Outcome::Done => 204,
        Outcome::Refused => 500,
        Outcome::Error => return Err("no"),
        Outcome::Panic => panic!("the handler panicked"),
        Outcome::Killed => unreachable!("it is not polled again"),
    };
    if status == 204 {
        log.lock().unwrap().entry(delivery.event).or_default().1 += 1;
    }
    Ok(Response::builder()
        .status(status)
        .body(Full::default())
        .unwrap())
}

fn request(delivery: Delivery, signed: bool) -> Request<Full<Bytes>> {
    let id = Bytes::from(vec![delivery.event]);
    let content = SignedContent::body_alone(id.clone());
    let id = if signed {
        MessageId::signed(id)
    } else {
        MessageId::unsigned(id)
    };
    Request::post("/hook")
        .extension(Verified::new("s", "k", content).with_id(id))
        .extension(delivery)
        .body(Full::default())
        .unwrap()
}

async fn run(deliveries: &[Delivery], signed: bool) -> (Vec<Got>, HashMap<u8, usize>) {
    let (store, log) = (MemoryStore::new(1_000), Log::default());
    let layer = ReplayGuardLayer::events(store)
        .lease(Duration::from_secs(LEASE))
        .retention(Duration::from_secs(1_000_000));
    let handler_log = Arc::clone(&log);
    let handler = service_fn(move |request| handle(Arc::clone(&handler_log), request));
    // Two guards that share a store, as two servers do.
    let guards = [layer.clone().layer(handler.clone()), layer.layer(handler)];
    let mut begins = 0;
    let calls = deliveries.iter().enumerate().map(|(n, delivery)| {
        begins += delivery.after;
        let guard = guards[n % 2].clone();
        async move {
            sleep(Duration::from_secs(begins)).await;
            let mut call = Box::pin(guard.oneshot(request(*delivery, signed)));
            if delivery.outcome == Outcome::Killed {
                let answer = call.as_mut().now_or_never();
                if answer.is_none() {
                    // Neither polled nor dropped again, as in a process that is gone.
                    let _kept = ManuallyDrop::new(call);
                }
                return answer.map_or(Got::Left, |answer| refused(&answer.unwrap()));
            }
            let patience = delivery.patience.map_or(Duration::MAX, Duration::from_secs);
            let call = AssertUnwindSafe(call).catch_unwind();
            match timeout(patience, pin!(call)).await {
                Err(_) => Got::Left,
                Ok(Err(_panic)) => Got::Ran(Outcome::Panic),
                Ok(Ok(Err(_error))) => Got::Ran(Outcome::Error),
                Ok(Ok(Ok(answer))) => match answer.status().as_u16() {
                    204 => Got::Ran(Outcome::Done),
                    500 => Got::Ran(Outcome::Refused),
                    _ => refused(&answer),
                },
            }
        }
    });
    let got = join_all(calls).await;
    sleep(Duration::from_secs(1_000)).await;
    let runs = log
        .lock()
        .unwrap()
        .iter()
        .map(|(event, it)| (*event, it.0))
        .collect();
    // In the end the sender's redelivery is processed, unless it was before: nothing is lost.
    for event in 0..3 {
        let last = Delivery {
            after: 0,
            event,
            outcome: Outcome::Done,
            takes: 0,
            patience: None,
        };
        let answer = guards[0].clone().oneshot(request(last, signed)).await;
        assert!(answer.unwrap().status().is_success());
        let done = log.lock().unwrap()[&event].1;
        assert_eq!(done, 1, "event {event} was not processed exactly once");
    }
    (got, runs)
}

fn refused<B>(answer: &Response<B>) -> Got {
    if answer.extensions().get::<Duplicate>().is_some() {
        return Got::Duplicate;
    }
    let rejection = answer.extensions().get::<Rejection>();
    assert_eq!(rejection, Some(&Rejection::InProgress));
    Got::InProgress
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn g03_g04_an_event_is_processed_exactly_once_whatever_becomes_of_its_deliveries(
        deliveries in deliveries(),
        signed: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (got, runs) = runtime.block_on(run(&deliveries, signed));
        let (expected, expected_runs) = model(&deliveries);
        prop_assert_eq!(got, expected);
        prop_assert_eq!(runs, expected_runs);
    }
}
