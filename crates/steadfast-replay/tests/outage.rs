//! A store that fails, at each of its steps.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use steadfast_core::facts::{SignedContent, Verified};
use steadfast_replay::{
    Claim, Claimed, Drained, EventId, MemoryStore, Once, Recorded, Rejection, ReplayGuardLayer,
    Settled, Store, Token,
};
use tower::{Layer as _, ServiceExt as _, service_fn};

/// Fails records and claims if it is told to, and as many commits and releases.
#[derive(Clone)]
struct Failing {
    inner: MemoryStore,
    deaf: bool,
    ends: Arc<AtomicUsize>,
}

impl Failing {
    fn new(deaf: bool, ends: usize) -> Self {
        Self {
            inner: MemoryStore::new(10),
            deaf,
            ends: Arc::new(AtomicUsize::new(ends)),
        }
    }

    fn end(&self) -> io::Result<()> {
        let less = |left: usize| left.checked_sub(1);
        let failed = self
            .ends
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        failed.map_or(Ok(()), |_| Err(io::Error::other("down")))
    }
}

fn known<T>(result: Result<T, Infallible>) -> T {
    result.unwrap_or_else(|never| match never {})
}

impl Store for Failing {
    type Error = io::Error;
    type Record = Ready<io::Result<Recorded>>;

    fn record(&self, _once: Once) -> Self::Record {
        ready(Err(io::Error::other("down")))
    }

    async fn claim(&self, claim: Claim) -> io::Result<Claimed> {
        if self.deaf {
            return Err(io::Error::other("down"));
        }
        Ok(known(self.inner.claim(claim).await))
    }

    async fn renew(
        &self,
        event: EventId,
        token: Token,
        lease: Duration,
        retention: Duration,
    ) -> io::Result<Settled> {
        Ok(known(
            self.inner.renew(event, token, lease, retention).await,
        ))
    }

    async fn commit(
        &self,
        event: EventId,
        token: Token,
        retention: Duration,
    ) -> io::Result<Settled> {
        self.end()?;
        Ok(known(self.inner.commit(event, token, retention).await))
    }

    async fn release(&self, event: EventId, token: Token) -> io::Result<Settled> {
        self.end()?;
        Ok(known(self.inner.release(event, token).await))
    }

    async fn purge(&self, limit: usize) -> io::Result<usize> {
        Ok(known(self.inner.purge(limit).await))
    }
}

fn delivery() -> Request<Full<Bytes>> {
    let verified = Verified::new("s", "k", SignedContent::body_alone("x".into()));
    Request::post("/")
        .extension(verified)
        .body(Full::default())
        .unwrap()
}

fn answer(status: u16) -> Ready<Result<Response<Full<Bytes>>, Infallible>> {
    let response = Response::builder().status(status);
    ready(Ok(response.body(Full::default()).unwrap()))
}

#[tokio::test(start_paused = true)]
async fn g01_g03_without_its_store_nothing_runs() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let inner = service_fn(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        answer(200)
    });
    let one_shot = ReplayGuardLayer::one_shot(Failing::new(true, 0))
        .insecure_retain_undated(Duration::from_secs(60));
    let events = ReplayGuardLayer::events(Failing::new(true, 0));
    for refused in [
        one_shot
            .layer(inner.clone())
            .oneshot(delivery())
            .await
            .unwrap(),
        events.layer(inner).oneshot(delivery()).await.unwrap(),
    ] {
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.headers()["retry-after"], "1");
        assert_eq!(
            refused.extensions().get(),
            Some(&Rejection::StoreUnavailable)
        );
    }
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn g03_a_processed_event_is_committed_late_rather_than_processed_again() {
    let layer = ReplayGuardLayer::events(Failing::new(false, 10));
    let service = layer.layer(service_fn(|_| answer(200)));
    assert_eq!(
        service.clone().oneshot(delivery()).await.unwrap().status(),
        200
    );
    assert_eq!(
        service.clone().oneshot(delivery()).await.unwrap().status(),
        409
    );
    assert_eq!(
        layer.drain().wait(Duration::from_secs(600)).await,
        Drained::All
    );
    let again = service.oneshot(delivery()).await.unwrap();
    assert!(again.headers().contains_key("event-duplicate"));
}

#[tokio::test(start_paused = true)]
async fn g04_an_event_that_could_not_be_released_is_free_after_its_lease() {
    let layer = ReplayGuardLayer::events(Failing::new(false, 1));
    let failing = layer.layer(service_fn(|_| answer(500)));
    assert_eq!(
        failing.clone().oneshot(delivery()).await.unwrap().status(),
        500
    );
    assert_eq!(
        failing.clone().oneshot(delivery()).await.unwrap().status(),
        409
    );
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(failing.oneshot(delivery()).await.unwrap().status(), 500);
}
