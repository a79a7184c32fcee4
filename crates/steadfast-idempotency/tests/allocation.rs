//! What a request costs that the layer does not concern: no allocation over the bare call.

use std::{
    convert::Infallible,
    future::{Ready, poll_fn, ready},
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::Empty;
use steadfast_idempotency::{IdempotencyLayer, MemoryStore, Scope};
use tower::{Layer as _, Service, service_fn};

/// How many allocations one call of a readied service takes.
fn allocations<S, B>(service: &mut S, request: Request<Empty<Bytes>>) -> u64
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>, Error = Infallible>,
{
    let mut request = Some(request);
    let info = allocation_counter::measure(|| {
        let ready = poll_fn(|cx| service.poll_ready(cx));
        let Some(Ok(())) = ready.now_or_never() else {
            panic!("it is always ready");
        };
        let response = service.call(request.take().expect("measured once"));
        let Some(Ok(response)) = response.now_or_never() else {
            panic!("it answers at once");
        };
        assert_eq!(response.status(), 200);
    });
    info.count_total
}

fn handle<B>(_request: Request<B>) -> Ready<Result<Response<Empty<Bytes>>, Infallible>> {
    ready(Ok(Response::new(Empty::new())))
}

fn get() -> Request<Empty<Bytes>> {
    let request = Request::get("/orders").header("idempotency-key", "k1");
    request.body(Empty::new()).unwrap()
}

fn post() -> Request<Empty<Bytes>> {
    let request = Request::post("/orders").header("content-type", "text/plain");
    request.body(Empty::new()).unwrap()
}

#[test]
fn a_request_that_is_not_covered_costs_no_allocation() {
    let layer = IdempotencyLayer::new(MemoryStore::new(10, 1024), Scope::global());
    for request in [get, post] {
        let bare = allocations(&mut service_fn(handle), request());
        let layered = allocations(&mut layer.layer(service_fn(handle)), request());
        assert_eq!((bare, layered), (0, 0));
    }
}

#[test]
fn a_covered_request_is_counted() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let _guard = runtime.enter();
    let layer = IdempotencyLayer::new(MemoryStore::new(10, 1024), Scope::global());
    let mut request = post();
    let key = http::HeaderValue::from_static("k1");
    request.headers_mut().insert("idempotency-key", key);
    let covered = allocations(&mut layer.layer(service_fn(handle)), request);
    assert!(covered > 0, "a measure that counts nothing proves nothing");
}
