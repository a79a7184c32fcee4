//! Tower's contract: readiness, cancellation, error and auto traits.

use std::{convert::Infallible, future::poll_fn, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use steadfast_core::{
    ReplayBody,
    facts::{CallReport, RetryReport, Stopped},
};
use steadfast_retry::{RateLimitAwareRetry, RateLimitAwareRetryLayer};
use steadfast_testing::{
    ChunkedBody, ServiceProbe, assert_error, assert_service_contract, drop_at_every_await,
};
use tower::{Layer as _, ServiceBuilder, ServiceExt as _};
use tower_service::Service as _;

type Sent = ReplayBody<Full<Bytes>>;
type Probe<E = Infallible> = ServiceProbe<Sent, ChunkedBody, E>;

fn response(status: u16) -> Response<ChunkedBody> {
    let body = ChunkedBody::new(["a", "b"]).pending();
    Response::builder().status(status).body(body).unwrap()
}

fn get() -> Request<Full<Bytes>> {
    Request::new(Full::default())
}

/// Fails twice, then answers.
fn probe() -> Probe {
    ServiceProbe::script([503, 503, 200].map(response).map(Ok)).pending_first(2)
}

fn layer() -> RateLimitAwareRetryLayer {
    RateLimitAwareRetryLayer::new()
        .attempt_timeout(Duration::from_secs(5))
        .deadline(Duration::from_secs(50))
        .buffer_response(1024)
}

#[tokio::test(start_paused = true)]
async fn services_and_futures_have_the_auto_traits_and_the_inner_error() {
    let service = layer().layer(probe());
    assert_service_contract::<RateLimitAwareRetry<Probe>, Request<Full<Bytes>>>(&service);
    assert_error::<RateLimitAwareRetry<Probe>, Request<Full<Bytes>>, Infallible>(&service);
}

#[tokio::test(start_paused = true)]
async fn the_readied_instance_is_called_and_each_attempt_readies_again() {
    let probe = probe();
    let handle = probe.handle();
    let mut service = layer().layer(probe);
    poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
    poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
    assert_eq!(
        handle.live_reservations(),
        1,
        "a second poll reserves nothing more"
    );

    let call = service.call(get());
    assert_eq!((handle.live_reservations(), handle.calls()), (0, 1));
    assert_eq!(call.await.unwrap().status(), 200);
    assert_eq!(handle.calls(), 3);
    assert_eq!(handle.unused_reservations(), 0);
    handle.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn a_clone_starts_without_a_reservation() {
    let probe = probe();
    let handle = probe.handle();
    let mut service = layer().layer(probe);
    poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
    let clone = service.clone();
    assert_eq!(handle.live_reservations(), 1);
    drop((service, clone));
    handle.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn r11_dropping_the_future_at_any_await_leaves_nothing_behind() {
    let places = drop_at_every_await(
        async || {
            let probe = probe();
            let handle = probe.handle();
            let report = CallReport::new();
            let mut request = get();
            request.extensions_mut().insert(report.clone());
            (layer().layer(probe).oneshot(request), (handle, report))
        },
        async |(handle, report)| {
            handle.assert_quiescent();
            let calls = handle.calls();
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            assert_eq!(handle.calls(), calls, "nothing is sent after the drop");
            let report = report.snapshot();
            assert_eq!(report.attempts as usize, calls);
            if calls > 0 {
                assert_eq!(report.stopped, Some(Stopped::Cancelled));
            }
        },
    )
    .await;
    assert!(places > 10, "{places}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_held_while_a_call_waits() {
    let inner = ServiceBuilder::new()
        .layer(RateLimitAwareRetryLayer::new())
        .concurrency_limit(1)
        .service(ServiceProbe::<Sent, ChunkedBody, Infallible>::script(
            [503, 200, 200].map(response).map(Ok),
        ));
    let waiting = tokio::spawn(inner.clone().oneshot(get()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let other = inner.oneshot(get());
    let other = tokio::time::timeout(Duration::from_millis(50), other).await;
    let answered = other.expect("the only permit is free").unwrap();
    let report = answered.extensions().get::<RetryReport>().unwrap();
    assert_eq!((answered.status().as_u16(), report.attempts), (200, 1));
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn readiness_errors_are_the_services_own() {
    let dead = Probe::<&str>::script([]).fail_ready(|| "dead");
    let error = layer().layer(dead).oneshot(get()).await.unwrap_err();
    assert_eq!(error, "dead");
}

/// A client that dies between two attempts.
#[derive(Clone)]
struct Dying {
    inner: Probe<&'static str>,
    dead: bool,
}

impl tower_service::Service<Request<Sent>> for Dying {
    type Response = Response<ChunkedBody>;
    type Error = &'static str;
    type Future = <Probe<&'static str> as tower_service::Service<Request<Sent>>>::Future;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), &'static str>> {
        if self.dead {
            return std::task::Poll::Ready(Err("dead"));
        }
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        self.dead = true;
        self.inner.call(request)
    }
}

#[tokio::test(start_paused = true)]
async fn r15_a_client_that_dies_before_a_retry_is_reported_as_it_is() {
    let inner = Dying {
        inner: Probe::script([Ok(response(503))]),
        dead: false,
    };
    let handle = inner.inner.handle();
    let report = CallReport::new();
    let mut request = get();
    request.extensions_mut().insert(report.clone());
    let error = layer().layer(inner).oneshot(request).await.unwrap_err();
    assert_eq!(error, "dead");
    assert_eq!(handle.calls(), 1);
    let report = report.snapshot();
    assert_eq!((report.attempts, report.stopped), (1, None));
    handle.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn status_headers_extensions_and_body_pass_unchanged() {
    let inner = Probe::respond(|request: Request<Sent>| {
        let mut response = response(201);
        *response.version_mut() = request.version();
        response.headers_mut().append("x-a", "1".parse().unwrap());
        response.headers_mut().append("x-a", "2".parse().unwrap());
        response.extensions_mut().insert(7_u8);
        response
    });
    let service = RateLimitAwareRetryLayer::new().layer(inner);
    let mut request = get();
    *request.version_mut() = http::Version::HTTP_2;
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.version()),
        (201, http::Version::HTTP_2)
    );
    let values: Vec<_> = response.headers().get_all("x-a").iter().collect();
    assert_eq!(values, ["1", "2"]);
    assert_eq!(response.extensions().get(), Some(&7_u8));
    assert_eq!(
        response.into_body().collect().await.unwrap().to_bytes(),
        "ab"
    );
}
