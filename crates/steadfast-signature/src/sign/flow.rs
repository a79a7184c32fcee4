use std::{
    future::{Future, poll_fn},
    sync::Arc,
    time::SystemTime,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, request::Parts};
use steadfast_core::{Body, Capped, facts::CredentialGeneration, read_capped};
use tokio::time::sleep;
use tower_service::Service;

use super::{config::Config, rejection::SignRejection};
use crate::{Scheme, SigningKey, SigningKeys, Stamp};

/// A request on its way.
pub(super) struct Call<S, Sc, K, B> {
    pub(super) inner: S,
    pub(super) scheme: Arc<Sc>,
    pub(super) keys: K,
    pub(super) config: Arc<Config>,
    pub(super) head: Parts,
    pub(super) body: B,
}

/// How often the next tick is waited for: so many equal requests of one moment are told apart.
const MAX_TICKS: u32 = 10;

/// Reads, signs and sends.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has room for its arguments twice"
)]
pub(super) fn run<S, Sc, K, ReqBody, ResBody>(
    call: Call<S, Sc, K, ReqBody>,
) -> impl Future<Output = Result<Response<Body<ResBody>>, S::Error>>
where
    S: Service<Request<Body<ReqBody>>, Response = Response<ResBody>> + Clone,
    Sc: Scheme,
    K: SigningKeys,
    ReqBody: http_body::Body,
    ResBody: http_body::Body,
{
    async move {
        let Call {
            mut inner,
            scheme,
            keys,
            config,
            mut head,
            body,
        } = call;
        let announced = body.size_hint().exact().is_some();
        let (bytes, trailers) = match read_capped(body, config.max_body).await {
            Capped::Complete { bytes, trailers } => (bytes, trailers),
            Capped::Over { .. } => return Ok(config.reject(SignRejection::BodyTooLarge)),
            Capped::Failed { .. } => return Ok(config.reject(SignRejection::BodyUnreadable)),
        };
        let (key, generation) = match keys.current().await {
            Ok(current) => current,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(
                    event = "signing_key_unavailable",
                    error,
                    "no key to sign with"
                );
                return Ok(config.reject(SignRejection::KeyUnavailable));
            }
        };
        let mut ticks = 0..MAX_TICKS;
        loop {
            // Before the clock is read: no timestamp grows old while a place is waited for.
            poll_fn(|cx| inner.poll_ready(cx)).await?;
            let next = match sign(&*scheme, &config, &mut head, &bytes, &key) {
                Ok(next) => next,
                Err(rejection) => return Ok(config.reject(rejection)),
            };
            let (Some(next), Some(_)) = (next, ticks.next()) else {
                break;
            };
            // Nobody sleeps on a place that others wait for.
            inner = inner.clone();
            let wait = next.duration_since(config.clock.now());
            sleep(wait.unwrap_or_default()).await;
            if config.clock.now() < next {
                // The clock stands still, or was set back: waiting longer changes nothing.
                ticks = 0..0;
            }
        }
        let body = match trailers {
            Some(trailers) if !announced => Body::with_late_trailers(bytes, trailers),
            trailers => Body::with_trailers(bytes, trailers),
        };
        let response = inner.call(Request::from_parts(head, body)).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            keys.refused(generation);
        }
        Ok(marked(response, generation))
    }
}

/// Signs. If an equal request was signed in this tick (a repeat, for one, that would look like a replay), tells when the
/// tick ends.
fn sign<Sc: Scheme>(
    scheme: &Sc,
    config: &Config,
    head: &mut Parts,
    body: &Bytes,
    key: &SigningKey,
) -> Result<Option<SystemTime>, SignRejection> {
    let stamp = Stamp::random(config.clock.now());
    let signed = scheme
        .sign(head, body, key, &stamp)
        .map_err(SignRejection::Unsignable)?;
    let (Some(next), Some(recent)) = (signed.next, &config.recent) else {
        return Ok(None);
    };
    Ok((!recent.take(&signed.signature, next)).then_some(next))
}

fn marked<B: http_body::Body>(
    response: Response<B>,
    generation: CredentialGeneration,
) -> Response<Body<B>> {
    let mut response = response.map(Body::inner);
    response.extensions_mut().insert(generation);
    response
}
