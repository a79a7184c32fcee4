//! A store whose steps go wrong when they are told to, a handler that counts, and deliveries.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{Ready, pending, ready},
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use steadfast_core::{
    Body,
    facts::{MessageId, SignedContent, Verified},
};
use steadfast_replay::{
    Claim, Claimed, Duplicate, EventId, MemoryStore, Once, Recorded, Rejection, Settled, Store,
    Token,
};
use tokio::time::sleep;
use tower::Service;

pub(crate) const S: Duration = Duration::from_secs(1);

pub(crate) type Content = Full<Bytes>;
pub(crate) type Answer = Response<Body<Content>>;

/// How a step of the store goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It goes right.
    None,
    /// It is not done, and fails.
    Lost,
    /// It is done, and fails.
    ReplyLost,
    /// It is not done, and has no answer.
    Hangs,
    /// It is done, and has no answer.
    ReplyHangs,
    /// It is done after a while.
    Late(Duration),
    /// It is done, and answered after a while.
    ReplyLate(Duration),
}

/// Faults of the next steps of each kind, first come first served.
#[derive(Clone, Default)]
pub(crate) struct Plan(Arc<Mutex<VecDeque<Fault>>>);

impl Plan {
    pub(crate) fn next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.0.lock().unwrap().extend(faults);
    }

    async fn run<T>(&self, step: impl Future<Output = Result<T, Infallible>>) -> io::Result<T> {
        let fault = self.0.lock().unwrap().pop_front().unwrap_or(Fault::None);
        let step = async { step.await.unwrap_or_else(|never| match never {}) };
        let down = || io::Error::other("down");
        match fault {
            Fault::None => Ok(step.await),
            Fault::Lost => Err(down()),
            Fault::ReplyLost => {
                step.await;
                Err(down())
            }
            Fault::Hangs => pending().await,
            Fault::ReplyHangs => {
                step.await;
                pending().await
            }
            Fault::Late(by) => {
                sleep(by).await;
                Ok(step.await)
            }
            Fault::ReplyLate(by) => {
                let answer = step.await;
                sleep(by).await;
                Ok(answer)
            }
        }
    }
}

/// A memory store behind a bad connection.
#[derive(Clone)]
pub(crate) struct Faulty {
    pub(crate) inner: MemoryStore,
    pub(crate) records: Plan,
    pub(crate) claims: Plan,
    pub(crate) renewals: Plan,
    pub(crate) commits: Plan,
    pub(crate) releases: Plan,
}

impl Faulty {
    pub(crate) fn new() -> Self {
        Self {
            inner: MemoryStore::new(1_000),
            records: Plan::default(),
            claims: Plan::default(),
            renewals: Plan::default(),
            commits: Plan::default(),
            releases: Plan::default(),
        }
    }
}

impl Store for Faulty {
    type Error = io::Error;
    type Record = Pin<Box<dyn Future<Output = io::Result<Recorded>> + Send>>;

    fn record(&self, once: Once) -> Self::Record {
        let (plan, inner) = (self.records.clone(), self.inner.clone());
        Box::pin(async move { plan.run(async { inner.record(once).await }).await })
    }

    async fn claim(&self, claim: Claim) -> io::Result<Claimed> {
        self.claims
            .run(async { self.inner.claim(claim).await })
            .await
    }

    async fn renew(
        &self,
        event: EventId,
        token: Token,
        lease: Duration,
        retention: Duration,
    ) -> io::Result<Settled> {
        let step = async { self.inner.renew(event, token, lease, retention).await };
        self.renewals.run(step).await
    }

    async fn commit(
        &self,
        event: EventId,
        token: Token,
        retention: Duration,
    ) -> io::Result<Settled> {
        let step = async { self.inner.commit(event, token, retention).await };
        self.commits.run(step).await
    }

    async fn release(&self, event: EventId, token: Token) -> io::Result<Settled> {
        let step = async { self.inner.release(event, token).await };
        self.releases.run(step).await
    }

    async fn purge(&self, limit: usize) -> io::Result<usize> {
        Ok(self
            .inner
            .purge(limit)
            .await
            .unwrap_or_else(|never| match never {}))
    }
}

/// Counts its runs, and answers with a status.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<AtomicUsize>);

impl Runs {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn handler(
        &self,
        status: u16,
        takes: Duration,
    ) -> impl Service<
        Request<Content>,
        Response = Response<Content>,
        Error = Infallible,
        Future: Send,
    >
    + Clone
    + Send
    + 'static
    + use<> {
        let runs = self.0.clone();
        tower::service_fn(move |_request| {
            runs.fetch_add(1, Ordering::Relaxed);
            async move {
                if !takes.is_zero() {
                    sleep(takes).await;
                }
                answer(status).await
            }
        })
    }
}

pub(crate) fn answer(status: u16) -> Ready<Result<Response<Content>, Infallible>> {
    let response = Response::builder().status(status);
    ready(Ok(response.body(Full::default()).unwrap()))
}

pub(crate) fn event(id: Option<MessageId>, body: impl Into<Bytes>) -> Verified {
    let verified = Verified::new("s", "k", SignedContent::body_alone(body.into()));
    match id {
        Some(id) => verified.with_id(id),
        None => verified,
    }
}

pub(crate) fn signed(id: &'static str) -> Option<MessageId> {
    Some(MessageId::signed(id.into()))
}

pub(crate) fn unsigned(id: &'static str) -> Option<MessageId> {
    Some(MessageId::unsigned(id.into()))
}

pub(crate) fn request(path: &str, verified: Verified) -> Request<Content> {
    let request = Request::post(path).extension(verified);
    request.body(Full::default()).unwrap()
}

pub(crate) fn delivery() -> Request<Content> {
    request("/hook", event(signed("1"), "x"))
}

pub(crate) fn rejection(answer: &Answer) -> Option<Rejection> {
    answer.extensions().get().copied()
}

pub(crate) fn is_duplicate(answer: &Answer) -> bool {
    answer.status() == 200
        && answer
            .headers()
            .get("event-duplicate")
            .is_some_and(|it| it == "1")
        && answer.extensions().get::<Duplicate>().is_some()
}
