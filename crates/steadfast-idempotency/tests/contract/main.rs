//! What Tower, and this workspace, ask of every service, asked of `Idempotency`.

mod drops;
mod messages;
mod readiness;

use std::{convert::Infallible, future::poll_fn, time::Duration};

use http::{Request, Response};
use steadfast_core::Body;
use steadfast_idempotency::{
    Claim, Claimed, IdempotencyLayer, MemoryStore, Record, RecordId, Scope, Settled, Store, Token,
    Tombstone,
};
use steadfast_testing::{ChunkedBody, ServiceProbe, assert_error, assert_service_contract};
use tower::{Layer as _, Service};

/// The body of requests and of responses.
type Content = ChunkedBody<&'static str>;
type Probe<E = &'static str> = ServiceProbe<Body<Content>, Content, E>;

fn layer() -> IdempotencyLayer<Pausing> {
    let store = Pausing(MemoryStore::new(10, 10_000));
    IdempotencyLayer::new(store, Scope::global())
}

/// A probe that answers 201 at once.
fn created() -> Probe {
    ServiceProbe::new(|_request| async {
        let body = ChunkedBody::new(["done"]);
        Ok(Response::builder().status(201).body(body).unwrap())
    })
}

fn post(body: Content) -> Request<Content> {
    let request = Request::post("/orders").header("idempotency-key", "k1");
    request.body(body).unwrap()
}

fn keyless(method: &str) -> Request<Content> {
    let request = Request::builder().method(method);
    request.body(ChunkedBody::new(["one"])).unwrap()
}

async fn ready<S: Service<Request<Content>>>(service: &mut S) -> Result<(), S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await
}

#[test]
fn it_is_clone_send_sync_and_static_and_so_are_its_futures() {
    let service = layer().layer(created());
    assert_service_contract::<_, Request<Content>>(&service);
}

#[test]
fn it_changes_no_error() {
    assert_error::<_, Request<Content>, &str>(&layer().layer(created()));
    let never: Probe<Infallible> = ServiceProbe::respond(|_| Response::new(ChunkedBody::new([""])));
    assert_error::<_, Request<Content>, Infallible>(&layer().layer(never));
}

#[test]
fn it_answers_a_refused_call_without_being_polled_by_a_runtime() {
    let mut service = layer().require_key().layer(created());
    let response = tokio_test::block_on(async {
        ready(&mut service).await.unwrap();
        service.call(keyless("POST")).await
    });
    assert_eq!(response.unwrap().status(), 400);
}

/// A memory store that lets other tasks run before it answers.
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

    async fn claim(&self, claim: Claim) -> Result<Claimed, Self::Error> {
        pause().await;
        self.0.claim(claim).await
    }

    async fn renew(
        &self,
        id: RecordId,
        token: Token,
        lease: Duration,
        ttl: Duration,
    ) -> Result<Settled, Self::Error> {
        pause().await;
        self.0.renew(id, token, lease, ttl).await
    }

    async fn complete(
        &self,
        id: RecordId,
        token: Token,
        record: Record,
        ttl: Duration,
    ) -> Result<Settled, Self::Error> {
        pause().await;
        self.0.complete(id, token, record, ttl).await
    }

    async fn tombstone(
        &self,
        id: RecordId,
        token: Token,
        tombstone: Tombstone,
        ttl: Duration,
    ) -> Result<Settled, Self::Error> {
        pause().await;
        self.0.tombstone(id, token, tombstone, ttl).await
    }

    async fn hold(
        &self,
        id: RecordId,
        token: Token,
        ttl: Duration,
    ) -> Result<Settled, Self::Error> {
        pause().await;
        self.0.hold(id, token, ttl).await
    }

    async fn release(&self, id: RecordId, token: Token) -> Result<Settled, Self::Error> {
        pause().await;
        self.0.release(id, token).await
    }

    async fn purge(&self, limit: usize) -> Result<usize, Self::Error> {
        self.0.purge(limit).await
    }
}
