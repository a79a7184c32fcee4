use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, request::Parts};
use steadfast_core::{Body, Capped, facts::Verified, read_capped};
use tokio::time::timeout;
use tower_service::Service;

use super::{config::Config, patience::Patience, rejection::Rejection, tee::Tee};
use crate::{
    DEFAULT_KEY_ID, FindKey, Presented, Reason, Scheme, Secrets,
    check::{Check, fact},
};

/// A request on its way.
pub(super) struct Call<S, Sc, K, B> {
    pub(super) inner: S,
    pub(super) scheme: Arc<Sc>,
    pub(super) keys: K,
    pub(super) config: Arc<Config>,
    pub(super) presented: Presented,
    pub(super) head: Parts,
    pub(super) body: B,
}

/// Finds the key, reads, compares, and calls.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has room for its arguments twice"
)]
pub(super) fn run<S, Sc, K, ReqBody, ResBody>(
    call: Call<S, Sc, K, ReqBody>,
) -> impl Future<Output = Result<Response<Body<ResBody>>, S::Error>>
where
    S: Service<Request<Body<ReqBody>>, Response = Response<ResBody>>,
    Sc: Scheme,
    K: FindKey,
    ReqBody: http_body::Body,
    ResBody: http_body::Body,
{
    async move {
        let Call {
            mut inner,
            scheme,
            keys,
            config,
            presented,
            mut head,
            body,
        } = call;
        let body = match verify(&*scheme, &keys, &config, presented, &head, body).await {
            Ok((verified, bytes, trailers)) => {
                head.extensions.insert(verified);
                Body::with_trailers(bytes, trailers)
            }
            Err(rejection) => return Ok(config.reject(scheme.name(), rejection)),
        };
        poll_fn(|cx| inner.poll_ready(cx)).await?;
        let response = inner.call(Request::from_parts(head, body)).await?;
        Ok(response.map(Body::inner))
    }
}

async fn verify<Sc: Scheme, K: FindKey, B: http_body::Body>(
    scheme: &Sc,
    keys: &K,
    config: &Config,
    presented: Presented,
    head: &Parts,
    body: B,
) -> Result<(Verified, Bytes, Option<HeaderMap>), Rejection> {
    let named;
    let key_id = match (&presented.key_id, &config.key_id) {
        (Some(key_id), _) => Some(&**key_id),
        (None, None) => Some(DEFAULT_KEY_ID),
        (None, Some(name)) => {
            named = name(head);
            named.as_deref()
        }
    };
    let secrets = match key_id {
        Some(key_id) => find(keys, key_id, config).await?,
        None => None,
    };
    let now = config.clock.now();
    let mut check = Check::begin(&presented, secrets.as_ref(), now);
    let (bytes, trailers) = read(body, &mut check, &presented, config).await?;
    let content = check.finish(&presented, secrets.as_ref(), &bytes, now)?;
    // The body may have taken longer than its timestamp is good for.
    if let Some(window) = &presented.window {
        window.judge(config.clock.now())?;
    }
    let key_id: Box<str> = key_id.ok_or(Reason::UnknownKey)?.into();
    let verified = fact(scheme.name(), &key_id, presented, content, &config.clock);
    Ok((verified, bytes, trailers))
}

/// Looks the key up, within its time.
async fn find<K: FindKey>(
    keys: &K,
    key_id: &str,
    config: &Config,
) -> Result<Option<Secrets>, Rejection> {
    let mut find = pin!(keys.find(key_id));
    // Keys in memory need no timer.
    let found = match poll_fn(|cx| Poll::Ready(find.as_mut().poll(cx))).await {
        Poll::Ready(found) => Ok(found),
        Poll::Pending => timeout(config.lookup_timeout, find).await,
    };
    match found {
        Ok(Ok(secrets)) => Ok(secrets),
        Ok(Err(error)) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(event = "keys_unavailable", error, "key lookup failed");
            Err(Rejection::KeysUnavailable)
        }
        Err(_elapsed) => {
            tracing::warn!(event = "keys_unavailable", "key lookup took too long");
            Err(Rejection::KeysUnavailable)
        }
    }
}

/// Reads the body into the check and into memory.
async fn read<B: http_body::Body>(
    body: B,
    check: &mut Check,
    presented: &Presented,
    config: &Config,
) -> Result<(Bytes, Option<HeaderMap>), Rejection> {
    let tee = Tee::new(body, check, &presented.content);
    let mut reading = read_capped(tee, config.max_body);
    let mut patience = Patience::new(config, presented.window.as_ref());
    poll_fn(|cx| match Pin::new(&mut reading).poll(cx) {
        Poll::Ready(Capped::Complete { bytes, trailers }) => Poll::Ready(Ok((bytes, trailers))),
        Poll::Ready(Capped::Over { .. }) => Poll::Ready(Err(Rejection::BodyTooLarge)),
        Poll::Ready(Capped::Failed { .. }) => Poll::Ready(Err(Rejection::BodyUnreadable)),
        Poll::Pending => patience.poll(cx).map(Err),
    })
    .await
}
