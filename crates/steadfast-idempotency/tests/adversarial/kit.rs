//! A service behind the layer that counts its runs, on a store that goes wrong on demand.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{Future, pending},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use steadfast_core::Body;
use steadfast_idempotency::{
    Claim, Claimed, IdempotencyLayer, MemoryStore, Record, RecordId, Scope, Settled, Store, Token,
    Tombstone,
};
use tower::{Layer as _, ServiceExt as _, service_fn, util::BoxCloneSyncService};

/// The body of requests and of responses.
pub(crate) type Content = axum::body::Body;
pub(crate) type Layer = IdempotencyLayer<Rigged>;

/// What goes wrong with a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It is not done, and no answer ever comes.
    Hang,
    /// It fails and is not done.
    Error,
    /// It is done, and the answer comes this much later.
    LateReply(Duration),
    /// It says that there is no room.
    NoRoom,
}

/// The steps that a test disturbs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Op {
    Claim,
    Complete,
    Hold,
    Release,
    Renew,
    Tombstone,
}

/// A memory store whose next steps go wrong as they are told to.
#[derive(Clone)]
pub(crate) struct Rigged {
    memory: MemoryStore,
    faults: Arc<Mutex<VecDeque<(Op, Fault)>>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the store is down")]
pub(crate) struct Down;

impl Rigged {
    pub(crate) fn new() -> Self {
        Self {
            memory: MemoryStore::new(100, 8 * 1024 * 1024),
            faults: Arc::default(),
        }
    }

    /// Lets the next `times` of these steps go wrong.
    pub(crate) fn rig(&self, op: Op, fault: Fault, times: usize) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.extend(std::iter::repeat_n((op, fault), times));
    }

    fn fault(&self, op: Op) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let at = faults.iter().position(|(rigged, _)| *rigged == op)?;
        Some(faults.remove(at)?.1)
    }

    async fn settle<F>(&self, op: Op, step: impl FnOnce() -> F) -> Result<Settled, Down>
    where
        F: Future<Output = Result<Settled, Infallible>>,
    {
        match self.fault(op) {
            Some(Fault::NoRoom) => Ok(Settled::NoRoom),
            fault => disturbed(fault, step).await,
        }
    }
}

/// A memory store does a step when it is asked, not when it is awaited.
async fn disturbed<T, F>(fault: Option<Fault>, step: impl FnOnce() -> F) -> Result<T, Down>
where
    F: Future<Output = Result<T, Infallible>>,
{
    match fault {
        Some(Fault::Error) => return Err(Down),
        Some(Fault::Hang) => pending().await,
        _ => {}
    }
    let Ok(done) = step().await;
    if let Some(Fault::LateReply(late)) = fault {
        tokio::time::sleep(late).await;
    }
    Ok(done)
}

impl Store for Rigged {
    type Error = Down;

    async fn claim(&self, claim: Claim) -> Result<Claimed, Down> {
        disturbed(self.fault(Op::Claim), || self.memory.claim(claim)).await
    }

    async fn renew(
        &self,
        id: RecordId,
        token: Token,
        lease: Duration,
        ttl: Duration,
    ) -> Result<Settled, Down> {
        let step = || self.memory.renew(id, token, lease, ttl);
        self.settle(Op::Renew, step).await
    }

    async fn complete(
        &self,
        id: RecordId,
        token: Token,
        record: Record,
        ttl: Duration,
    ) -> Result<Settled, Down> {
        let step = || self.memory.complete(id, token, record, ttl);
        self.settle(Op::Complete, step).await
    }

    async fn tombstone(
        &self,
        id: RecordId,
        token: Token,
        tombstone: Tombstone,
        ttl: Duration,
    ) -> Result<Settled, Down> {
        let step = || self.memory.tombstone(id, token, tombstone, ttl);
        self.settle(Op::Tombstone, step).await
    }

    async fn hold(&self, id: RecordId, token: Token, ttl: Duration) -> Result<Settled, Down> {
        let step = || self.memory.hold(id, token, ttl);
        self.settle(Op::Hold, step).await
    }

    async fn release(&self, id: RecordId, token: Token) -> Result<Settled, Down> {
        let step = || self.memory.release(id, token);
        self.settle(Op::Release, step).await
    }

    async fn purge(&self, limit: usize) -> Result<usize, Down> {
        let Ok(purged) = self.memory.purge(limit).await;
        Ok(purged)
    }
}

/// A layer around a handler. Clones share everything.
#[derive(Clone)]
pub(crate) struct Api {
    service: BoxCloneSyncService<Request<Content>, Response<Body<Content>>, Infallible>,
    pub(crate) store: Rigged,
    runs: Arc<AtomicUsize>,
}

impl Api {
    pub(crate) fn new<F, Fut>(configure: impl FnOnce(Layer) -> Layer, handler: F) -> Self
    where
        F: Fn() -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Response<Content>> + Send + 'static,
    {
        let store = Rigged::new();
        let runs = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&runs);
        let counted = service_fn(move |_: Request<Body<Content>>| {
            count.fetch_add(1, Ordering::SeqCst);
            let answer = handler();
            async { Ok(answer.await) }
        });
        let layer = configure(IdempotencyLayer::new(store.clone(), Scope::global()));
        Self {
            service: BoxCloneSyncService::new(layer.layer(counted)),
            store,
            runs,
        }
    }

    /// The future of one call, as a server would hold it.
    pub(crate) fn call(&self) -> impl Future<Output = Response<Body<Content>>> + Send + use<> {
        let call = self.service.clone().oneshot(post());
        async {
            let Ok(response) = call.await;
            response
        }
    }

    /// Makes a call and reads the answer to its end.
    pub(crate) async fn post(&self) -> Reply {
        let (head, body) = self.call().await.into_parts();
        Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn is_replay(&self) -> bool {
        self.headers.contains_key("idempotent-replayed")
    }

    /// The code of a refusal.
    pub(crate) fn code(&self) -> String {
        let problem: Value = serde_json::from_slice(&self.body).unwrap();
        problem["code"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn assert_in_progress(&self) {
        assert_eq!(self.status, 409, "{self:?}");
        assert_eq!(self.code(), "idempotency_in_progress");
    }

    #[track_caller]
    pub(crate) fn assert_gone(&self) {
        assert_eq!(self.status, 409, "{self:?}");
        assert_eq!(self.code(), "idempotency_result_unavailable");
    }
}

/// `POST /orders` with the one key.
fn post() -> Request<Content> {
    let request = Request::post("/orders").header("idempotency-key", "k1");
    request.body(Content::from("one")).unwrap()
}

pub(crate) fn answer(status: u16) -> Response<Content> {
    let response = Response::builder().status(status);
    response.body(Content::new(Full::from("done"))).unwrap()
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
