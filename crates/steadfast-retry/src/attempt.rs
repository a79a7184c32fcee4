use std::{
    mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use steadfast_core::{Body, ReadCapped, ReplayBody, is_stream, read_capped};
use tokio::time::Instant;
use tower_service::Service;

use crate::alarm::Alarm;

/// The service that the retry loop calls: the inner one, bounded in time, its responses read ahead if so wanted.
#[derive(Clone, Debug)]
pub(crate) struct Attempt<S> {
    inner: S,
    limits: AttemptLimits,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AttemptLimits {
    pub(crate) timeout: Option<Duration>,
    pub(crate) buffer: Option<usize>,
}

/// How an attempt ended, when not with an error.
pub(crate) struct Attempted<B: http_body::Body> {
    /// As far as it arrived: an empty 504 takes its place where nothing did.
    pub(crate) response: Response<Body<B>>,
    pub(crate) arrived: Arrived,
    /// When the head arrived; known for statuses that may be repeated.
    pub(crate) received: Option<Instant>,
}

/// How much of a response arrived in time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Arrived {
    /// All that was waited for.
    All,
    /// Its head, while its body was being read ahead.
    Head,
    Nothing,
}

impl<S> Attempt<S> {
    pub(crate) const fn new(inner: S, limits: AttemptLimits) -> Self {
        Self { inner, limits }
    }
}

impl<S, B, ResB> Service<Request<ReplayBody<B>>> for Attempt<S>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<ResB>>,
    B: http_body::Body,
    ResB: http_body::Body,
{
    type Response = Attempted<ResB>;
    type Error = S::Error;
    type Future = AttemptFuture<S::Future, ResB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReplayBody<B>>) -> Self::Future {
        let AttemptLimits { timeout, buffer } = self.limits;
        AttemptFuture {
            // What follows a CONNECT is a tunnel and no body.
            buffer: buffer.filter(|_| *request.method() != Method::CONNECT),
            alarm: timeout.and_then(Alarm::after),
            state: State::Calling {
                response: self.inner.call(request),
            },
        }
    }
}

pin_project! {
    pub(crate) struct AttemptFuture<F, B>
    where
        B: http_body::Body,
    {
        #[pin]
        state: State<F, B>,
        alarm: Option<Alarm>,
        buffer: Option<usize>,
    }
}

pin_project! {
    // Calling ──▶ Reading ──▶ done
    //    ├──── not buffered ──▶ done
    //    └──── error ─────────▶ done
    // The alarm ends both.
    #[project = StateProj]
    enum State<F, B>
    where
        B: http_body::Body,
    {
        Calling { #[pin] response: F },
        Reading { reading: Pin<Box<Reading<B>>> },
    }
}

struct Reading<B: http_body::Body> {
    head: Response<()>,
    received: Option<Instant>,
    body: ReadCapped<B>,
}

impl<F, B, E> Future for AttemptFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: http_body::Body,
{
    type Output = Result<Attempted<B>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Calling { response } => {
                    let Poll::Ready(response) = response.poll(cx) else {
                        break;
                    };
                    let response = response?;
                    let received = may_be_repeated(response.status()).then(Instant::now);
                    let Some(cap) = this.buffer.filter(|_| is_readable(&response)) else {
                        return Poll::Ready(Ok(Attempted {
                            response: response.map(Body::inner),
                            arrived: Arrived::All,
                            received,
                        }));
                    };
                    let (head, body) = response.into_parts();
                    this.state.set(State::Reading {
                        reading: Box::pin(Reading {
                            head: Response::from_parts(head, ()),
                            received,
                            body: read_capped(body, cap),
                        }),
                    });
                }
                StateProj::Reading { reading } => {
                    let Poll::Ready(read) = Pin::new(&mut reading.body).poll(cx) else {
                        break;
                    };
                    return Poll::Ready(Ok(reading.arrived(read.into_body(), Arrived::All)));
                }
            }
        }
        if !Alarm::has_gone_off(this.alarm, cx) {
            return Poll::Pending;
        }
        Poll::Ready(Ok(match this.state.project() {
            StateProj::Calling { .. } => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
                Attempted {
                    response,
                    arrived: Arrived::Nothing,
                    received: None,
                }
            }
            StateProj::Reading { reading } => reading.arrived(Body::empty(), Arrived::Head),
        }))
    }
}

impl<B: http_body::Body> Reading<B> {
    fn arrived(&mut self, body: Body<B>, arrived: Arrived) -> Attempted<B> {
        Attempted {
            response: mem::take(&mut self.head).map(|()| body),
            arrived,
            received: self.received,
        }
    }
}

fn may_be_repeated(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// Whether reading ahead is of use: there is something to read, and it is meant to end.
fn is_readable<B: http_body::Body>(response: &Response<B>) -> bool {
    !response.body().is_end_stream()
        && response.status() != StatusCode::SWITCHING_PROTOCOLS
        && !is_stream(response.headers())
}
