use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tower_service::Service;

use crate::flow::ServiceError;

pin_project! {
    // Readying ──▶ Calling ──▶ done
    //    └──── dead ─────────▶ done
    /// The handler: a service that is readied, and then called.
    #[project = HandlerProj]
    pub(crate) enum Handler<S, Req>
    where
        S: Service<Req>,
    {
        Readying { inner: S, request: Option<Req> },
        Calling { #[pin] response: S::Future },
    }
}

impl<S: Service<Req>, Req> Handler<S, Req> {
    pub(crate) const fn new(inner: S, request: Req) -> Self {
        Self::Readying {
            inner,
            request: Some(request),
        }
    }
}

impl<S: Service<Req>, Req> Future for Handler<S, Req> {
    type Output = Result<S::Response, ServiceError<S::Error>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match self.as_mut().project() {
                HandlerProj::Readying { inner, request } => {
                    ready!(inner.poll_ready(cx)).map_err(ServiceError::NotReady)?;
                    let request = request.take().expect("polled after an error");
                    let response = inner.call(request);
                    self.set(Self::Calling { response });
                }
                HandlerProj::Calling { response } => {
                    return response.poll(cx).map_err(ServiceError::Called);
                }
            }
        }
    }
}
