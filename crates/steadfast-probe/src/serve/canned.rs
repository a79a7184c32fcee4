use std::{io, iter, str::FromStr, task::Poll, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, future, stream};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_TYPE, LINK, LOCATION,
        SET_COOKIE,
    },
};

/// A canned answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Canned {
    /// Everything that a replay might lose.
    Fidelity,
    /// Bytes that are no text.
    Binary,
    /// 204.
    NoContent,
    /// Three events, a tenth of a second apart.
    Events,
    /// A body that breaks off.
    Broken,
    /// A success that no cache may keep.
    NoStore,
    /// A body of unknown length.
    Chunked,
}

impl FromStr for Canned {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Ok(match name {
            "fidelity" => Self::Fidelity,
            "binary" => Self::Binary,
            "nocontent" => Self::NoContent,
            "sse" => Self::Events,
            "broken" => Self::Broken,
            "nostore" => Self::NoStore,
            "chunked" => Self::Chunked,
            _ => return Err(()),
        })
    }
}

impl IntoResponse for Canned {
    fn into_response(self) -> Response {
        match self {
            Self::Fidelity => fidelity(),
            Self::Binary => of(
                &[(CONTENT_TYPE, b"application/octet-stream")],
                &b"\xff\x00\x80"[..],
            ),
            Self::NoContent => StatusCode::NO_CONTENT.into_response(),
            Self::Events => of(&[(CONTENT_TYPE, b"text/event-stream")], events()),
            Self::Broken => of(&[(CONTENT_TYPE, b"application/octet-stream")], broken()),
            Self::NoStore => created(of(
                &[
                    (CACHE_CONTROL, b"no-store"),
                    (CONTENT_TYPE, b"application/json"),
                ],
                "{\"stored\":false}",
            )),
            Self::Chunked => of(&[(CONTENT_TYPE, b"application/octet-stream")], chunked()),
        }
    }
}

fn fidelity() -> Response {
    /// `{"order":1,"state":"created"}`
    const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\xca\x2f\x4a\x49\x2d\x52\xb2\x32\xd4\x51\
        \x2a\x2e\x49\x2c\x49\x55\xb2\x52\x4a\x2e\x4a\x05\x32\x52\x94\x6a\x01\x5c\xdf\xc7\x7d\x1d\x00\x00\x00";
    const X_NAME: HeaderName = HeaderName::from_static("x-name");

    created(of(
        &[
            (LOCATION, b"/o/1"),
            (LINK, b"</o/1/items>; rel=\"items\""),
            (LINK, b"</o/1/payment>; rel=\"payment\""),
            (
                SET_COOKIE,
                b"session=1; Expires=Wed, 21 Oct 2065 07:28:00 GMT; HttpOnly",
            ),
            (
                CONTENT_DISPOSITION,
                b"attachment; filename=\"order 1, final.json\"",
            ),
            (X_NAME, b"caf\xe9"),
            (CONTENT_TYPE, b"application/json"),
            (CONTENT_ENCODING, b"gzip"),
        ],
        GZIP,
    ))
}

fn of(headers: &[(HeaderName, &'static [u8])], body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    for (name, value) in headers {
        // Every value above is one.
        if let Ok(value) = HeaderValue::from_bytes(value) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

fn created(mut response: Response) -> Response {
    *response.status_mut() = StatusCode::CREATED;
    response
}

fn events() -> Body {
    let events = stream::iter(1..=3).then(|n| async move {
        if n > 1 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok::<_, io::Error>(format!("id: {n}\ndata: {{\"event\":{n}}}\n\n"))
    });
    Body::from_stream(events)
}

fn broken() -> Body {
    let begun = stream::iter([Ok(Bytes::from_static(&[b'a'; 2048]))]);
    let error = stream::once(async {
        // A server writes out what it has once the body is not ready; an error at once would take all of it away.
        let mut was_asked = false;
        future::poll_fn(|cx| {
            if was_asked {
                return Poll::Ready(());
            }
            was_asked = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        Err(io::Error::other("the body breaks off on request"))
    });
    Body::from_stream(begun.chain(error))
}

fn chunked() -> Body {
    const CHUNK: [u8; 16 * 1024] = [b'a'; 16 * 1024];
    const CHUNKS: usize = 300 / 16;
    const REST: usize = 300 * 1024 - CHUNKS * CHUNK.len();
    static BYTES: [u8; CHUNK.len()] = CHUNK;

    let whole = stream::iter(iter::repeat_n(Bytes::from_static(&BYTES), CHUNKS));
    let rest = stream::iter([Bytes::from_static(&BYTES[..REST])]);
    Body::from_stream(whole.chain(rest).map(Ok::<_, io::Error>))
}
