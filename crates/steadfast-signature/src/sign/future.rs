use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::Response;
use steadfast_core::Body;

/// Response future of [`SignRequest`](crate::SignRequest).
pub struct ResponseFuture<B: http_body::Body, E> {
    flow: Flow<B, E>,
}

type Flow<B, E> = Pin<Box<dyn Future<Output = Result<Response<Body<B>>, E>> + Send + 'static>>;

impl<B: http_body::Body, E> ResponseFuture<B, E> {
    pub(super) const fn new(flow: Flow<B, E>) -> Self {
        Self { flow }
    }
}

impl<B: http_body::Body, E> Future for ResponseFuture<B, E> {
    type Output = Result<Response<Body<B>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.flow.as_mut().poll(cx)
    }
}

impl<B: http_body::Body, E> fmt::Debug for ResponseFuture<B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
