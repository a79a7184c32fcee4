use std::{borrow::Cow, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value};
use steadfast_headers::RetryAfter;

use crate::Body;

/// Why a layer answered itself: the members of a problem details object (RFC 9457 §3).
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: Option<Cow<'static, str>>,
    retryable: bool,
    retry_after: Option<Duration>,
    members: Vec<(&'static str, Value)>,
}

impl Problem {
    /// A problem with a stable machine-readable `code` and a one-line `title`. Not retryable, without detail.
    #[must_use]
    pub const fn new(status: StatusCode, code: &'static str, title: &'static str) -> Self {
        Self {
            status,
            code,
            title,
            detail: None,
            retryable: false,
            retry_after: None,
            members: Vec::new(),
        }
    }

    /// Explains this occurrence. Default: none.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Says that the same request may be sent again. Default: it may not.
    #[must_use]
    pub const fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Sends `Retry-After`: whole seconds, rounded up, at least one. Default: none.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait.max(Duration::from_secs(1)));
        self
    }

    /// Adds an extension member (RFC 9457 §3.2).
    #[must_use]
    pub fn member(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.members.push((name, value.into()));
        self
    }

    /// The status of the answer.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The machine-readable code, which clients key on.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// The one-line title.
    #[must_use]
    pub const fn title(&self) -> &'static str {
        self.title
    }

    /// The explanation of this occurrence.
    #[must_use]
    pub fn detail_text(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Whether the same request may be sent again.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Answers with this problem: the writer makes the body; the headers that clients and caches rely on are set here,
    /// whatever the writer did.
    pub fn into_response<B: http_body::Body>(self, make: &dyn MakeRejection) -> Response<Body<B>> {
        let mut response = make.make_rejection(&self).map(Body::full);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(wait) = self.retry_after {
            headers.insert(
                header::RETRY_AFTER,
                RetryAfter::from_wait(wait).to_header_value(),
            );
        }
        response
    }
}

/// Writes the answers that a layer gives itself.
///
/// Status, `Cache-Control` and `Retry-After` are set by the layer afterwards, and the typed reason is in the response's
/// extensions whatever the body looks like.
pub trait MakeRejection: Send + Sync + 'static {
    /// Makes the response to this problem.
    fn make_rejection(&self, problem: &Problem) -> Response<Bytes>;
}

impl<F> MakeRejection for F
where
    F: Fn(&Problem) -> Response<Bytes> + Send + Sync + 'static,
{
    fn make_rejection(&self, problem: &Problem) -> Response<Bytes> {
        self(problem)
    }
}

impl MakeRejection for Arc<dyn MakeRejection> {
    fn make_rejection(&self, problem: &Problem) -> Response<Bytes> {
        (**self).make_rejection(problem)
    }
}

/// Writes `application/problem+json` (RFC 9457). The default everywhere.
#[derive(Clone, Debug)]
pub struct ProblemJson {
    base: Cow<'static, str>,
    docs: Option<HeaderValue>,
}

impl ProblemJson {
    /// Sets what `type` starts with; the problem's code follows, with hyphens.
    /// Default: `https://docs.rs/steadfast/latest/steadfast/problems/#`.
    #[must_use]
    pub fn type_base(mut self, base: impl Into<Cow<'static, str>>) -> Self {
        self.base = base.into();
        self
    }

    /// Sends `Link: <docs>; rel="describedby"`. Default: no link.
    #[must_use]
    pub fn described_by(mut self, docs: &http::Uri) -> Self {
        self.docs = HeaderValue::try_from(format!("<{docs}>; rel=\"describedby\"")).ok();
        self
    }
}

impl Default for ProblemJson {
    fn default() -> Self {
        Self {
            base: Cow::Borrowed("https://docs.rs/steadfast/latest/steadfast/problems/#"),
            docs: None,
        }
    }
}

