use std::{convert::Infallible, hint::black_box, pin::pin};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body::Body;
use http_body_util::BodyExt as _;

/// The body of each request that has one, and of each response.
pub(crate) const CONTENT: &[u8; 200] = br#"{"order":"o-4192","customer":"c-77120","currency":"EUR","total":129950,"lines":[{"sku":"kettle-1.7","quantity":2,"price":49975},{"sku":"tea-green","quantity":10,"price":3000}],"note":"leave at doors"}"#;

/// Names that differ, as long as those clients make.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(u64);

impl Keys {
    pub(crate) fn next(&mut self) -> HeaderValue {
        self.0 += 1;
        key(self.0)
    }
}

/// The key with this number, as a server reads it: a part of what came off the wire.
pub(crate) fn key(number: u64) -> HeaderValue {
    let line = Bytes::from(format!(
        "idempotency-key: 6f1c9c1e-2b7d-4f7a-9d35-{number:012x}"
    ));
    let value = line.slice("idempotency-key: ".len()..);
    HeaderValue::from_maybe_shared(value).expect("hexadecimal digits and hyphens")
}

/// A request with the headers that every client sends.
pub(crate) fn request<B>(method: Method, body: B) -> Request<B> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = http::Uri::from_static("http://api.example/v1/orders");
    let headers = request.headers_mut();
    headers.insert(header::HOST, HeaderValue::from_static("api.example"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    // The session that axum-idempotent keeps its records in. Elsewhere it is one header more.
    headers.insert(
        header::COOKIE,
        HeaderValue::from_static("session=AAECAwQFBgcICQoLDA0ODw"),
    );
    request
}

/// A POST of the content.
pub(crate) fn post<B: From<Bytes>>() -> Request<B> {
    let mut request = request(Method::POST, B::from(Bytes::from_static(CONTENT)));
    let headers = request.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("200"));
    request
}

/// The same with a key.
pub(crate) fn post_with_key<B: From<Bytes>>(key: HeaderValue) -> Request<B> {
    let mut request = post();
    request
        .headers_mut()
        .insert(steadfast::headers::IDEMPOTENCY_KEY, key);
    request
}

/// The handler of every stack: reads the request and answers.
pub(crate) async fn handle<B, ResB>(request: Request<B>) -> Result<Response<ResB>, Infallible>
where
    B: Body<Data = Bytes>,
    ResB: From<Bytes>,
{
    let mut body = pin!(request.into_body());
    while let Some(Ok(frame)) = body.frame().await {
        black_box(frame.data_ref());
    }
    let mut response = Response::new(ResB::from(Bytes::from_static(CONTENT)));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    Ok(response)
}
