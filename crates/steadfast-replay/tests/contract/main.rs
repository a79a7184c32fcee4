//! What Tower, and this workspace, ask of every service, asked of both modes of `ReplayGuard`.

mod drops;
mod messages;
mod readiness;

use std::{convert::Infallible, future::poll_fn, pin::Pin, time::Duration};

use http::{Request, Response};
use steadfast_core::facts::{MessageId, SignedContent, Verified};
use steadfast_replay::{
    Claim, Claimed, EventId, Events, MemoryStore, Once, OneShot, Recorded, ReplayGuardLayer,
    Settled, Store, Token,
};
use steadfast_testing::{ChunkedBody, ServiceProbe, assert_error, assert_service_contract};
use tower::{Layer as _, Service};

/// The body of requests and of responses.
type Content = ChunkedBody<&'static str>;
type Probe<E = &'static str> = ServiceProbe<Content, Content, E>;

fn store() -> Pausing {
    Pausing(MemoryStore::new(10))
}

fn one_shot(store: Pausing) -> ReplayGuardLayer<Pausing, OneShot> {
    ReplayGuardLayer::one_shot(store)
        .insecure_retain_undated(Duration::from_secs(24 * 3600))
        .skip_when(|parts| parts.method == http::Method::GET)
}

fn events(store: Pausing) -> ReplayGuardLayer<Pausing, Events> {
    ReplayGuardLayer::events(store).skip_when(|parts| parts.method == http::Method::GET)
}

/// A probe that answers 201 at once.
fn created() -> Probe {
    ServiceProbe::new(|_request| async {
        let body = ChunkedBody::new(["done"]);
        Ok(Response::builder().status(201).body(body).unwrap())
    })
}

fn verified() -> Verified {
    let content = SignedContent::body_alone("one".into());
    Verified::new("s", "k", content).with_id(MessageId::signed("1".into()))
}

fn post(body: Content) -> Request<Content> {
    let request = Request::post("/hook").extension(verified());
    request.body(body).unwrap()
}

fn plain(method: &str) -> Request<Content> {
    let request = Request::builder().method(method);
    request.body(ChunkedBody::new(["one"])).unwrap()
}

async fn ready<S: Service<Request<Content>>>(service: &mut S) -> Result<(), S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await
}

#[test]
fn it_is_clone_send_sync_and_static_and_so_are_its_futures() {
    assert_service_contract::<_, Request<Content>>(&one_shot(store()).layer(created()));
    assert_service_contract::<_, Request<Content>>(&events(store()).layer(created()));
}

#[test]
fn it_changes_no_error() {
    assert_error::<_, Request<Content>, &str>(&one_shot(store()).layer(created()));
    assert_error::<_, Request<Content>, &str>(&events(store()).layer(created()));
    let never = || -> Probe<Infallible> {
        ServiceProbe::respond(|_| Response::new(ChunkedBody::new([""])))
    };
    assert_error::<_, Request<Content>, Infallible>(&one_shot(store()).layer(never()));
    assert_error::<_, Request<Content>, Infallible>(&events(store()).layer(never()));
}

/// A memory store that lets other tasks run before it answers, and after it has acted.
#[derive(Clone)]
struct Pausing(MemoryStore);

/// Pending twice: the layer polls a step once before it gives it its time.
async fn pause() {
    for _ in 0..2 {
        tokio::task::yield_now().await;
    }
}

impl Store for Pausing {
    type Error = Infallible;
    type Record = Pin<Box<dyn Future<Output = Result<Recorded, Infallible>> + Send>>;

    fn record(&self, once: Once) -> Self::Record {
        let store = self.0.clone();
        Box::pin(async move {
            pause().await;
            let recorded = store.record(once).await;
            pause().await;
            recorded
        })
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, Infallible> {
        pause().await;
        let claimed = self.0.claim(claim).await;
        pause().await;
        claimed
    }

    async fn renew(
        &self,
        event: EventId,
        token: Token,
        lease: Duration,
        retention: Duration,
    ) -> Result<Settled, Infallible> {
        pause().await;
        self.0.renew(event, token, lease, retention).await
    }

    async fn commit(
        &self,
        event: EventId,
        token: Token,
        retention: Duration,
    ) -> Result<Settled, Infallible> {
        pause().await;
        let settled = self.0.commit(event, token, retention).await;
        pause().await;
        settled
    }

    async fn release(&self, event: EventId, token: Token) -> Result<Settled, Infallible> {
        pause().await;
        let settled = self.0.release(event, token).await;
        pause().await;
        settled
    }

    async fn purge(&self, limit: usize) -> Result<usize, Infallible> {
        self.0.purge(limit).await
    }
}
