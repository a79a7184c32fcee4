use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    Json,
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use serde::Serialize;

use super::{
    runs::Runs,
    steering::{Answer, Steering},
    tenant,
};

/// What the handler says of itself when it is asked for nothing else.
#[derive(Debug, Serialize)]
struct Run {
    name: String,
    tenant: String,
    run: u64,
}

/// Does what the request's headers say.
pub(super) async fn steered(
    State(runs): State<Runs>,
    Path(name): Path<String>,
    steering: Steering,
    request: Request,
) -> Response {
    let Some(run) = runs.start(&name) else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many names\n").into_response();
    };
    let (head, body) = request.into_parts();
    let body = match steering.answer {
        Answer::Echo => body,
        _ => match drain(body).await {
            Ok(()) => Body::empty(),
            Err(_) => return (StatusCode::BAD_REQUEST, "the body broke off\n").into_response(),
        },
    };
    tokio::time::sleep(steering.delay).await;
    assert!(!steering.panics, "the request asked for a panic");

    let mut response = match steering.answer {
        Answer::Canned(canned) => canned.into_response(),
        Answer::Echo => echo(&head.headers, body),
        Answer::Letters(letters) => Response::new(Body::new(Letters { left: letters })),
        Answer::Run => Json(Run {
            name: name.clone(),
            tenant: String::from_utf8_lossy(tenant::name(&head.headers)).into_owned(),
            run,
        })
        .into_response(),
    };
    if let Some(status) = steering.status {
        set_status(&mut response, status);
    }
    runs.finish(&name);
    response
}

async fn drain(mut body: Body) -> Result<(), axum::Error> {
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}

/// Answers with the request's body, while it arrives.
fn echo(headers: &HeaderMap, body: Body) -> Response {
    let content_type = headers.get(CONTENT_TYPE).cloned();
    let octets = HeaderValue::from_static("application/octet-stream");
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, content_type.unwrap_or(octets));
    response
}

fn set_status(response: &mut Response, status: StatusCode) {
    *response.status_mut() = status;
    let has_body = !status.is_informational()
        && !matches!(
            status,
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
        );
    if !has_body {
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(CONTENT_TYPE);
        response.headers_mut().remove(CONTENT_LENGTH);
    }
}

/// So many times the letter `a`, of known length, in frames of 64 KiB.
#[derive(Debug)]
struct Letters {
    left: u64,
}

impl Letters {
    const FRAME: [u8; 64 * 1024] = [b'a'; 64 * 1024];
}

impl http_body::Body for Letters {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static FRAME: [u8; 64 * 1024] = Letters::FRAME;

        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let frame = &FRAME[..left.min(FRAME.len())];
        if frame.is_empty() {
            return Poll::Ready(None);
        }
        self.left -= frame.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(frame)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
