use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::Serialize;
use steadfast::{
    core::{Body, BoxError, Clock, ReplayBody, facts::CallReport},
    headers::{IDEMPOTENCY_KEY, IdempotencyKey, KeyRules, RetryAfter},
    idempotency::IdempotencyKeyLayer,
    retry::{Budget, GiveUp, RateLimitAwareRetryLayer},
};
use tower::{ServiceBuilder, ServiceExt as _};

use super::{
    args::Args,
    request::Payload,
    signer::{SignLayer, SignerError},
};
use crate::headers::millis;

/// Up to how many bytes a response is read ahead before its attempt counts as answered.
const BUFFER: usize = 1024 * 1024;

/// The longest request body that is signed, and the longest response body that is reported.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// The client, and the layers around it.
#[derive(Debug)]
pub(super) struct Stack {
    client: Client<HttpConnector, Body<ReplayBody<Payload>>>,
    layers: Option<Layers>,
}

#[derive(Debug)]
struct Layers {
    keys: IdempotencyKeyLayer,
    retry: RateLimitAwareRetryLayer,
    sign: Option<SignLayer>,
}

impl Stack {
    pub(super) fn new(args: &Args) -> Result<Self, SignerError> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let layers = match args.plain {
            true => None,
            false => Some(Layers::new(args)?),
        };
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            layers,
        })
    }

    /// Makes one call, to the end of its response.
    pub(super) async fn send(
        &self,
        mut request: Request<Payload>,
        report: &CallReport,
        events: &Events,
    ) -> Result<Response<Bytes>, BoxError> {
        let Some(layers) = &self.layers else {
            begin_plain(&mut request, report);
            let request = request.map(|body| Body::inner(ReplayBody::once(body)));
            let response = self.client.request(request).await?;
            end_plain(&response, report);
            return read(response).await;
        };
        request.extensions_mut().insert(report.clone());
        let outside = ServiceBuilder::new()
            .layer(layers.keys.clone())
            .layer(layers.telling(events.clone()));
        let client = self.client.clone();
        if let Some(sign) = layers.sign.clone() {
            let service = outside.layer(sign).service(client);
            read(service.oneshot(request).await?).await
        } else {
            let unsigned = |request: Request<_>| request.map(Body::inner);
            let service = outside.map_request(unsigned).service(client);
            read(service.oneshot(request).await?).await
        }
    }
}

impl Layers {
    fn new(args: &Args) -> Result<Self, SignerError> {
        let mut retry = RateLimitAwareRetryLayer::with_profile(args.profile.into())
            .cap(args.cap)
            .attempt_timeout(args.attempt_timeout)
            .buffer_response(BUFFER)
            .coalesce(Duration::ZERO)
            .budget(match args.budget {
                true => Budget::new(),
                false => Budget::unlimited(),
            });
        if let Some(retries) = args.retries {
            retry = retry.retries(retries);
        }
        if let Some(deadline) = args.deadline {
            retry = retry.deadline(deadline);
        }
        let sign = args.sign.clone().map(|signer| signer.layer(MAX_BODY));
        Ok(Self {
            keys: IdempotencyKeyLayer::new(),
            retry,
            sign: sign.transpose()?,
        })
    }

    /// The retry layer, as it serves one call whose events are told apart. All share one budget.
    fn telling(&self, events: Events) -> RateLimitAwareRetryLayer {
        self.retry
            .clone()
            .on_give_up(move |give_up| events.push(give_up))
    }
}

/// Without layers the caller's key has to be sent by hand, and noted.
fn begin_plain<B>(request: &mut Request<B>, report: &CallReport) {
    if let Some(key) = request.extensions().get::<IdempotencyKey>() {
        let value = key.to_header_value();
        request.headers_mut().append(IDEMPOTENCY_KEY, value);
    }
    let key = KeyRules::LOOSE.from_headers(request.headers(), &IDEMPOTENCY_KEY);
    report.update(|report| {
        report.attempts = 1;
        report.key = key.ok().flatten();
    });
}

fn end_plain<B>(response: &Response<B>, report: &CallReport) {
    let asked = RetryAfter::from_headers(response.headers(), Clock::system().now());
    report.update(|report| report.retry_after = asked.map(RetryAfter::delay));
}

async fn read<B>(response: Response<B>) -> Result<Response<Bytes>, BoxError>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>>,
{
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}

/// The events of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Events(Arc<Mutex<Vec<Event>>>);

#[derive(Debug, Serialize)]
pub(super) struct Event {
    method: String,
    host: String,
    status: Option<u16>,
    attempts: u32,
    reason: &'static str,
    retry_after_ms: Option<u64>,
}

impl Events {
    fn push(&self, give_up: &GiveUp<'_>) {
        self.with(|events| events.push(Event::from(give_up)));
    }

    pub(super) fn take(&self) -> Vec<Event> {
        self.with(mem::take)
    }

    fn with<T>(&self, f: impl FnOnce(&mut Vec<Event>) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Event {
    pub(super) const fn forget_status(&mut self) {
        self.status = None;
    }
}

impl From<&GiveUp<'_>> for Event {
    fn from(give_up: &GiveUp<'_>) -> Self {
        Self {
            method: give_up.method.to_string(),
            host: give_up.host.to_owned(),
            status: give_up.status.map(|status| status.as_u16()),
            attempts: give_up.attempts,
            reason: give_up.reason.as_str(),
            retry_after_ms: give_up.retry_after.map(millis),
        }
    }
}
