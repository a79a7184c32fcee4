use bytes::Bytes;
use http::{Request, Response, request};

use super::Content;

/// `POST /orders`, to be finished by the test.
pub(crate) fn request() -> request::Builder {
    Request::post("/orders")
}

/// `POST /orders` with a key.
pub(crate) fn post(key: &str, body: &'static str) -> Request<Content> {
    request()
        .header("idempotency-key", key)
        .body(Content::new([body]).exact())
        .unwrap()
}

/// A whole answer.
pub(crate) fn answer(status: u16, body: &'static str) -> Response<Content> {
    text(status, body)
}

/// A whole answer whose body was made at run time.
pub(crate) fn text(status: u16, body: impl Into<Bytes>) -> Response<Content> {
    Response::builder()
        .status(status)
        .body(Content::new([body]).exact())
        .unwrap()
}
