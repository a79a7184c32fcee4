use std::{
    fmt,
    hint::black_box,
    iter,
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use tower::Service;

/// So few calls at a time that their requests and answers stay in the cache, and so many that reading the clock is
/// nothing beside them.
pub const BATCH: usize = 32;

/// Calls to one stack of services, made in two steps so that only the second is measured.
pub trait Case {
    /// Makes the requests of the next calls, and whatever else they need.
    fn prepare(&mut self, calls: usize);

    /// Calls the service with so many of the prepared requests.
    fn run(&mut self, calls: usize);

    /// Makes one call and tells what was answered.
    fn look(&mut self) -> Seen;
}

/// What a call was answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seen {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A stack, and how to go on calling it.
pub(crate) struct Calls<S, B> {
    stack: Box<dyn FnMut() -> S>,
    request: Box<dyn FnMut() -> Request<B>>,
    service: S,
    /// How many calls one stack takes before it is built anew.
    endurance: usize,
    taken: usize,
    prepared: Vec<Request<B>>,
}

impl<S, B> Calls<S, B> {
    pub(crate) fn new(
        mut stack: impl FnMut() -> S + 'static,
        request: impl FnMut() -> Request<B> + 'static,
    ) -> Self {
        Self {
            service: stack(),
            stack: Box::new(stack),
            request: Box::new(request),
            endurance: usize::MAX,
            taken: 0,
            prepared: Vec::new(),
        }
    }

    /// Builds the stack anew after so many calls, for stacks that fill up.
    pub(crate) const fn endurance(mut self, calls: usize) -> Self {
        self.endurance = calls;
        self
    }
}

impl<S, B, ResB> Case for Calls<S, B>
where
    S: Service<Request<B>, Response = Response<ResB>>,
    S::Error: fmt::Debug,
    ResB: Body<Data = Bytes>,
{
    fn prepare(&mut self, calls: usize) {
        if self.taken > 0 && self.taken.saturating_add(calls) > self.endurance {
            self.service = (self.stack)();
            self.taken = 0;
        }
        self.taken = self.taken.saturating_add(calls);
        self.prepared.clear();
        self.prepared
            .extend(iter::repeat_with(&mut self.request).take(calls));
    }

    fn run(&mut self, calls: usize) {
        for _ in 0..calls {
            let request = self.prepared.pop().expect("prepared beforehand");
            let response = call(&mut self.service, request);
            black_box(response.status());
            read(response, |data| {
                black_box(data);
            });
        }
    }

    fn look(&mut self) -> Seen {
        let response = call(&mut self.service, (self.request)());
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        read(response, |data| body.extend_from_slice(&data));
        Seen {
            status,
            headers,
            body: body.into(),
        }
    }
}

/// Nothing in these stacks waits: a future that is not ready at once measures something else.
pub(crate) fn call<S, B, ResB>(service: &mut S, request: Request<B>) -> Response<ResB>
where
    S: Service<Request<B>, Response = Response<ResB>>,
    S::Error: fmt::Debug,
{
    let mut cx = Context::from_waker(Waker::noop());
    assert!(
        matches!(service.poll_ready(&mut cx), Poll::Ready(Ok(()))),
        "the service is not ready"
    );
    let future = pin!(service.call(request));
    match future.poll(&mut cx) {
        Poll::Ready(Ok(response)) => response,
        Poll::Ready(Err(error)) => panic!("the call failed: {error:?}"),
        Poll::Pending => panic!("the call waits"),
    }
}

/// Reads a body to its end.
fn read<B: Body<Data = Bytes>>(message: Response<B>, mut with: impl FnMut(Bytes)) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut body = pin!(message.into_body());
    while let Poll::Ready(Some(Ok(frame))) = body.as_mut().poll_frame(&mut cx) {
        if let Ok(data) = frame.into_data() {
            with(data);
        }
    }
}
