//! Signed requests, and clocks that go wrong.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::request::Parts;
use steadfast_core::{
    Clock, Key,
    facts::{Freshness, SignedContent, Verified},
};
use steadfast_replay::{MemoryStore, OneShot, Rejection, ReplayGuardLayer};
use tower::{Layer as _, ServiceExt as _};

use super::kit::{Fault, Faulty, Runs, S, event, rejection, request};

/// A wall clock that tests turn.
#[derive(Clone)]
struct Hand(Arc<Mutex<Duration>>);

impl Hand {
    fn new(at: u64) -> Self {
        Self(Arc::new(Mutex::new(Duration::from_secs(at))))
    }

    fn set(&self, millis: u64) {
        *self.0.lock().unwrap() = Duration::from_millis(millis);
    }

    fn clock(&self) -> Clock {
        let hand = self.clone();
        Clock::from_fn(move || SystemTime::UNIX_EPOCH + *hand.0.lock().unwrap())
    }

    /// Signed at this second, and good for 30.
    fn signed(&self, at: u64, content: impl Into<Bytes>) -> Verified {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
        let freshness = Freshness::new(at, at + 30 * S, self.clock());
        Verified::new("s", "k", SignedContent::body_alone(content.into())).fresh(freshness)
    }
}

struct Guard {
    layer: ReplayGuardLayer<MemoryStore, OneShot>,
    runs: Runs,
}

impl Guard {
    fn new(store: MemoryStore) -> Self {
        Self {
            layer: ReplayGuardLayer::one_shot(store),
            runs: Runs::default(),
        }
    }

    async fn call(&self, verified: Verified) -> Result<(), Rejection> {
        let service = self.layer.layer(self.runs.handler(200, Duration::ZERO));
        let answer = service.oneshot(request("/", verified)).await.unwrap();
        rejection(&answer).map_or(Ok(()), Err)
    }
}

#[tokio::test]
async fn g02_a_request_is_good_once_wherever_in_its_window_it_is_captured_and_replayed() {
    for (first, second) in [
        (70_000, 70_000),
        (70_000, 100_000),
        (70_000, 130_000),
        (100_000, 130_000),
        (129_999, 130_000),
        (130_000, 130_000),
    ] {
        let (hand, guard) = (Hand::new(0), Guard::new(MemoryStore::new(100)));
        hand.set(first);
        assert_eq!(guard.call(hand.signed(100, "a")).await, Ok(()));
        // Others come and go, so that whatever may be forgotten is.
        for (n, at) in (first / 1000..=second / 1000).enumerate() {
            let other = hand.signed(at, format!("other {n}"));
            hand.set(at * 1000);
            assert_eq!(guard.call(other).await, Ok(()));
        }
        hand.set(second);
        let again = guard.call(hand.signed(100, "a")).await;
        assert_eq!(again, Err(Rejection::Replayed), "{first} {second}");
        hand.set(130_001);
        let late = guard.call(hand.signed(100, "a")).await;
        assert_eq!(late, Err(Rejection::Expired));
    }
}

#[tokio::test]
async fn g02_a_clock_that_leaps_forward_and_is_set_right_revives_nothing() {
    let (hand, guard) = (Hand::new(100), Guard::new(MemoryStore::new(10_000)));
    for n in 0..500 {
        let one = hand.signed(100, format!("a {n}"));
        assert_eq!(guard.call(one).await, Ok(()));
    }
    hand.set(90_000_000);
    for n in 0..500 {
        let one = hand.signed(90_000, format!("b {n}"));
        assert_eq!(guard.call(one).await, Ok(()));
    }
    hand.set(101_000);
    for n in 0..500 {
        let again = guard.call(hand.signed(100, format!("a {n}"))).await;
        assert!(matches!(
            again,
            Err(Rejection::Replayed | Rejection::Expired)
        ));
    }
    assert_eq!(guard.runs.count(), 1_000);
    // What was signed since is taken.
    assert_eq!(guard.call(hand.signed(101, "new")).await, Ok(()));
}

#[tokio::test]
async fn g02_a_clock_that_is_set_back_refuses_no_new_request_and_takes_no_old_one() {
    let (hand, guard) = (Hand::new(1_000), Guard::new(MemoryStore::new(100)));
    assert_eq!(guard.call(hand.signed(1_000, "a")).await, Ok(()));
    hand.set(980_000);
    assert_eq!(
        guard.call(hand.signed(1_000, "a")).await,
        Err(Rejection::Replayed)
    );
    assert_eq!(guard.call(hand.signed(980, "b")).await, Ok(()));
    hand.set(0);
    assert_eq!(
        guard.call(hand.signed(1_000, "a")).await,
        Err(Rejection::Replayed)
    );
    assert_eq!(
        guard.call(hand.signed(980, "b")).await,
        Err(Rejection::Replayed)
    );
}

