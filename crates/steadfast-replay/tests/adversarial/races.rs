//! Fifty duplicates at once, on many threads.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::Request;
use steadfast_core::{
    Clock,
    facts::{Freshness, SignedContent, Verified},
};
use steadfast_replay::{BoxStore, MemoryStore, ReplayGuardLayer, Store};
use tokio::{
    sync::{Barrier, Semaphore},
    task::JoinSet,
};
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

use super::kit::{
    Answer, Content, Runs, answer, delivery, is_duplicate, request, signed, unsigned,
};

const RACERS: usize = 50;

fn fresh() -> Verified {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
    let clock = Clock::from_fn(move || at);
    let freshness = Freshness::new(at, at + Duration::from_secs(30), clock);
    Verified::new("s", "k", SignedContent::body_alone("x".into())).fresh(freshness)
}

/// Sends all at once, to the services in turn.
async fn race<Sv>(services: &[Sv], make: impl Fn(usize) -> Request<Content>) -> Vec<Answer>
where
    Sv: Service<Request<Content>, Response = Answer, Error = std::convert::Infallible>
        + Clone
        + Send
        + 'static,
    Sv::Future: Send,
{
    let start = Arc::new(Barrier::new(RACERS));
    let mut racers = JoinSet::new();
    for n in 0..RACERS {
        let (start, service) = (Arc::clone(&start), services[n % services.len()].clone());
        let request = make(n);
        racers.spawn(async move {
            start.wait().await;
            service.oneshot(request).await.unwrap()
        });
    }
    racers.join_all().await
}

fn count(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|it| it.status() == status).count()
}

async fn one_shot(store: impl Store) {
    let runs = Runs::default();
    let guard =
        || ReplayGuardLayer::one_shot(store.clone()).layer(runs.handler(500, Duration::ZERO));
    let answers = race(&[guard(), guard()], |_| request("/", fresh())).await;
    assert_eq!(runs.count(), 1);
    assert_eq!(
        (count(&answers, 500), count(&answers, 401)),
        (1, RACERS - 1)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g01_of_50_racing_copies_one_runs_also_behind_two_guards() {
    for _ in 0..20 {
        one_shot(MemoryStore::new(1_000)).await;
        one_shot(BoxStore::new(MemoryStore::new(1_000))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g03_of_50_racing_duplicates_one_runs_also_behind_two_guards() {
    for round in 0..20 {
        let (store, runs) = (MemoryStore::new(1_000), Runs::default());
        let guard = || {
            let handler = runs.handler(204, Duration::ZERO);
            ReplayGuardLayer::events(store.clone()).layer(handler)
        };
        let id = |n: usize| -> &'static str { ["1", "2", "3", "4"][n % 4] };
        let answers = race(&[guard(), guard()], |n| {
            let id = if round % 2 == 0 {
                signed("1")
            } else {
                unsigned(id(n))
            };
            request("/hook", super::kit::event(id, "x"))
        })
        .await;
        assert_eq!(runs.count(), 1, "round {round}");
        let duplicates = answers.iter().filter(|it| is_duplicate(it)).count();
        assert_eq!(count(&answers, 204), 1);
        assert_eq!(duplicates + count(&answers, 409), RACERS - 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g03_while_the_first_of_50_runs_nobody_is_told_that_it_is_done() {
    let (gate, runs) = (Arc::new(Semaphore::new(0)), Runs::default());
    let (held, counted) = (Arc::clone(&gate), runs.handler(200, Duration::ZERO));
    let began = Arc::new(Semaphore::new(0));
    let begun = Arc::clone(&began);
    let handler = service_fn(move |request: Request<Content>| {
        let (held, counted) = (Arc::clone(&held), counted.clone());
        begun.add_permits(1);
        async move {
            drop(held.acquire().await);
            counted.oneshot(request).await
        }
    });
    let service = ReplayGuardLayer::events(MemoryStore::new(1_000)).layer(handler);
    let first = tokio::spawn(service.clone().oneshot(delivery()));
    drop(began.acquire().await);
    let answers = race(std::slice::from_ref(&service), |_| delivery()).await;
    assert_eq!(count(&answers, 409), RACERS);
    gate.add_permits(RACERS);
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    let answers = race(&[service], |_| delivery()).await;
    assert!(answers.iter().all(is_duplicate));
    assert_eq!(runs.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g04_of_50_racing_redeliveries_of_a_failed_event_one_runs() {
    for _ in 0..20 {
        let (store, runs) = (MemoryStore::new(1_000), Runs::default());
        let layer = ReplayGuardLayer::events(store);
        let failing = layer.layer(service_fn(|_: Request<Content>| answer(500)));
        assert_eq!(failing.oneshot(delivery()).await.unwrap().status(), 500);
        let service = layer.layer(runs.handler(204, Duration::ZERO));
        let answers = race(&[service], |_| delivery()).await;
        assert_eq!((runs.count(), count(&answers, 204)), (1, 1));
    }
}
