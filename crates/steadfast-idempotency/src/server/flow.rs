use std::{future::poll_fn, pin::pin, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, request::Parts};
use steadfast_core::{Arm, Body, Capped, read_capped};
use steadfast_headers::IdempotencyKey;
use tower_service::Service;

use super::{
    claim::Admission, config::Config, identity, owner::Owner, rejection::Rejection, replay::replay,
    run::ServiceError, scope::TenantDigest,
};
use crate::store::{Fingerprint, Store};

/// A covered request on its way.
pub(super) struct Call<S, St, B> {
    pub(super) inner: S,
    pub(super) store: St,
    pub(super) config: Arc<Config>,
    pub(super) parts: Parts,
    pub(super) body: B,
    pub(super) key: IdempotencyKey,
    pub(super) tenant: TenantDigest,
}

/// Reads, claims, runs and saves. Armed from the claim on, so that the rest outlives the caller.
pub(super) async fn run<S, St, ReqBody, ResBody>(
    call: Call<S, St, ReqBody>,
    arm: Arm,
) -> Result<Response<Body<ResBody>>, S::Error>
where
    S: Service<Request<Body<ReqBody>>, Response = Response<ResBody>>,
    St: Store,
    ReqBody: http_body::Body,
    ResBody: http_body::Body,
{
    let Call {
        inner,
        store,
        config,
        mut parts,
        body,
        key,
        tenant,
    } = call;
    let (content, trailers) = match read_capped(body, config.max_body).await {
        Capped::Complete { bytes, trailers } => (bytes, trailers),
        Capped::Over { .. } => return Ok(config.reject(Rejection::BodyTooLarge)),
        Capped::Failed { .. } => return Ok(config.reject(Rejection::RequestInvalid)),
    };
    let fingerprint = fingerprint(&config, &parts, &content);
    let id = identity::record_id(&config.scope, tenant, &parts, &key);
    let owner = Owner::new(store, config, id, key);
    let lease = match owner.claim(fingerprint, &arm).await {
        Admission::Run(lease) => lease,
        Admission::Replay(record) => return Ok(replay(&owner.config, &record)),
        Admission::Refuse(rejection) => return Ok(owner.config.reject(rejection)),
        Admission::RunUnprotected => {
            let request = Request::from_parts(parts, Body::with_trailers(content, trailers));
            let handled = handle(inner, request).await;
            return handled.map(mark_bypassed).map_err(ServiceError::into_inner);
        }
    };
    let method = parts.method.clone();
    parts.extensions.insert(lease.clone());
    let request = Request::from_parts(parts, Body::with_trailers(content, trailers));
    let handler = pin!(handle(inner, request));
    owner.run(&lease, &method, handler).await
}

fn fingerprint(config: &Config, parts: &Parts, body: &Bytes) -> Fingerprint {
    match &config.content {
        Some(content) => identity::fingerprint(&config.scope, parts, &content(parts, body)),
        None => identity::fingerprint(&config.scope, parts, body),
    }
}

async fn handle<S, Req>(mut inner: S, request: Req) -> Result<S::Response, ServiceError<S::Error>>
where
    S: Service<Req>,
{
    let ready = poll_fn(|cx| inner.poll_ready(cx)).await;
    ready.map_err(ServiceError::NotReady)?;
    inner.call(request).await.map_err(ServiceError::Called)
}

fn mark_bypassed<B: http_body::Body>(response: Response<B>) -> Response<Body<B>> {
    const STATUS: HeaderName = HeaderName::from_static("idempotency-status");
    let mut response = response.map(Body::inner);
    response
        .headers_mut()
        .insert(STATUS, HeaderValue::from_static("bypassed"));
    response
}
