//! A server that answers from a script and writes down what it was sent, and when.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use steadfast_core::{
    Body, BoxError, ReplayBody,
    facts::{CallReport, RetryReport, Stopped},
};
use steadfast_headers::{IDEMPOTENCY_KEY, IdempotencyKey};
use steadfast_retry::{ClassifyError, GiveUp, RateLimitAwareRetry, RateLimitAwareRetryLayer};
use steadfast_testing::{BodyMeter, ChunkedBody, ProbeHandle, ServiceProbe};
use tokio::time::Instant;
use tower::{Layer as _, ServiceExt as _};

/// The error of the network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lost {
    Cut,
    Reset,
}

pub(crate) type ResponseBody = ChunkedBody<Lost>;
pub(crate) type Sent = ReplayBody<Full<Bytes>>;
pub(crate) type Probe = ServiceProbe<Sent, ResponseBody, Lost>;
pub(crate) type Answered = Result<Response<Body<ResponseBody>>, Lost>;

/// What the server does with one request.
#[derive(Debug)]
pub(crate) struct Answer {
    delay: Duration,
    result: Result<Response<ResponseBody>, Lost>,
}

pub(crate) fn answer(status: u16) -> Answer {
    let mut response = Response::new(ChunkedBody::new([format!("this is {status}")]));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    Answer {
        delay: Duration::ZERO,
        result: Ok(response),
    }
}

pub(crate) fn lost() -> Answer {
    Answer {
        delay: Duration::ZERO,
        result: Err(Lost::Reset),
    }
}

/// Longer than any test waits.
pub(crate) fn hang() -> Answer {
    answer(200).after(Duration::from_secs(24 * 60 * 60))
}

impl Answer {
    pub(crate) fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        let value = HeaderValue::from_bytes(value.as_ref()).unwrap();
        let headers = self.response().headers_mut();
        headers.append(HeaderName::from_static(name), value);
        self
    }

    pub(crate) fn retry_after(self, value: impl ToString + Copy) -> Self {
        self.header("retry-after", value.to_string())
    }

    pub(crate) fn body(mut self, body: ResponseBody) -> Self {
        *self.response().body_mut() = body;
        self
    }

    pub(crate) fn extension<T: Clone + Send + Sync + 'static>(mut self, extension: T) -> Self {
        self.response().extensions_mut().insert(extension);
        self
    }

    pub(crate) const fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(crate) fn meter(&self) -> BodyMeter {
        self.result.as_ref().unwrap().body().meter()
    }

    fn response(&mut self) -> &mut Response<ResponseBody> {
        self.result.as_mut().unwrap()
    }
}

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Duration,
    pub(crate) headers: HeaderMap,
    pub(crate) extensions: Extensions,
    pub(crate) body: Result<Bytes, String>,
}

#[derive(Clone)]
pub(crate) struct Server {
    started: Instant,
    seen: Arc<Mutex<Vec<Seen>>>,
    probe: Probe,
}