#[tokio::test]
async fn g01_a_full_store_lets_nothing_new_through_and_forgets_nothing() {
    let (hand, guard) = (Hand::new(100), Guard::new(MemoryStore::new(3)));
    for content in ["a", "b", "c"] {
        assert_eq!(guard.call(hand.signed(100, content)).await, Ok(()));
    }
    for n in 0..100 {
        let flood = guard.call(hand.signed(100, format!("flood {n}"))).await;
        assert_eq!(flood, Err(Rejection::StoreFull));
    }
    for content in ["a", "b", "c"] {
        let again = guard.call(hand.signed(100, content)).await;
        assert_eq!(again, Err(Rejection::Replayed));
    }
    hand.set(131_001);
    assert_eq!(guard.call(hand.signed(131, "d")).await, Ok(()));
    assert_eq!(guard.runs.count(), 4);
}

#[tokio::test]
async fn g01_a_key_over_its_quota_is_429_and_leaves_the_others_alone() {
    let (hand, guard) = (Hand::new(100), Guard::new(MemoryStore::with_quota(100, 2)));
    let of = |key: &'static str, content: &'static str| {
        let at = SystemTime::UNIX_EPOCH + 100 * S;
        let freshness = Freshness::new(at, at + 30 * S, hand.clock());
        Verified::new("s", key, SignedContent::body_alone(content.into())).fresh(freshness)
    };
    assert_eq!(guard.call(of("k1", "a")).await, Ok(()));
    assert_eq!(guard.call(of("k1", "b")).await, Ok(()));
    let service = guard.layer.layer(guard.runs.handler(200, Duration::ZERO));
    let over = service.oneshot(request("/", of("k1", "c"))).await.unwrap();
    assert_eq!(over.status(), 429);
    assert_eq!(over.headers()["retry-after"], "1");
    assert_eq!(rejection(&over), Some(Rejection::OverQuota));
    assert_eq!(guard.call(of("k1", "a")).await, Err(Rejection::Replayed));
    assert_eq!(guard.call(of("k2", "c")).await, Ok(()));
    assert_eq!(guard.runs.count(), 3);
}

#[tokio::test]
async fn g01_scopes_have_their_own_requests_and_routes_do_not() {
    let (hand, runs) = (Hand::new(100), Runs::default());
    let layer = ReplayGuardLayer::one_shot(MemoryStore::new(100));
    let plain = layer.clone().layer(runs.handler(200, Duration::ZERO));
    let call = |path| plain.clone().oneshot(request(path, hand.signed(100, "a")));
    assert_eq!(call("/a").await.unwrap().status(), 200);
    assert_eq!(call("/b").await.unwrap().status(), 401);
    let scoped = layer
        .scope(|parts: &Parts| Ok(Key::from(parts.uri.path().as_bytes())))
        .layer(runs.handler(200, Duration::ZERO));
    let call = |path| scoped.clone().oneshot(request(path, hand.signed(100, "a")));
    assert_eq!(call("/a").await.unwrap().status(), 200);
    assert_eq!(call("/b").await.unwrap().status(), 200);
    assert_eq!(call("/b").await.unwrap().status(), 401);
    assert_eq!(runs.count(), 3);
}

#[tokio::test]
async fn g01_a_scheme_without_freshness_is_401_and_marks_nothing() {
    let (store, runs) = (MemoryStore::new(10), Runs::default());
    let service =
        ReplayGuardLayer::one_shot(store.clone()).layer(runs.handler(200, Duration::ZERO));
    let undated = request("/", event(None, "x"));
    let refused = service.oneshot(undated).await.unwrap();
    assert_eq!(refused.status(), 401);
    assert_eq!(rejection(&refused), Some(Rejection::Undated));
    assert!(store.is_empty());
    assert_eq!(runs.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn g01_a_late_record_lets_one_of_two_through() {
    let (hand, store, runs) = (Hand::new(100), Faulty::new(), Runs::default());
    let service = ReplayGuardLayer::one_shot(store.clone()).layer(runs.handler(200, S));
    store.records.next([Fault::Late(S), Fault::ReplyLate(S)]);
    let call = || tokio::spawn(service.clone().oneshot(request("/", hand.signed(100, "a"))));
    let (one, two) = (call(), call());
    let mut got = Vec::new();
    for call in [one, two] {
        got.push(call.await.unwrap().unwrap().status().as_u16());
    }
    got.sort_unstable();
    assert_eq!(got, [200, 401]);
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn g02_a_request_recorded_after_its_window_is_refused_though_it_was_new_to_the_store() {
    let (store, runs) = (Faulty::new(), Runs::default());
    let started = tokio::time::Instant::now();
    let at = SystemTime::UNIX_EPOCH + 100 * S;
    let clock = Clock::from_fn(move || at + started.elapsed());
    let signed = |content: &'static str, until: Duration| {
        let freshness = Freshness::new(at, at + until, clock.clone());
        Verified::new("s", "k", SignedContent::body_alone(content.into())).fresh(freshness)
    };
    let service = ReplayGuardLayer::one_shot(store.clone()).layer(runs.handler(200, S));
    let call = |verified| service.clone().oneshot(request("/", verified));
    store.records.next([Fault::Late(S), Fault::Late(S)]);
    let late = call(signed("a", S / 2)).await.unwrap();
    assert_eq!(rejection(&late), Some(Rejection::Expired));
    assert_eq!(runs.count(), 0);
    assert_eq!(call(signed("b", 30 * S)).await.unwrap().status(), 200);
}
