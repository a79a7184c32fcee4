//! What a request costs that passes unverified: no allocation over the bare call.

use std::{
    convert::Infallible,
    future::{Future, Ready, poll_fn, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use steadfast_core::Body;
use steadfast_signature::{HmacScheme, KeyRing, SignatureVerifyLayer};
use tower::{Layer as _, Service, service_fn};

fn now<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it is there at once"),
    }
}

/// How many allocations one call of a readied service takes, and its status.
fn allocations<S, B>(service: &mut S, request: Request<Empty<Bytes>>) -> (u64, u16)
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>, Error = Infallible>,
{
    let mut request = Some(request);
    let mut status = 0;
    let info = allocation_counter::measure(|| {
        let Ok(()) = now(poll_fn(|cx| service.poll_ready(cx)));
        let Ok(response) = now(service.call(request.take().expect("measured once")));
        status = response.status().as_u16();
    });
    (info.count_total, status)
}

fn handle<B>(_request: Request<B>) -> Ready<Result<Response<Empty<Bytes>>, Infallible>> {
    ready(Ok(Response::new(Empty::new())))
}

fn layer() -> SignatureVerifyLayer<HmacScheme, KeyRing> {
    let scheme = HmacScheme::github();
    let keys = KeyRing::single(scheme.secret("It's a Secret to Everybody").unwrap());
    SignatureVerifyLayer::new(scheme, keys)
}

fn request(path: &str) -> Request<Empty<Bytes>> {
    Request::get(path).body(Empty::new()).unwrap()
}

#[test]
fn a_request_that_passes_unverified_costs_no_allocation() {
    let layer = layer().skip_when(|head| head.uri.path() == "/open");
    let bare = allocations(&mut service_fn(handle), request("/open"));
    let inner = service_fn(handle::<Body<Empty<Bytes>>>);
    let layered = allocations(&mut layer.layer(inner), request("/open"));
    assert_eq!((bare, layered), ((0, 200), (0, 200)));
}

#[test]
fn a_refused_request_is_counted() {
    let inner = service_fn(handle::<Body<Empty<Bytes>>>);
    let (count, status) = allocations(&mut layer().layer(inner), request("/hook"));
    assert_eq!(status, 401);
    assert!(count > 0);
}
