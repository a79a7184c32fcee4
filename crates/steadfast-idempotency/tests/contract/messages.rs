//! What passes through as it is: the response's body, its head, and what is in its extensions.

use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use steadfast_core::Body;
use steadfast_testing::{ChunkedBody, ServiceProbe};
use tower::{Layer as _, ServiceExt as _};

use super::{Content, Probe, keyless, layer, post};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Fact(u8);

fn trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("7"));
    trailers
}

fn answering(answer: fn() -> Response<Content>) -> Probe {
    ServiceProbe::new(move |_request| std::future::ready(Ok(answer())))
}

async fn call(
    request: Request<Content>,
    answer: fn() -> Response<Content>,
) -> Response<Body<Content>> {
    let layer = layer().max_stored_body(8);
    layer
        .layer(answering(answer))
        .oneshot(request)
        .await
        .unwrap()
}

/// A request that is covered, and one that is not.
fn both() -> [Request<Content>; 2] {
    [post(ChunkedBody::new(["one"])), keyless("POST")]
}

#[tokio::test(start_paused = true)]
async fn a_body_keeps_its_size_its_end_and_its_trailers() {
    for request in both() {
        let covered = request.headers().contains_key("idempotency-key");
        let response = call(request, || {
            Response::new(ChunkedBody::new(["ab", "cd"]).exact().trailers(trailers()))
        })
        .await;
        let body = response.into_body();
        assert_eq!(body.size_hint().exact(), Some(4), "covered: {covered}");
        assert!(!body.is_end_stream());
        let body = body.collect().await.unwrap();
        assert_eq!(body.trailers(), Some(&trailers()), "covered: {covered}");
        assert_eq!(body.to_bytes(), "abcd");
    }
    for request in both() {
        let empty = call(request, || Response::new(ChunkedBody::new([""; 0]).exact())).await;
        assert!(empty.body().is_end_stream());
        assert_eq!(empty.body().size_hint().exact(), Some(0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_cap_keeps_its_size_and_its_trailers() {
    let response = call(post(ChunkedBody::new(["one"])), || {
        let body = ChunkedBody::new(["abcd", "efgh", "ijkl"]).exact();
        Response::new(body.trailers(trailers()))
    })
    .await;
    assert_eq!(response.body().size_hint().exact(), Some(12));
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers(), Some(&trailers()));
    assert_eq!(body.to_bytes(), "abcdefghijkl");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_covered_is_not_read_ahead() {
    for method in ["GET", "POST"] {
        let response = call(keyless(method), || {
            Response::new(ChunkedBody::new(["a"]).stall())
        })
        .await;
        let (_, mut body) = response.into_parts();
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            "a"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_extensions_of_an_answer_survive_and_so_does_its_version() {
    let answers: [fn() -> Response<Content>; 4] = [
        || Response::new(ChunkedBody::new(["done"])),
        || Response::new(ChunkedBody::new(["too long to be stored"])),
        || {
            let head = Response::builder().header("content-type", "text/event-stream");
            head.body(ChunkedBody::new(["event"])).unwrap()
        },
        || {
            let head = Response::builder().status(500);
            head.body(ChunkedBody::new(["no"])).unwrap()
        },
    ];
    for answer in answers {
        for request in both() {
            let probe: Probe = ServiceProbe::new(move |_request| {
                let mut response = answer();
                response.extensions_mut().insert(Fact(7));
                *response.version_mut() = http::Version::HTTP_2;
                std::future::ready(Ok(response))
            });
            let service = layer().max_stored_body(8).layer(probe);
            let response = service.oneshot(request).await.unwrap();
            assert_eq!(response.extensions().get(), Some(&Fact(7)));
            assert_eq!(response.version(), http::Version::HTTP_2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_service_is_the_callers() {
    for request in both() {
        let probe: Probe = ServiceProbe::new(|_request| std::future::ready(Err("refused")));
        let error = layer().layer(probe).oneshot(request).await.unwrap_err();
        assert_eq!(error, "refused");
    }
}
