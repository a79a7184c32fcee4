use std::future::Future;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, request::Parts};
use steadfast_core::{Arm, Body, Capped, read_capped};
use tower_service::Service;

use super::{
    claim::Admission, config::Config, handler::Handler, identity, owner::Owner,
    rejection::Rejection, replay::replay, run::ServiceError,
};
use crate::store::{Fingerprint, Store};

/// A covered request on its way.
pub(super) struct Call<S, St, B> {
    pub(super) inner: S,
    pub(super) owner: Owner<St>,
    pub(super) parts: Parts,
    pub(super) body: B,
}

/// Reads, claims, runs and saves. Armed from the claim on, so that the rest outlives the caller.
///
/// What it holds across its awaits is allocated and moved for each call: nothing is taken apart before it has to be.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has room for its arguments twice"
)]
pub(super) fn run<S, St, ReqBody, ResBody>(
    mut call: Call<S, St, ReqBody>,
    arm: Arm,
) -> impl Future<Output = Result<Response<Body<ResBody>>, S::Error>>
where
    S: Service<Request<Body<ReqBody>>, Response = Response<ResBody>>,
    St: Store,
    ReqBody: http_body::Body,
    ResBody: http_body::Body,
{
    async move {
        let owner = &call.owner;
        let (fingerprint, body) = match read_capped(call.body, owner.config.max_body).await {
            Capped::Complete { bytes, trailers } => {
                let fingerprint = fingerprint(&owner.config, &call.parts, &bytes);
                (fingerprint, Body::with_trailers(bytes, trailers))
            }
            Capped::Over { .. } => return Ok(owner.config.reject(Rejection::BodyTooLarge)),
            Capped::Failed { .. } => return Ok(owner.config.reject(Rejection::RequestInvalid)),
        };
        let lease = match owner.claim(fingerprint, &arm).await {
            Admission::Run(lease) => lease,
            Admission::Replay(record) => return Ok(replay(&owner.config, &record)),
            Admission::Refuse(rejection) => return Ok(owner.config.reject(rejection)),
            Admission::RunUnprotected => {
                let request = Request::from_parts(call.parts, body);
                let handled = Box::pin(Handler::new(call.inner, request)).await;
                return handled.map(mark_bypassed).map_err(ServiceError::into_inner);
            }
        };
        let method = call.parts.method.clone();
        call.parts.extensions.insert(lease.clone());
        let request = Request::from_parts(call.parts, body);
        // In boxes of their own, for which replays and refusals have no use. Allocators are slow to give a large one.
        let handler = Box::pin(Handler::new(call.inner, request));
        Box::pin(owner.run(&lease, &method, handler)).await
    }
}

fn fingerprint(config: &Config, parts: &Parts, body: &Bytes) -> Fingerprint {
    match &config.content {
        Some(content) => identity::fingerprint(&config.scope, parts, &content(parts, body)),
        None => identity::fingerprint(&config.scope, parts, body),
    }
}

fn mark_bypassed<B: http_body::Body>(response: Response<B>) -> Response<Body<B>> {
    const STATUS: HeaderName = HeaderName::from_static("idempotency-status");
    let mut response = response.map(Body::inner);
    response
        .headers_mut()
        .insert(STATUS, HeaderValue::from_static("bypassed"));
    response
}
