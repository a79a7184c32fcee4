//! I13 on several threads: whoever loses the race for a key never runs.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use steadfast_core::Body;
use steadfast_idempotency::{Drained, IdempotencyLayer, MemoryStore, Rejection, Scope, Timing};
use tokio::{
    sync::{Barrier, Semaphore},
    task::JoinHandle,
};
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

const CALLERS: usize = 64;

fn layer() -> IdempotencyLayer<MemoryStore> {
    IdempotencyLayer::new(MemoryStore::new(10_000, 1024 * 1024), Scope::global())
}

fn order(key: &str) -> Request<Full<Bytes>> {
    let request = Request::post("/orders").header("idempotency-key", key);
    request.body(Full::from("one")).unwrap()
}

fn created(run: usize) -> Response<Full<Bytes>> {
    let response = Response::builder().status(201);
    response.body(Full::from(format!("order {run}"))).unwrap()
}

/// What a caller got.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Got {
    First,
    InProgress,
    Replay,
}

async fn got(response: Response<Body<Full<Bytes>>>) -> Got {
    if response.extensions().get() == Some(&Rejection::InProgress) {
        return Got::InProgress;
    }
    assert_eq!(response.status(), 201);
    let replayed = response.headers().contains_key("idempotent-replayed");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "order 1");
    if replayed { Got::Replay } else { Got::First }
}

/// Makes one call a task, all at the same instant.
fn race<S>(service: &S, callers: usize) -> Vec<JoinHandle<Got>>
where
    S: Service<
            Request<Full<Bytes>>,
            Response = Response<Body<Full<Bytes>>>,
            Error = Infallible,
            Future: Send,
        > + Clone
        + Send
        + 'static,
{
    let start = Arc::new(Barrier::new(callers));
    (0..callers)
        .map(|_| {
            let (service, start) = (service.clone(), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                got(service.oneshot(order("k1")).await.unwrap()).await
            })
        })
        .collect()
}

fn count(all: &[Got], what: Got) -> usize {
    all.iter().filter(|got| **got == what).count()
}

async fn joined(calls: Vec<JoinHandle<Got>>) -> Vec<Got> {
    join_all(calls)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i13_of_64_calls_at_once_one_runs_and_63_are_told_so() {
    for _ in 0..20 {
        let runs = Arc::<AtomicUsize>::default();
        let go = Arc::new(Semaphore::new(0));
        let handler = {
            let (runs, go) = (Arc::clone(&runs), Arc::clone(&go));
            service_fn(move |_request: Request<Body<Full<Bytes>>>| {
                let (runs, go) = (Arc::clone(&runs), Arc::clone(&go));
                async move {
                    let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
                    go.acquire().await.unwrap().forget();
                    Ok::<_, Infallible>(created(run))
                }
            })
        };
        let service = layer().layer(handler);
        // The handler goes on when the 63 others have their answer.
        let mut calls = race(&service, CALLERS);
        let mut answers = Vec::new();
        while answers.len() < CALLERS - 1 {
            let (answer, _, rest) = futures_util::future::select_all(calls).await;
            answers.push(answer.unwrap());
            calls = rest;
        }
        assert_eq!(count(&answers, Got::InProgress), CALLERS - 1);
        go.add_permits(1);
        assert_eq!(joined(calls).await, [Got::First]);

        let repeats = joined(race(&service, CALLERS)).await;
        assert_eq!(count(&repeats, Got::Replay), CALLERS);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i13_of_64_calls_at_once_one_runs_and_63_wait_for_its_answer() {
    let timing = Timing::default().wait_for(Duration::from_secs(30)).unwrap();
    let runs = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&runs);
    let handler = service_fn(move |_request: Request<Body<Full<Bytes>>>| {
        let counted = Arc::clone(&counted);
        async move {
            let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            Ok::<_, Infallible>(created(run))
        }
    });
    let service = layer().timing(timing).layer(handler);
    let answers = joined(race(&service, CALLERS)).await;
    assert_eq!(count(&answers, Got::First), 1);
    assert_eq!(count(&answers, Got::Replay), CALLERS - 1);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i10_a_thousand_keys_at_once_do_not_disturb_each_other() {
    let runs = Arc::<Mutex<HashMap<String, usize>>>::default();
    let counted = Arc::clone(&runs);
    let handler = service_fn(move |request: Request<Body<Full<Bytes>>>| {
        let key = request.headers()["idempotency-key"].to_str().unwrap();
        *counted.lock().unwrap().entry(key.to_owned()).or_default() += 1;
        async {
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(created(1))
        }
    });
    let service = layer().layer(handler);
    let calls = (0..4000).map(|n| {
        let service = service.clone();
        tokio::spawn(async move {
            let key = format!("k{}", n % 1000);
            got(service.oneshot(order(&key)).await.unwrap()).await
        })
    });
    let answers = joined(calls.collect()).await;
    assert_eq!(count(&answers, Got::First), 1000);
    let runs = runs.lock().unwrap();
    assert_eq!(runs.len(), 1000);
    assert!(runs.values().all(|runs| *runs == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i15_clients_that_come_and_go_at_random_have_their_call_made_once() {
    let runs = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&runs);
    let handler = service_fn(move |_request: Request<Body<Full<Bytes>>>| {
        let counted = Arc::clone(&counted);
        async move {
            let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            Ok::<_, Infallible>(created(run))
        }
    });
    let layer = layer();
    let drain = layer.drain();
    let service = layer.layer(handler);
    let clients = (0..CALLERS).map(|patience| {
        let service = service.clone();
        tokio::spawn(async move {
            let call = service.oneshot(order("k1"));
            steadfast_testing::poll_times(call, patience % 8)
                .await
                .is_some()
        })
    });
    join_all(clients).await;
    let drained = drain.wait(Duration::from_secs(60)).await;
    assert_eq!(drained, Drained::All);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let repeat = service.oneshot(order("k1")).await.unwrap();
    assert_eq!(got(repeat).await, Got::Replay);
}
