use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use pin_project_lite::pin_project;
use steadfast_core::{Body, Detach};

pin_project! {
    /// Response future of [`Idempotency`](crate::Idempotency).
    pub struct ResponseFuture<F, B, E>
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
        // Answered here, before anything was read.
        Answered { response: Option<Box<Response<Body<B>>>> },
        Flow { #[pin] flow: Detach<Result<Response<Body<B>>, E>> },
    }
}

impl<F, B, E> ResponseFuture<F, B, E>
where
    B: http_body::Body + Send + 'static,
    B::Error: Send,
    E: Send + 'static,
{
    pub(super) const fn forward(response: F) -> Self {
        Self {
            kind: Kind::Forward { response },
        }
    }

    pub(super) fn answered(response: Response<Body<B>>) -> Self {
        Self {
            kind: Kind::Answered {
                response: Some(Box::new(response)),
            },
        }
    }

    pub(super) const fn flow(flow: Detach<Result<Response<Body<B>>, E>>) -> Self {
        Self {
            kind: Kind::Flow { flow },
        }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B, E>
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

impl<F, B, E> fmt::Debug for ResponseFuture<F, B, E>
where
    B: http_body::Body + Send + 'static,
    B::Error: Send,
    E: Send + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Forward { .. } => "ResponseFuture::Forward",
            Kind::Answered { .. } => "ResponseFuture::Answered",
            Kind::Flow { .. } => "ResponseFuture::Flow",
        })
    }
}
