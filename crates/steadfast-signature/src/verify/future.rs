use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use pin_project_lite::pin_project;
use steadfast_core::Body;

pin_project! {
    /// Response future of [`VerifySignature`](crate::VerifySignature).
    pub struct ResponseFuture<F, B, E>
    where
        B: http_body::Body,
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
    {
        // Not verified: nothing is allocated.
        Forward { #[pin] response: F },
        // Answered here, before anything was read.
        Answered { response: Option<Box<Response<Body<B>>>> },
        Flow { flow: Flow<B, E> },
    }
}

pub(super) type Flow<B, E> =
    Pin<Box<dyn Future<Output = Result<Response<Body<B>>, E>> + Send + 'static>>;

impl<F, B: http_body::Body, E> ResponseFuture<F, B, E> {
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

    pub(super) const fn flow(flow: Flow<B, E>) -> Self {
        Self {
            kind: Kind::Flow { flow },
        }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: http_body::Body,
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
            KindProj::Flow { flow } => flow.as_mut().poll(cx),
        }
    }
}

impl<F, B: http_body::Body, E> fmt::Debug for ResponseFuture<F, B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Forward { .. } => "ResponseFuture::Forward",
            Kind::Answered { .. } => "ResponseFuture::Answered",
            Kind::Flow { .. } => "ResponseFuture::Flow",
        })
    }
}
