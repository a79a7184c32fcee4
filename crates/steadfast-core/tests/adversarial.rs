//! Attempts to break the bodies: attempts that break off anywhere, frames of nothing.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Full, StreamBody};
use proptest::prelude::*;
use steadfast_core::{Capped, ReplayBody, read_capped};
use tokio_test::{assert_pending, task};

/// A body of empty frames, and of one byte at the end.
#[derive(Debug)]
struct Empties(u32);

impl http_body::Body for Empties {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0 = match self.0.checked_sub(1) {
            Some(left) => left,
            None => return Poll::Ready(None),
        };
        let data: &[u8] = if self.0 == 0 { b"x" } else { b"" };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(data)))))
    }
}

#[tokio::test]
async fn reading_frames_of_nothing_leaves_others_their_turn() {
    let mut reading = task::spawn(read_capped(Empties(10_000), 16));
    assert_pending!(reading.poll());
    assert!(reading.is_woken());
    let Capped::Complete { bytes, .. } = reading.into_inner().await else {
        panic!("a byte is under the cap");
    };
    assert_eq!(bytes, "x");
}

#[tokio::test]
async fn c4_an_attempt_that_begins_breaks_off_those_that_were_not_read_yet() {
    let body = ReplayBody::new(Full::new(Bytes::from("abc")), 3);
    let (older, mut newer) = (body.clone(), body.clone());
    assert!(newer.begin());
    for old in [older, body] {
        let error = old.collect().await.unwrap_err();
        assert_eq!(error.to_string(), "a newer attempt sends this request body");
    }
    let mut next = newer.clone();
    assert_eq!(newer.collect().await.unwrap().to_bytes(), "abc");
    assert!(next.begin());
    assert_eq!(next.collect().await.unwrap().to_bytes(), "abc");
}

#[tokio::test]
async fn c4_a_body_that_is_sent_once_cannot_begin_again() {
    let once = ReplayBody::once(Full::new(Bytes::from("abc")));
    assert!(!once.clone().begin());
    assert_eq!(once.collect().await.unwrap().to_bytes(), "abc");
    assert!(ReplayBody::new(Full::<Bytes>::default(), 0).begin());
}

proptest! {
    #[test]
    fn c4_wherever_attempts_break_off_each_sends_the_same_bytes(
        sizes in prop::collection::vec(0_usize..1_500, 0..12),
        breaks in prop::collection::vec(0_usize..14, 0..5),
        has_trailers in any::<bool>(),
    ) {
        let mut whole = Vec::new();
        let mut frames = Vec::new();
        for (size, byte) in sizes.iter().zip(0_u8..) {
            let data = vec![byte; *size];
            whole.extend_from_slice(&data);
            frames.push(Ok::<_, Infallible>(Frame::data(Bytes::from(data))));
        }
        let trailers = HeaderMap::from_iter([(http::header::ETAG, "1".parse().unwrap())]);
        if has_trailers {
            frames.push(Ok(Frame::trailers(trailers.clone())));
        }
        let body = ReplayBody::new(StreamBody::new(stream::iter(frames)), whole.len());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async move {
            let mut next = body;
            for frames in breaks {
                let mut attempt = next.clone();
                prop_assert!(attempt.begin());
                next = attempt.clone();
                let mut read = Vec::new();
                for _ in 0..frames {
                    let Some(frame) = attempt.frame().await else {
                        break;
                    };
                    if let Ok(data) = frame.unwrap().into_data() {
                        read.extend_from_slice(&data);
                    }
                }
                prop_assert_eq!(&read[..], &whole[..read.len()]);
                prop_assert!(next.is_replayable());
            }
            prop_assert!(next.begin());
            prop_assert!(next.size_hint().lower() <= whole.len() as u64);
            let sent = next.collect().await.unwrap();
            prop_assert_eq!(sent.trailers(), has_trailers.then_some(&trailers));
            prop_assert_eq!(sent.to_bytes(), whole);
            Ok(())
        })?;
    }
}