impl MakeRejection for ProblemJson {
    fn make_rejection(&self, problem: &Problem) -> Response<Bytes> {
        let kind = format!("{}{}", self.base, problem.code.replace('_', "-"));
        let mut object = Map::new();
        object.insert("type".into(), kind.into());
        object.insert("title".into(), problem.title.into());
        object.insert("status".into(), problem.status.as_u16().into());
        object.insert("code".into(), problem.code.into());
        object.insert("retryable".into(), problem.retryable.into());
        if let Some(detail) = problem.detail_text() {
            object.insert("detail".into(), detail.into());
        }
        for (name, value) in &problem.members {
            object.insert((*name).into(), value.clone());
        }
        let mut response = json(problem.status, object, "application/problem+json");
        if let Some(docs) = &self.docs {
            response.headers_mut().insert(header::LINK, docs.clone());
        }
        response
    }
}

/// Writes `{"error":{"code":…,"message":…}}`, the envelope many APIs use.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ErrorEnvelope;

impl MakeRejection for ErrorEnvelope {
    fn make_rejection(&self, problem: &Problem) -> Response<Bytes> {
        let mut error = Map::new();
        error.insert("code".into(), problem.code.into());
        let message = problem.detail_text().unwrap_or(problem.title);
        error.insert("message".into(), message.into());
        for (name, value) in &problem.members {
            error.insert((*name).into(), value.clone());
        }
        json(
            problem.status,
            Map::from_iter([("error".into(), error.into())]),
            "application/json",
        )
    }
}

fn json(
    status: StatusCode,
    object: Map<String, Value>,
    content_type: &'static str,
) -> Response<Bytes> {
    let mut response = Response::new(Value::Object(object).to_string().into());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};
    use serde_json::json;

    use super::*;

    fn reuse() -> Problem {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "idempotency_key_reuse",
            "Idempotency-Key is already used",
        )
        .detail("This key was used with a different request.")
    }

    #[test]
    fn i09_a_problem_has_the_members_clients_key_on() {
        let response = ProblemJson::default()
            .type_base("https://api.example/problems/")
            .make_rejection(&reuse().member("original_status", 201));
        assert_eq!(
            response.headers()["content-type"],
            "application/problem+json"
        );
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(
            body,
            json!({
                "type": "https://api.example/problems/idempotency-key-reuse",
                "title": "Idempotency-Key is already used",
                "status": 422,
                "detail": "This key was used with a different request.",
                "code": "idempotency_key_reuse",
                "retryable": false,
                "original_status": 201,
            })
        );
    }

    #[test]
    fn the_envelope_has_code_and_message() {
        let response = ErrorEnvelope.make_rejection(&reuse());
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(
            body,
            json!({"error": {
                "code": "idempotency_key_reuse",
                "message": "This key was used with a different request.",
            }})
        );
    }

    #[tokio::test]
    async fn a_writer_cannot_lose_status_caching_or_the_wait() {
        let write = |_: &Problem| Response::new(Bytes::from_static(b"no"));
        let response = reuse()
            .retry_after(Duration::from_millis(1_200))
            .into_response::<Full<Bytes>>(&write);
        assert_eq!(response.status(), 422);
        assert_eq!(response.headers()["cache-control"], "no-store");
        assert_eq!(response.headers()["retry-after"], "2");
        assert_eq!(
            response.into_body().collect().await.unwrap().to_bytes(),
            "no"
        );
    }

    #[test]
    fn a_wait_of_nothing_is_a_second() {
        let response = reuse()
            .retry_after(Duration::ZERO)
            .into_response::<Full<Bytes>>(&ErrorEnvelope);
        assert_eq!(response.headers()["retry-after"], "1");
    }

    #[test]
    fn the_documentation_is_linked() {
        let make = ProblemJson::default()
            .described_by(&http::Uri::from_static("https://api.example/docs"));
        let response = make.make_rejection(&reuse());
        assert_eq!(
            response.headers()["link"],
            "<https://api.example/docs>; rel=\"describedby\""
        );
    }
}
