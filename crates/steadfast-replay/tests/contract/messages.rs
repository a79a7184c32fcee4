//! What becomes of requests and responses on their way through.

use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use steadfast_core::facts::Verified;
use steadfast_testing::{ChunkedBody, ServiceProbe};
use tower::{Layer as _, ServiceExt as _};

use super::{Content, Probe, events, one_shot, store, verified};

/// Answers with what it got, and checks that all of it arrived.
fn mirror() -> Probe {
    ServiceProbe::new(|request: Request<Content>| async {
        let (head, body) = request.into_parts();
        assert_eq!(head.method, Method::PATCH);
        assert_eq!(head.uri, "/hook?a=%41");
        assert_eq!(head.version, Version::HTTP_2);
        assert_eq!(head.headers.get_all("x-two").iter().count(), 2);
        assert!(head.extensions.get::<Verified>().is_some());
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::MULTI_STATUS;
        *response.version_mut() = Version::HTTP_2;
        response.headers_mut().extend(head.headers);
        response.extensions_mut().insert(7_u8);
        Ok(response)
    })
}

fn request(body: Content) -> Request<Content> {
    Request::patch("/hook?a=%41")
        .version(Version::HTTP_2)
        .header("x-two", "1")
        .header("x-two", "2")
        .extension(verified())
        .body(body)
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn messages_pass_untouched_in_both_modes() {
    for mode in 0..2 {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-sum", http::HeaderValue::from_static("9"));
        let body = ChunkedBody::new(["o", "ne"]).pending().trailers(trailers);
        let meter = body.meter();
        let response = match mode {
            0 => {
                one_shot(store())
                    .layer(mirror())
                    .oneshot(request(body))
                    .await
            }
            _ => events(store()).layer(mirror()).oneshot(request(body)).await,
        };
        let response = response.unwrap();
        assert_eq!(meter.polls(), 0, "the body is the handler's to read");
        assert_eq!(response.status(), 207);
        assert_eq!(response.version(), Version::HTTP_2);
        assert_eq!(response.headers().len(), 2);
        assert_eq!(response.extensions().get(), Some(&7_u8));
        let read = response.into_body().collect().await.unwrap();
        assert_eq!(read.trailers().unwrap()["x-sum"], "9");
        assert_eq!(read.to_bytes(), "one");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_breaks_off_with_its_own_error() {
    for mode in 0..2 {
        let body = ChunkedBody::new(["o"]).error("cut");
        let response = match mode {
            0 => {
                one_shot(store())
                    .layer(mirror())
                    .oneshot(request(body))
                    .await
            }
            _ => events(store()).layer(mirror()).oneshot(request(body)).await,
        };
        let read = response.unwrap().into_body().collect().await;
        assert!(format!("{:?}", read.unwrap_err()).contains("cut"));
    }
}
