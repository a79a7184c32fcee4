use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, request::Parts};
use steadfast_core::{Body, Capped, ReadCapped, read_capped};
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
    mut call: Call<S, Sc, K, ReqBody>,
) -> impl Future<Output = Result<Response<Body<ResBody>>, S::Error>>
where
    S: Service<Request<Body<ReqBody>>, Response = Response<ResBody>>,
    Sc: Scheme,
    K: FindKey,
    ReqBody: http_body::Body,
    ResBody: http_body::Body,
{
    // What is held across the awaits is moved for each request: nothing is taken apart before it has to be, and nothing is
    // handed to a further async function by value.
    async move {
        let (verified, bytes, trailers) = {
            let named;
            let key_id = match (&call.presented.key_id, &call.config.key_id) {
                (Some(key_id), _) => Some(&**key_id),
                (None, None) => Some(DEFAULT_KEY_ID),
                (None, Some(name)) => {
                    named = name(&call.head);
                    named.as_deref()
                }
            };
            let secrets = match key_id {
                Some(key_id) => match find(&call.keys, key_id, &call.config).await {
                    Ok(secrets) => secrets,
                    Err(rejection) => return Ok(call.config.reject(call.scheme.name(), rejection)),
                },
                None => None,
            };
            let now = call.config.clock.now();
            let mut check = Check::begin(&call.presented, secrets.as_ref(), now);
            let read = Reading::new(call.body, &mut check, &call.presented, &call.config).await;
            let (bytes, trailers) = match read {
                Ok(read) => read,
                Err(rejection) => return Ok(call.config.reject(call.scheme.name(), rejection)),
            };
            let judged = check
                .finish(&call.presented, secrets.as_ref(), &bytes, now)
                .and_then(|content| {
                    // The body may have taken longer than its timestamp is good for.
                    if let Some(window) = &call.presented.window {
                        window.judge(call.config.clock.now())?;
                    }
                    let key_id = key_id.ok_or(Reason::UnknownKey)?;
                    let clock = &call.config.clock;
                    Ok(fact(
                        call.scheme.name(),
                        key_id,
                        &call.presented,
                        content,
                        clock,
                    ))
                });
            match judged {
                Ok(verified) => (verified, bytes, trailers),
                Err(reason) => return Ok(call.config.reject(call.scheme.name(), reason.into())),
            }
        };
        call.head.extensions.insert(verified);
        poll_fn(|cx| call.inner.poll_ready(cx)).await?;
        let body = Body::with_trailers(bytes, trailers);
        let response = call.inner.call(Request::from_parts(call.head, body));
        Ok(response.await?.map(Body::inner))
    }
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
struct Reading<'a, B: http_body::Body> {
    read: ReadCapped<Tee<'a, B>>,
    patience: Patience<'a>,
}

impl<'a, B: http_body::Body> Reading<'a, B> {
    fn new(body: B, check: &'a mut Check, presented: &'a Presented, config: &'a Config) -> Self {
        let tee = Tee::new(body, check, &presented.content);
        Self {
            read: read_capped(tee, config.max_body),
            patience: Patience::new(config, presented.window.as_ref()),
        }
    }
}

impl<B: http_body::Body> Future for Reading<'_, B> {
    type Output = Result<(Bytes, Option<HeaderMap>), Rejection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.read).poll(cx) {
            Poll::Ready(Capped::Complete { bytes, trailers }) => Poll::Ready(Ok((bytes, trailers))),
            Poll::Ready(Capped::Over { .. }) => Poll::Ready(Err(Rejection::BodyTooLarge)),
            Poll::Ready(Capped::Failed { .. }) => Poll::Ready(Err(Rejection::BodyUnreadable)),
            Poll::Pending => self.patience.poll(cx).map(Err),
        }
    }
}
