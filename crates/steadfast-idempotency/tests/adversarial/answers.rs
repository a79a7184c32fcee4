//! Answers that handlers should not give.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderValue, Response};
use http_body::{Frame, SizeHint};
use steadfast_core::{Capped, read_capped};

use super::kit::{Api, Content, answer};

/// A body that panics when it is asked, for the first time or the second, how it goes on.
#[derive(Clone, Copy)]
enum Bomb {
    Ended,
    Length,
}

impl http_body::Body for Bomb {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        assert!(!matches!(self, Self::Ended), "the body panicked");
        false
    }

    fn size_hint(&self) -> SizeHint {
        assert!(!matches!(self, Self::Length), "the body panicked");
        SizeHint::default()
    }
}

#[tokio::test(start_paused = true)]
async fn i15_a_body_that_panics_when_it_is_looked_at_belongs_to_a_call_that_was_done() {
    for bomb in [Bomb::Ended, Bomb::Length] {
        let api = Api::new(
            |layer| layer,
            move || async move { Response::new(Content::new(bomb)) },
        );
        let call = AssertUnwindSafe(api.call()).catch_unwind().await;
        call.unwrap_err();
        api.post().await.assert_gone();
        assert_eq!(api.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn i08_an_answer_with_more_values_of_one_header_than_a_map_has_names_is_replayed() {
    const VALUES: usize = 30_000;
    let api = Api::new(
        |layer| layer,
        || async {
            let mut response = answer(201);
            for _ in 0..VALUES {
                let value = HeaderValue::from_static("</a>");
                response.headers_mut().append("link", value);
            }
            response
        },
    );
    assert_eq!(api.post().await.status, 201);
    let replay = api.post().await;
    assert_eq!(replay.status, 201);
    assert!(replay.is_replay());
    assert_eq!(replay.headers.get_all("link").iter().count(), VALUES);
}

#[tokio::test(start_paused = true)]
async fn i15_an_answer_with_more_values_than_a_record_counts_is_remembered_as_done() {
    let api = Api::new(
        |layer| layer,
        || async {
            let mut response = answer(201);
            for _ in 0..70_000 {
                let value = HeaderValue::from_static("</a>");
                response.headers_mut().append("link", value);
            }
            response
        },
    );
    assert_eq!(api.post().await.status, 201);
    api.post().await.assert_gone();
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn i08_a_header_of_a_megabyte_is_replayed() {
    let api = Api::new(
        |layer| layer,
        || async {
            let mut response = answer(201);
            let value = HeaderValue::try_from("a".repeat(1024 * 1024)).unwrap();
            response.headers_mut().insert("x-large", value);
            response
        },
    );
    api.post().await;
    let replay = api.post().await;
    assert!(replay.is_replay());
    assert_eq!(replay.headers["x-large"].len(), 1024 * 1024);
}

#[tokio::test]
async fn frames_of_nothing_neither_count_nor_end_a_body() {
    let frames = ["", "", "ab", "", "cd", ""]
        .map(|data| Ok::<_, Infallible>(Frame::data(Bytes::from(data))));
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
    let Capped::Complete { bytes, trailers } = read_capped(body, 4).await else {
        panic!("four bytes fit into four");
    };
    assert_eq!((&bytes[..], trailers), (&b"abcd"[..], None));
}
