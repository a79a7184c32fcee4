//! A body made of given frames.

pub(crate) mod meter;

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use self::meter::BodyMeter;

/// A body that yields given frames, and says how it was treated.
///
/// Unless [`exact`](Self::exact) is called it looks like a chunked message on the wire: neither its size nor its end
/// is known in advance.
///
/// Its [`meter`](Self::meter) outlives it and tells how often it was polled, how many frames were taken, and whether
/// it was read to its end or dropped.
#[derive(Debug)]
#[must_use = "a body does nothing until it is polled"]
pub struct ChunkedBody<E = Infallible> {
    steps: VecDeque<Step<E>>,
    exact: bool,
    pending: bool,
    paused: bool,
    meter: BodyMeter,
}

#[derive(Debug)]
enum Step<E> {
    Data(Bytes),
    Fail(E),
    Stall,
    Trailers(HeaderMap),
}

impl<E> ChunkedBody<E> {
    /// Creates a body that yields `chunks` as data frames, one frame each, empty ones too.
    pub fn new<C>(chunks: impl IntoIterator<Item = C>) -> Self
    where
        C: Into<Bytes>,
    {
        Self {
            steps: chunks
                .into_iter()
                .map(|chunk| Step::Data(chunk.into()))
                .collect(),
            exact: false,
            pending: false,
            paused: false,
            meter: BodyMeter::default(),
        }
    }

    /// Adds a frame of trailers after what was given so far. By default there is none.
    pub fn trailers(mut self, trailers: HeaderMap) -> Self {
        self.steps.push_back(Step::Trailers(trailers));
        self
    }

    /// Ends the body in `error`. By default it ends cleanly.
    ///
    /// Frames added later are never yielded: a body is over once it has failed.
    pub fn error(mut self, error: E) -> Self {
        self.steps.push_back(Step::Fail(error));
        self
    }

    /// Makes the body hang after what was given so far: it stays pending and never wakes its reader.
    ///
    /// By default it does not.
    pub fn stall(mut self) -> Self {
        self.steps.push_back(Step::Stall);
        self
    }

    /// Makes [`size_hint`](Body::size_hint) exact and [`is_end_stream`](Body::is_end_stream) true at the end, as for
    /// a message with `Content-Length`. By default both are unknown.
    pub const fn exact(mut self) -> Self {
        self.exact = true;
        self
    }

    /// Makes the body pending once before each frame and before its end, waking its reader at once. By default every
    /// frame is there when asked for.
    pub const fn pending(mut self) -> Self {
        self.pending = true;
        self
    }

    /// The meter that watches this body.
    #[must_use]
    pub fn meter(&self) -> BodyMeter {
        self.meter.clone()
    }

    fn remaining(&self) -> u64 {
        self.steps
            .iter()
            .map(|step| match step {
                Step::Data(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                Step::Fail(_) | Step::Stall | Step::Trailers(_) => 0,
            })
            .fold(0, u64::saturating_add)
    }
}

impl<E: Unpin> Body for ChunkedBody<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        self.meter.count_poll();
        if self.pending && !self.paused {
            self.paused = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.paused = false;

        let frame = match self.steps.pop_front() {
            Some(Step::Data(bytes)) => Ok(Frame::data(bytes)),
            Some(Step::Trailers(trailers)) => Ok(Frame::trailers(trailers)),
            Some(Step::Fail(error)) => {
                self.steps.clear();
                Err(error)
            }
            Some(Step::Stall) => {
                self.steps.push_front(Step::Stall);
                return Poll::Pending;
            }
            None => {
                self.meter.end();
                return Poll::Ready(None);
            }
        };
        self.meter.count_frame();
        Poll::Ready(Some(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.exact && self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.exact {
            SizeHint::with_exact(self.remaining())
        } else {
            SizeHint::default()
        }
    }
}

impl<E> Drop for ChunkedBody<E> {
    fn drop(&mut self) {
        self.meter.drop_body();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use http_body_util::BodyExt as _;

    use super::*;

    fn trailers() -> HeaderMap {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", http::HeaderValue::from_static("7"));
        trailers
    }

    #[tokio::test]
    async fn frames_come_in_the_order_given() {
        let mut body = ChunkedBody::<Infallible>::new(["ab", "", "c"]).trailers(trailers());
        let meter = body.meter();
        for expected in ["ab", "", "c"] {
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), expected);
        }
        let last = body.frame().await.unwrap().unwrap();
        assert_eq!(last.into_trailers().unwrap(), trailers());
        assert!(!meter.is_ended(), "the end was not asked for yet");
        assert!(body.frame().await.is_none());
        assert!(meter.is_ended());
        assert_eq!((meter.polls(), meter.frames()), (5, 4));
    }

    #[tokio::test]
    async fn an_error_is_the_end() {
        let mut body = ChunkedBody::new(["a"]).error("cut").trailers(trailers());
        assert!(body.frame().await.unwrap().is_ok());
        assert_eq!(body.frame().await.unwrap().unwrap_err(), "cut");
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn the_size_is_unknown_unless_it_is_made_exact() {
        let body = ChunkedBody::<Infallible>::new(["abc"]);
        assert_eq!(body.size_hint().upper(), None);
        let mut body = ChunkedBody::<Infallible>::new(["abc", "de"]).exact();
        assert_eq!(body.size_hint().exact(), Some(5));
        body.frame().await.unwrap().unwrap();
        assert_eq!(body.size_hint().exact(), Some(2));
        assert!(!body.is_end_stream());
        body.frame().await.unwrap().unwrap();
        assert!(body.is_end_stream());
    }

    #[tokio::test]
    async fn a_pending_body_is_pending_before_each_frame_and_wakes() {
        let mut body = ChunkedBody::<Infallible>::new(["a", "b"]).pending();
        let meter = body.meter();
        let mut pending = 0_usize;
        poll_fn(|cx| {
            loop {
                match Pin::new(&mut body).poll_frame(cx) {
                    Poll::Ready(Some(frame)) => {
                        frame.unwrap();
                    }
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => {
                        pending += 1;
                        return Poll::Pending;
                    }
                }
            }
        })
        .await;
        assert_eq!((pending, meter.polls()), (3, 6));
    }

    #[tokio::test]
    async fn a_dropped_body_is_noticed_and_a_stalled_one_stays_pending() {
        let mut body = Box::pin(ChunkedBody::<Infallible>::new(["a"]).stall());
        let meter = body.meter();
        body.frame().await.unwrap().unwrap();
        for _ in 0..2 {
            let poll = poll_fn(|cx| Poll::Ready(body.as_mut().poll_frame(cx))).await;
            assert!(poll.is_pending());
        }
        assert!(!meter.is_dropped());
        drop(body);
        assert!(meter.is_dropped() && !meter.is_ended());
    }
}
