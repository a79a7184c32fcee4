use bytes::{Bytes, BytesMut};
use http::{Extensions, HeaderMap, Response};
use http_body_util::BodyExt as _;
use serde_json::Value;
use steadfast_core::{Body, facts::Replayed};
use steadfast_idempotency::Rejection;

use super::Content;

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) extensions: Extensions,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
    /// How the body ended, if not well.
    pub(crate) error: Option<&'static str>,
}

/// What a refusal says about sending the same request again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Retry {
    /// In so many seconds.
    After(&'static str),
    /// Whenever it is whole.
    Any,
    No,
}

impl Reply {
    pub(crate) async fn read(response: Response<Body<Content>>) -> Self {
        let (head, mut body) = response.into_parts();
        let mut reply = Self {
            status: head.status.as_u16(),
            headers: head.headers,
            extensions: head.extensions,
            body: Bytes::new(),
            trailers: None,
            error: None,
        };
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(data)) => read.extend_from_slice(&data),
                Ok(Err(frame)) => reply.trailers = frame.into_trailers().ok(),
                Err(error) => reply.error = Some(error),
            }
        }
        reply.body = read.freeze();
        reply
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        Some(self.headers.get(name)?.to_str().unwrap())
    }

    pub(crate) fn rejection(&self) -> Option<Rejection> {
        self.extensions.get().copied()
    }

    /// Whether it is a replay, of which header and extension must not disagree.
    pub(crate) fn is_replay(&self) -> bool {
        let marked = self.header("idempotent-replayed") == Some("1");
        let known = self.extensions.get() == Some(&Replayed(true));
        assert_eq!(marked, known, "{self:?}");
        marked
    }

    /// The handler's own answer.
    #[track_caller]
    pub(crate) fn assert_first(&self, status: u16, body: &str) {
        assert_eq!((self.status, &self.body[..]), (status, body.as_bytes()));
        assert!(!self.headers.contains_key("idempotent-replayed"));
        assert!(!self.is_replay());
        assert_eq!(self.rejection(), None);
        assert_eq!(self.error, None);
    }

    /// The stored answer.
    #[track_caller]
    pub(crate) fn assert_replay(&self, status: u16, body: &str) {
        assert_eq!((self.status, &self.body[..]), (status, body.as_bytes()));
        assert!(self.is_replay(), "{self:?}");
        assert_eq!(self.header("cache-control"), Some("no-store"));
        assert_eq!(self.rejection(), None);
        assert_eq!(self.error, None);
    }

    /// A refusal, with everything a client may key on. Its members are returned.
    #[track_caller]
    pub(crate) fn assert_refusal(
        &self,
        status: u16,
        code: &str,
        retry: Retry,
        rejection: Rejection,
    ) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.rejection(), Some(rejection));
        assert_eq!(rejection.code(), code);
        assert!(!self.is_replay());
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(self.header("cache-control"), Some("no-store"));
        let wait = match retry {
            Retry::After(seconds) => Some(seconds),
            Retry::Any | Retry::No => None,
        };
        assert_eq!(self.header("retry-after"), wait);

        let problem: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["code"], code);
        assert_eq!(problem["retryable"], retry != Retry::No);
        let kind = problem["type"].as_str().unwrap();
        assert!(kind.starts_with("https://"), "{kind}");
        assert!(kind.ends_with(&code.replace('_', "-")), "{kind}");
        for member in ["title", "detail"] {
            assert!(!problem[member].as_str().unwrap().is_empty(), "{member}");
        }
        problem
    }

    #[track_caller]
    pub(crate) fn assert_in_progress(&self) {
        self.assert_refusal(
            409,
            "idempotency_in_progress",
            Retry::After("1"),
            Rejection::InProgress,
        );
    }

    #[track_caller]
    pub(crate) fn assert_reuse(&self) {
        self.assert_refusal(422, "idempotency_key_reuse", Retry::No, Rejection::KeyReuse);
    }

    #[track_caller]
    pub(crate) fn assert_unknown(&self) {
        self.assert_refusal(
            409,
            "idempotency_outcome_unknown",
            Retry::No,
            Rejection::OutcomeUnknown,
        );
    }

    #[track_caller]
    pub(crate) fn assert_unavailable(&self) {
        self.assert_refusal(
            503,
            "idempotency_store_unavailable",
            Retry::After("1"),
            Rejection::StoreUnavailable,
        );
    }

    /// The answer is not there any more, and why.
    #[track_caller]
    pub(crate) fn assert_gone(&self, original_status: u16, reason: &str) {
        let Some(rejection @ Rejection::ResultUnavailable(tombstone)) = self.rejection() else {
            panic!("not for want of an answer: {self:?}");
        };
        let problem =
            self.assert_refusal(409, "idempotency_result_unavailable", Retry::No, rejection);
        assert_eq!(problem["original_status"], original_status);
        assert_eq!(problem["reason"], reason);
        assert_eq!(tombstone.status, original_status);
        assert_eq!(tombstone.reason.as_str(), reason);
    }
}
