//! What a request costs that is skipped: no allocation over the bare call.

use std::{
    convert::Infallible,
    future::{Ready, poll_fn, ready},
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::Empty;
use steadfast_replay::{MemoryStore, ReplayGuardLayer};
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
    let request = Request::get("/orders").header("x-handshake", "1");
    request.body(Empty::new()).unwrap()
}

#[test]
fn a_request_that_is_skipped_costs_no_allocation() {
    let bare = allocations(&mut service_fn(handle), get());
    let one_shot = ReplayGuardLayer::one_shot(MemoryStore::new(10)).skip_when(|_| true);
    let events = ReplayGuardLayer::events(MemoryStore::new(10)).skip_when(|_| true);
    let one_shot = allocations(&mut one_shot.layer(service_fn(handle)), get());
    let events = allocations(&mut events.layer(service_fn(handle)), get());
    assert_eq!((bare, one_shot, events), (0, 0, 0));
}
