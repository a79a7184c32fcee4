use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;

use crate::{Body, body::poll_bytes};

/// After so many frames other tasks have their turn, and so has a timeout around the reading: frames of nothing never
/// reach a cap.
const FRAMES_PER_POLL: u32 = 256;

/// What [`read_capped`] found.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a body ends, goes on, or fails")]
pub enum Capped<B: http_body::Body> {
    /// The body ended within the cap.
    Complete {
        /// All of its data.
        bytes: Bytes,
        /// Its trailers, if it had any.
        trailers: Option<HeaderMap>,
    },
    /// The body is longer than the cap.
    Over {
        /// What was read: nothing where the body announced its length, else at most one frame more than the cap.
        read: Bytes,
        /// What is left to read.
        rest: Pin<Box<B>>,
    },
    /// The body failed before it ended.
    Failed {
        /// What was read before.
        read: Bytes,
        /// Why it failed.
        error: B::Error,
    },
}

impl<B: http_body::Body> Capped<B> {
    /// Puts the body together again, so that its reader sees what it would have seen without the reading ahead.
    #[must_use]
    pub fn into_body(self) -> Body<B> {
        match self {
            Self::Complete { bytes, trailers } => Body::with_trailers(bytes, trailers),
            Self::Over { read, rest } => Body::prefixed(read, rest),
            Self::Failed { read, error } => Body::failing(read, error),
        }
    }
}

/// Reads a body into memory, at most `cap` bytes of it.
///
/// A body that announces more than `cap` bytes is not read at all. The announced length is never trusted for anything
/// else: memory grows with the bytes that arrive.
///
/// # Cancellation
///
/// Dropping the future drops the body and what was read of it.
pub fn read_capped<B: http_body::Body>(body: B, cap: usize) -> ReadCapped<B> {
    ReadCapped {
        body: (!body.is_end_stream()).then(|| Box::pin(body)),
        read: Read::default(),
        cap,
    }
}

/// Future of [`read_capped`].
#[must_use = "a future does nothing until it is polled"]
pub struct ReadCapped<B> {
    /// `None` for a body that has ended.
    body: Option<Pin<Box<B>>>,
    read: Read,
    cap: usize,
}

impl<B: http_body::Body> Future for ReadCapped<B> {
    type Output = Capped<B>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Capped<B>> {
        let this = &mut *self;
        let mut trailers = None;
        let mut left = FRAMES_PER_POLL;
        while let Some(mut body) = this.body.take() {
            let announced = (this.read.len() as u64).saturating_add(body.size_hint().lower());
            if announced > this.cap as u64 {
                let read = this.read.take();
                return Poll::Ready(Capped::Over { read, rest: body });
            }
            if left == 0 {
                this.body = Some(body);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            left -= 1;
            let Poll::Ready(frame) = poll_bytes(body.as_mut(), cx) else {
                this.body = Some(body);
                return Poll::Pending;
            };
            match frame.map(|frame| frame.map(Frame::into_data)) {
                None => {}
                Some(Err(error)) => {
                    let read = this.read.take();
                    return Poll::Ready(Capped::Failed { read, error });
                }
                Some(Ok(Ok(data))) => {
                    this.read.push(data);
                    if this.read.len() > this.cap || !body.is_end_stream() {
                        this.body = Some(body);
                    }
                }
                Some(Ok(Err(frame))) => trailers = frame.into_trailers().ok(),
            }
        }
        let bytes = this.read.take();
        Poll::Ready(Capped::Complete { bytes, trailers })
    }
}

impl<B> fmt::Debug for ReadCapped<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCapped")
            .field("read", &self.read.len())
            .field("cap", &self.cap)
            .finish_non_exhaustive()
    }
}

/// Joins frames, without a copy while there is only one.
#[derive(Default)]
struct Read {
    first: Bytes,
    joined: BytesMut,
}

impl Read {
    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn push(&mut self, data: Bytes) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        let first = mem::take(&mut self.first);
        self.joined.extend_from_slice(&first);
        self.joined.extend_from_slice(&data);
    }

    fn take(&mut self) -> Bytes {
        if self.joined.is_empty() {
            return mem::take(&mut self.first);
        }
        mem::take(&mut self.joined).freeze()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body_util::{BodyExt as _, Full, StreamBody};

    use super::*;

    type Frames = Vec<Result<Frame<Bytes>, &'static str>>;

    fn frames(frames: Frames) -> impl http_body::Body<Data = Bytes, Error = &'static str> {
        StreamBody::new(stream::iter(frames))
    }

    fn data(chunk: &'static str) -> Result<Frame<Bytes>, &'static str> {
        Ok(Frame::data(Bytes::from_static(chunk.as_bytes())))
    }

    #[tokio::test]
    async fn frames_are_joined_and_trailers_kept() {
        let trailers = HeaderMap::from_iter([(http::header::ETAG, "1".parse().unwrap())]);
        let body = frames(vec![
            data("ab"),
            data("cd"),
            data("e"),
            Ok(Frame::trailers(trailers.clone())),
        ]);
        let Capped::Complete {
            bytes,
            trailers: read,
        } = read_capped(body, 5).await
        else {
            panic!("five bytes fit into five");
        };
        assert_eq!(bytes, "abcde");
        assert_eq!(read, Some(trailers));
    }

    #[tokio::test]
    async fn one_byte_over_the_cap_goes_on_as_a_stream() {
        let body = frames(vec![data("ab"), data("cd"), data("ef")]);
        let capped = read_capped(body, 3).await;
        assert!(matches!(&capped, Capped::Over { read, .. } if read == "abcd"));
        assert_eq!(
            capped.into_body().collect().await.unwrap().to_bytes(),
            "abcdef"
        );
    }

    #[tokio::test]
    async fn an_announced_length_over_the_cap_is_not_read() {
        let capped = read_capped(Full::new(Bytes::from("abcd")), 3).await;
        assert!(matches!(&capped, Capped::Over { read, .. } if read.is_empty()));
        assert_eq!(
            capped.into_body().collect().await.unwrap().to_bytes(),
            "abcd"
        );
    }

    #[tokio::test]
    async fn a_failure_keeps_what_was_read_and_the_error() {
        let body = frames(vec![data("ab"), Err("reset")]);
        let capped = read_capped(body, 10).await;
        assert!(matches!(&capped, Capped::Failed { read, error: "reset" } if read == "ab"));
        assert!(capped.into_body().is_failing());
    }

    #[tokio::test]
    async fn a_single_frame_is_not_copied() {
        let bytes = Bytes::from(vec![1, 2, 3]);
        let body = Full::<Bytes>::new(bytes.clone()).map_err(|never: Infallible| match never {});
        let Capped::Complete { bytes: read, .. } = read_capped(body, 3).await else {
            panic!("it fits");
        };
        assert_eq!(read.as_ptr(), bytes.as_ptr());
    }
}