impl Server {
    /// Gives the n-th request the n-th answer. A request for which none is left panics.
    pub(crate) fn script(answers: impl IntoIterator<Item = Answer>) -> Self {
        let started = Instant::now();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let answers = Mutex::new(answers.into_iter().collect::<VecDeque<_>>());
        let record = Arc::clone(&seen);
        let probe = ServiceProbe::new(move |request: Request<Sent>| {
            let at = started.elapsed();
            let next = answers.lock().unwrap().pop_front();
            let answer = next.expect("a request more than there are answers");
            let record = Arc::clone(&record);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.map(|body| body.to_bytes());
                record.lock().unwrap().push(Seen {
                    at,
                    headers: head.headers,
                    extensions: head.extensions,
                    body: body.map_err(|error: BoxError| error.to_string()),
                });
                tokio::time::sleep(answer.delay).await;
                answer.result
            }
        });
        Self {
            started,
            seen,
            probe,
        }
    }

    pub(crate) fn client(&self) -> Probe {
        self.probe.clone()
    }

    pub(crate) fn probe(&self) -> ProbeHandle {
        self.probe.handle()
    }

    pub(crate) fn service<C>(
        &self,
        layer: &RateLimitAwareRetryLayer<C>,
    ) -> RateLimitAwareRetry<Probe, C>
    where
        C: Clone,
    {
        layer.layer(self.probe.clone())
    }

    /// Sends `request` through `layer` to its end.
    pub(crate) async fn call<C>(
        &self,
        layer: RateLimitAwareRetryLayer<C>,
        request: Request<Full<Bytes>>,
    ) -> Call
    where
        C: ClassifyError<Lost> + Clone,
    {
        let report = CallReport::new();
        let (mut head, body) = request.into_parts();
        head.extensions.insert(report.clone());
        let request = Request::from_parts(head, body);
        let result = self.service(&layer).oneshot(request).await;
        self.probe.handle().assert_quiescent();
        Call {
            result,
            report: report.snapshot(),
            took: self.started.elapsed(),
            seen: self.seen(),
        }
    }

    /// Since the server began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// A call that came to its end.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) result: Answered,
    pub(crate) report: RetryReport,
    pub(crate) took: Duration,
    pub(crate) seen: Vec<Seen>,
}

impl Call {
    /// When each request was sent.
    pub(crate) fn times(&self) -> Vec<Duration> {
        self.seen.iter().map(|seen| seen.at).collect()
    }

    pub(crate) fn status(&self) -> u16 {
        self.result.as_ref().unwrap().status().as_u16()
    }

    pub(crate) const fn stopped(&self) -> Option<Stopped> {
        self.report.stopped
    }

    /// Status, requests sent, and why it stopped.
    pub(crate) fn summary(&self) -> (u16, usize, Option<Stopped>) {
        (self.status(), self.seen.len(), self.stopped())
    }

    pub(crate) async fn text(self) -> String {
        let bytes = self.result.unwrap().into_body().collect().await.unwrap();
        String::from_utf8(bytes.to_bytes().into()).unwrap()
    }
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn request(method: Method, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body.into()));
    *request.method_mut() = method;
    *request.uri_mut() = "https://user@api.example:8443/v1/emails?token=s3cret"
        .parse()
        .unwrap();
    request
}

pub(crate) fn get() -> Request<Full<Bytes>> {
    request(Method::GET, "")
}

pub(crate) fn post() -> Request<Full<Bytes>> {
    request(Method::POST, "body")
}

/// A POST with an idempotency key.
pub(crate) fn keyed() -> Request<Full<Bytes>> {
    let mut request = post();
    let key = IdempotencyKey::uuid_v4().to_header_value();
    request.headers_mut().insert(IDEMPOTENCY_KEY, key);
    request
}

/// What `on_give_up` was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    events: Arc<Mutex<Vec<Event>>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) method: Method,
    pub(crate) host: String,
    pub(crate) status: Option<u16>,
    pub(crate) attempts: u32,
    pub(crate) reason: Stopped,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) calls: u64,
}

impl Events {
    pub(crate) fn listener(&self) -> impl Fn(&GiveUp<'_>) + Send + Sync + 'static {
        let events = Arc::clone(&self.events);
        move |give_up| {
            events.lock().unwrap().push(Event {
                method: give_up.method.clone(),
                host: give_up.host.to_owned(),
                status: give_up.status.map(|status| status.as_u16()),
                attempts: give_up.attempts,
                reason: give_up.reason,
                retry_after: give_up.retry_after,
                calls: give_up.calls,
            });
        }
    }

    pub(crate) fn all(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }
}

/// The default layer, listening to every event.
pub(crate) fn listening(events: &Events) -> RateLimitAwareRetryLayer {
    RateLimitAwareRetryLayer::new()
        .coalesce(Duration::ZERO)
        .on_give_up(events.listener())
}
