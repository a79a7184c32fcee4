use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{HeaderName, Response};
use pin_project_lite::pin_project;
use steadfast_core::{Body, facts::Replayed};
use steadfast_headers::{IdempotencyKey, is_replayed};

pin_project! {
    /// Response future of [`SetIdempotencyKey`](crate::SetIdempotencyKey).
    pub struct ResponseFuture<F, B>
    where
        B: http_body::Body,
    {
        #[pin]
        kind: Kind<F, B>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<F, B>
    where
        B: http_body::Body,
    {
        Forward { #[pin] response: F },
        Keyed { #[pin] response: F, key: Option<(IdempotencyKey, HeaderName)> },
        Rejected { response: Option<Box<Response<Body<B>>>> },
    }
}

impl<F, B: http_body::Body> ResponseFuture<F, B> {
    pub(super) const fn forward(response: F) -> Self {
        Self {
            kind: Kind::Forward { response },
        }
    }

    pub(super) const fn keyed(response: F, key: IdempotencyKey, replayed: HeaderName) -> Self {
        Self {
            kind: Kind::Keyed {
                response,
                key: Some((key, replayed)),
            },
        }
    }

    pub(super) fn rejected(response: Response<Body<B>>) -> Self {
        Self {
            kind: Kind::Rejected {
                response: Some(Box::new(response)),
            },
        }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B>
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
            KindProj::Keyed { response, key } => {
                let mut response = ready!(response.poll(cx))?.map(Body::inner);
                if let Some((key, replayed)) = key.take() {
                    let replayed = response.headers().get(replayed).is_some_and(is_replayed);
                    let extensions = response.extensions_mut();
                    extensions.insert(Replayed(replayed));
                    extensions.insert(key);
                }
                Poll::Ready(Ok(response))
            }
            KindProj::Rejected { response } => {
                Poll::Ready(Ok(*response.take().expect("polled after completion")))
            }
        }
    }
}

impl<F, B: http_body::Body> fmt::Debug for ResponseFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Forward { .. } => "ResponseFuture::Forward",
            Kind::Keyed { .. } => "ResponseFuture::Keyed",
            Kind::Rejected { .. } => "ResponseFuture::Rejected",
        })
    }
}
