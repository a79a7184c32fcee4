use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::Response;
use pin_project_lite::pin_project;
use steadfast_core::{Body, Detach, facts::Freshness};
use tower_service::Service;

use crate::{
    layer::{Config, OneShot},
    rejection::Rejection,
    step::Step,
    store::{Recorded, Store},
};

pin_project! {
    /// Response future of [`ReplayGuard`](crate::ReplayGuard) for events.
    pub struct EventFuture<F, B, E>
    where
        B: http_body::Body,
        B: Send,
        B: 'static,
        B::Error: Send,
        E: Send,
        E: 'static,
    {
        #[pin]
        kind: Kind<F, B, E>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<F, B, E>
    where
        B: http_body::Body,
        B: Send,
        B: 'static,
        B::Error: Send,
        E: Send,
        E: 'static,
    {
        // Not concerned: nothing is allocated.
        Forward { #[pin] response: F },
        // Answered here, before the store was asked.
        Answered { response: Option<Box<Response<Body<B>>>> },
        Flow { #[pin] flow: Detach<Result<Response<Body<B>>, E>> },
    }
}

impl<F, B, E> EventFuture<F, B, E>
where
    B: http_body::Body + Send + 'static,
    B::Error: Send,
    E: Send + 'static,
{
    pub(crate) const fn forward(response: F) -> Self {
        Self {
            kind: Kind::Forward { response },
        }
    }

    pub(crate) fn answered(response: Response<Body<B>>) -> Self {
        Self {
            kind: Kind::Answered {
                response: Some(Box::new(response)),
            },
        }
    }

    pub(crate) const fn flow(flow: Detach<Result<Response<Body<B>>, E>>) -> Self {
        Self {
            kind: Kind::Flow { flow },
        }
    }
}

impl<F, B, E> Future for EventFuture<F, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: http_body::Body + Send + 'static,
    B::Error: Send,
    E: Send + 'static,
{
    type Output = Result<Response<Body<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            KindProj::Forward { response } => {
                Poll::Ready(ready!(response.poll(cx)).map(|response| response.map(Body::inner)))
            }
            KindProj::Answered { response } => {
                Poll::Ready(Ok(*response.take().expect("polled after completion")))
            }
            KindProj::Flow { flow } => flow.poll(cx),
        }
    }
}

impl<F, B, E> fmt::Debug for EventFuture<F, B, E>
where
    B: http_body::Body + Send + 'static,
    B::Error: Send,
    E: Send + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Forward { .. } => "EventFuture::Forward",
            Kind::Answered { .. } => "EventFuture::Answered",
            Kind::Flow { .. } => "EventFuture::Flow",
        })
    }
}

pin_project! {
    /// Response future of [`ReplayGuard`](crate::ReplayGuard) for one-shot requests.
    pub struct OneShotFuture<S, St, Req, B>
    where
        S: Service<Req>,
        St: Store,
        B: http_body::Body,
    {
        #[pin]
        state: State<St::Record, S::Future, B>,
        // Stays where it is until the call: requests are large, and moved for each step otherwise.
        call: Option<(S, Req)>,
    }
}

pin_project! {
    // Recording ──new──▶ Readying ──▶ Calling ──▶ done
    //     └──seen, refused, error───────────────▶ done
    // Answered ─────────────────────────────────▶ done
    #[project = StateProj]
    enum State<R, F, B>
    where
        B: http_body::Body,
    {
        Answered { response: Option<Box<Response<Body<B>>>> },
        Recording {
            #[pin]
            record: Step<R>,
            freshness: Option<Freshness>,
            config: Arc<Config<OneShot>>,
        },
        Readying,
        Calling { #[pin] response: F },
    }
}

impl<S, St, Req, B> OneShotFuture<S, St, Req, B>
where
    S: Service<Req>,
    St: Store,
    B: http_body::Body,
{
    pub(crate) const fn forward(response: S::Future) -> Self {
        Self {
            state: State::Calling { response },
            call: None,
        }
    }

    pub(crate) fn answered(response: Response<Body<B>>) -> Self {
        Self {
            state: State::Answered {
                response: Some(Box::new(response)),
            },
            call: None,
        }
    }

    pub(crate) fn recording(
        record: St::Record,
        freshness: Option<Freshness>,
        config: Arc<Config<OneShot>>,
        inner: S,
        request: Req,
    ) -> Self {
        Self {
            state: State::Recording {
                record: Step::new(record, config.store_timeout),
                freshness,
                config,
            },
            call: Some((inner, request)),
        }
    }
}

impl<S, St, Req, B> Future for OneShotFuture<S, St, Req, B>
where
    S: Service<Req, Response = Response<B>>,
    St: Store,
    B: http_body::Body,
{
    type Output = Result<Response<Body<B>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (mut state, call) = (this.state, this.call);
        loop {
            match state.as_mut().project() {
                StateProj::Answered { response } => {
                    let response = response.take().expect("polled after completion");
                    return Poll::Ready(Ok(*response));
                }
                StateProj::Recording {
                    record,
                    freshness,
                    config,
                } => {
                    let recorded = ready!(record.poll(cx));
                    if let Err(error) = &recorded {
                        tracing::warn!(
                            event = "store_unavailable",
                            error = error as &dyn std::error::Error,
                            "the replay store did not record a request"
                        );
                    }
                    let recorded = recorded.ok().map(|recorded| judged(recorded, freshness));
                    if let Some(rejection) = rejection(recorded) {
                        return Poll::Ready(Ok(config.reject(rejection)));
                    }
                    state.set(State::Readying);
                }
                StateProj::Readying => {
                    let (inner, _) = call.as_mut().expect("polled after an error");
                    ready!(inner.poll_ready(cx))?;
                    let (mut inner, request) = call.take().expect("it was there above");
                    let response = inner.call(request);
                    state.set(State::Calling { response });
                }
                StateProj::Calling { response } => {
                    let response = ready!(response.poll(cx));
                    return Poll::Ready(response.map(|response| response.map(Body::inner)));
                }
            }
        }
    }
}

/// A store with a clock of its own may have forgotten the request by the time it was asked: what was new to it is
/// surely new only if it is still fresh when the answer is here (G02).
fn judged(recorded: Recorded, freshness: &Option<Freshness>) -> Recorded {
    match freshness {
        Some(freshness)
            if recorded == Recorded::New && freshness.clock().now() > freshness.until() =>
        {
            Recorded::Expired
        }
        _ => recorded,
    }
}

/// What the store's answer means for the request. Without an answer nothing is let through.
const fn rejection(recorded: Option<Recorded>) -> Option<Rejection> {
    match recorded {
        Some(Recorded::New) => None,
        Some(Recorded::Seen) => Some(Rejection::Replayed),
        Some(Recorded::Expired) => Some(Rejection::Expired),
        Some(Recorded::Full) => Some(Rejection::StoreFull),
        Some(Recorded::OverQuota) => Some(Rejection::OverQuota),
        None => Some(Rejection::StoreUnavailable),
    }
}

impl<S, St, Req, B> fmt::Debug for OneShotFuture<S, St, Req, B>
where
    S: Service<Req>,
    St: Store,
    B: http_body::Body,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Answered { .. } => "OneShotFuture::Answered",
            State::Recording { .. } => "OneShotFuture::Recording",
            State::Readying => "OneShotFuture::Readying",
            State::Calling { .. } => "OneShotFuture::Calling",
        })
    }
}
