//! An API behind the layer whose handler counts its runs.

mod messages;
mod reply;
mod store;

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use http::{Request, Response};
use steadfast_core::Body;
use steadfast_idempotency::{Drain, Drained, Idempotency, IdempotencyLayer, Lease, Scope};
use steadfast_testing::ChunkedBody;
use tower::{Layer as _, Service, ServiceExt as _, service_fn, util::BoxCloneSyncService};

pub(crate) use self::{
    messages::{answer, post, request, text},
    reply::{Reply, Retry},
    store::{Fault, Faulty, Op, State},
};

/// The body of requests and of responses.
pub(crate) type Content = ChunkedBody<&'static str>;
/// What the handler is given.
pub(crate) type Incoming = Request<Body<Content>>;
/// What the handler returns.
pub(crate) type Handled = Result<Response<Content>, &'static str>;
/// What the layer answers with.
pub(crate) type Outgoing = Result<Response<Body<Content>>, &'static str>;
pub(crate) type Layer = IdempotencyLayer<Faulty>;

type Handler = BoxCloneSyncService<Incoming, Response<Content>, &'static str>;

/// A layer around a handler. Clones share everything.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) service: Idempotency<Handler, Faulty>,
    pub(crate) store: Faulty,
    pub(crate) drain: Drain,
    started: Arc<AtomicUsize>,
    finished: Arc<AtomicUsize>,
}

/// Which run of the handler this is, from 1. In the request's extensions.
#[derive(Clone, Copy)]
struct Run(usize);

impl Api {
    /// The layer as it is by default.
    pub(crate) fn new<F, Fut>(handler: F) -> Self
    where
        F: Fn(Incoming) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        Self::with(|layer| layer, handler)
    }

    /// The layer with settings.
    pub(crate) fn with<F, Fut>(configure: impl FnOnce(Layer) -> Layer, handler: F) -> Self
    where
        F: Fn(Incoming) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        Self::on(Faulty::default(), configure, handler)
    }

    /// The layer as it is by default, with keys told apart by a scope.
    pub(crate) fn scoped<F, Fut>(scope: Scope, handler: F) -> Self
    where
        F: Fn(Incoming) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        let store = Faulty::default();
        let layer = IdempotencyLayer::new(store.clone(), scope);
        Self::on(store, |_global| layer, handler)
    }

    /// The layer with settings, on a store.
    pub(crate) fn on<F, Fut>(
        store: Faulty,
        configure: impl FnOnce(Layer) -> Layer,
        handler: F,
    ) -> Self
    where
        F: Fn(Incoming) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        Self::around(store, configure, service_fn(handler))
    }

    /// The layer with settings, on a store, around any service.
    pub(crate) fn around<S>(
        store: Faulty,
        configure: impl FnOnce(Layer) -> Layer,
        service: S,
    ) -> Self
    where
        S: Service<Incoming, Response = Response<Content>, Error = &'static str>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        let started = Arc::new(AtomicUsize::new(0));
        let finished = Arc::new(AtomicUsize::new(0));
        let layer = configure(IdempotencyLayer::new(store.clone(), Scope::global()));
        let (begin, end) = (Arc::clone(&started), Arc::clone(&finished));
        let counted = service_fn(move |mut request: Incoming| {
            let run = begin.fetch_add(1, Ordering::SeqCst) + 1;
            request.extensions_mut().insert(Run(run));
            let end = Arc::clone(&end);
            service.clone().oneshot(request).map(move |handled| {
                end.fetch_add(1, Ordering::SeqCst);
                handled
            })
        });
        Self {
            drain: layer.drain(),
            service: layer.layer(BoxCloneSyncService::new(counted)),
            store,
            started,
            finished,
        }
    }

    /// The future of one call, as a server would hold it.
    pub(crate) fn call(
        &self,
        request: Request<Content>,
    ) -> impl Future<Output = Outgoing> + Send + use<> {
        self.service.clone().oneshot(request)
    }

    /// Makes a call and reads the answer to its end.
    pub(crate) async fn send(&self, request: Request<Content>) -> Reply {
        Reply::read(self.call(request).await.unwrap()).await
    }

    /// Posts an order under a key.
    pub(crate) async fn post(&self, key: &str, body: &'static str) -> Reply {
        self.send(post(key, body)).await
    }

    /// How often the handler was started.
    pub(crate) fn runs(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    /// How often the handler ran to its answer.
    pub(crate) fn finished(&self) -> usize {
        self.finished.load(Ordering::SeqCst)
    }

    /// Waits until nothing runs any more, with or without a client.
    pub(crate) async fn settled(&self) {
        assert_eq!(self.drain.wait(seconds(100 * 3600)).await, Drained::All);
    }
}

/// A handler that makes an order at once: `201 order N` in run N.
pub(crate) async fn order(request: Incoming) -> Handled {
    Ok(text(201, format!("order {}", run_of(&request))))
}

/// A handler that takes five seconds to make an order.
pub(crate) async fn slow_order(request: Incoming) -> Handled {
    tokio::time::sleep(seconds(5)).await;
    order(request).await
}

/// A handler that fails each time.
pub(crate) async fn failing(_request: Incoming) -> Handled {
    Ok(answer(500, "no"))
}

pub(crate) fn run_of(request: &Incoming) -> usize {
    request.extensions().get::<Run>().unwrap().0
}

pub(crate) fn lease_of(request: &Incoming) -> Lease {
    request.extensions().get::<Lease>().unwrap().clone()
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Moves the paused clock by exactly this, also where no timer stands.
pub(crate) async fn pass(time: Duration) {
    tokio::time::advance(time).await;
}

/// The smallest step of the clock.
pub(crate) const TICK: Duration = Duration::from_nanos(1);

/// Lets every other task run until it waits.
pub(crate) async fn others() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}
