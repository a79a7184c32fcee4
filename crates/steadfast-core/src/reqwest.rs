//! A `tower::Service` around `reqwest::Client`.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use pin_project_lite::pin_project;
use reqwest::{Body, Client, ClientBuilder};
use tower_service::Service;

use crate::BoxError;

/// Sends `http::Request`s with a `reqwest::Client`, so that steadfast's layers can be put around it.
///
/// reqwest's own retries are switched off: a call is retried in one place, or its attempts multiply.
///
/// # Readiness
///
/// Always ready: reqwest has no limit of its own.
#[derive(Clone)]
pub struct ReqwestService {
    client: Client,
}

impl ReqwestService {
    /// Builds the client, with reqwest's own retries off.
    ///
    /// # Errors
    ///
    /// When reqwest cannot build it, for example because no TLS backend can be set up.
    pub fn new(builder: ClientBuilder) -> Result<Self, BuildError> {
        let client = builder.retry(reqwest::retry::never()).build();
        client.map(|client| Self { client }).map_err(BuildError)
    }
}

impl fmt::Debug for ReqwestService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReqwestService").finish_non_exhaustive()
    }
}

/// The client could not be built.
#[derive(Debug, thiserror::Error)]
#[error("the reqwest client could not be built")]
pub struct BuildError(#[source] reqwest::Error);

impl<B> Service<Request<B>> for ReqwestService
where
    B: http_body::Body + Send + Sync + 'static,
    B::Data: Into<bytes::Bytes>,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = reqwest::Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let state = match reqwest::Request::try_from(request.map(Body::wrap)) {
            Ok(request) => State::Sending {
                response: self.client.call(request),
            },
            Err(error) => State::Refused { error: Some(error) },
        };
        ResponseFuture { state }
    }
}

pin_project! {
    /// Response future of [`ReqwestService`].
    pub struct ResponseFuture {
        #[pin]
        state: State,
    }
}

pin_project! {
    #[project = StateProj]
    enum State {
        Sending { #[pin] response: <Client as Service<reqwest::Request>>::Future },
        Refused { error: Option<reqwest::Error> },
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<Body>, reqwest::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Sending { response } => {
                Poll::Ready(ready!(response.poll(cx)).map(Response::from))
            }
            StateProj::Refused { error } => {
                Poll::Ready(Err(error.take().expect("polled after completion")))
            }
        }
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
