use std::{
    mem,
    num::NonZeroU64,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;

use super::Refused;
use crate::{BoxError, body::poll_bytes};

/// Frames smaller than this are joined, so that a body that drips costs no bookkeeping per byte.
const SMALL: usize = 512;

/// The inner body and what it has yielded so far.
///
/// ```text
/// begin ─▶ repeat kept chunks ─▶ read live, keeping ─▶ ended
///                                    ├─ over the cap: read live, keeping nothing
///                                    └─ the inner body failed
/// ```
pub(super) struct Tape<B> {
    live: Option<Pin<Box<B>>>,
    chunks: Vec<Bytes>,
    small: BytesMut,
    /// The last frame, as it came. Most bodies have no other, and nothing is copied or joined for them.
    latest: Bytes,
    /// Boxed, since few bodies have any.
    trailers: Option<Box<HeaderMap>>,
    kept: usize,
    cap: usize,
    loss: Option<Loss>,
    /// The attempt that reads at present.
    reader: Option<NonZeroU64>,
    /// Wakes the reader of an earlier attempt when a newer one begins.
    waiting: Option<Waker>,
}

/// Why a further attempt is impossible.
#[derive(Clone, Copy)]
enum Loss {
    Failed,
    OverCap,
}

impl<B: http_body::Body> Tape<B> {
    pub(super) fn new(body: B, cap: usize) -> Self {
        Self {
            live: Some(Box::pin(body)),
            chunks: Vec::new(),
            small: BytesMut::new(),
            latest: Bytes::new(),
            trailers: None,
            kept: 0,
            cap,
            loss: None,
            reader: None,
            waiting: None,
        }
    }

    pub(super) const fn is_replayable(&self) -> bool {
        self.loss.is_none()
    }

    /// Whether `reader` still is the reader, and nothing of the body was lost.
    pub(super) fn is_whole_for(&self, reader: NonZeroU64) -> bool {
        self.reader == Some(reader) && self.loss.is_none()
    }

    /// Makes the caller the reader, and every earlier reader a superseded one.
    pub(super) fn begin(&mut self) -> Result<NonZeroU64, Refused> {
        if self.loss.is_some() {
            return Err(Refused::NotReplayable);
        }
        let reader = self
            .reader
            .map_or(NonZeroU64::MIN, |reader| reader.saturating_add(1));
        self.reader = Some(reader);
        if self.kept > 0 {
            self.settle();
        }
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
        Ok(reader)
    }

    pub(super) fn poll_frame(
        &mut self,
        reader: NonZeroU64,
        position: &mut usize,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>>
    where
        B::Error: Into<BoxError>,
    {
        if self.reader != Some(reader) {
            return Poll::Ready(Some(Err(Refused::Superseded.into())));
        }
        if let Some(chunk) = self.chunks.get(*position) {
            *position += 1;
            return Poll::Ready(Some(Ok(Frame::data(chunk.clone()))));
        }
        let Some(live) = &mut self.live else {
            return Poll::Ready(match self.loss {
                Some(Loss::Failed) => Some(Err(Refused::NotReplayable.into())),
                _ => self
                    .trailers
                    .clone()
                    .map(|trailers| Ok(Frame::trailers(*trailers))),
            });
        };
        let Poll::Ready(frame) = poll_bytes(live.as_mut(), cx) else {
            self.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let ended = live.is_end_stream();
        Poll::Ready(match frame {
            None => {
                self.live = None;
                None
            }
            Some(Err(error)) => {
                self.lose(Loss::Failed);
                self.live = None;
                Some(Err(error.into()))
            }
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_ref() {
                    self.trailers = Some(Box::new(trailers.clone()));
                    self.live = None;
                } else if let Some(data) = frame.data_ref() {
                    self.keep(data);
                    if ended {
                        self.live = None;
                    }
                }
                // A reader of live frames has seen everything that is kept.
                *position = self.chunks.len();
                Some(Ok(frame))
            }
        })
    }

    /// Whether a reader at `position` has read everything there is, trailers aside.
    pub(super) const fn is_at_end(&self, position: usize) -> bool {
        self.live.is_none()
            && self.trailers.is_none()
            && position >= self.chunks.len()
            && !matches!(self.loss, Some(Loss::Failed))
    }

    fn keep(&mut self, data: &Bytes) {
        if self.loss.is_some() {
            return;
        }
        self.kept += data.len();
        if self.kept > self.cap {
            self.lose(Loss::OverCap);
            return;
        }
        let before = mem::replace(&mut self.latest, data.clone());
        self.put_away(before);
    }

    fn put_away(&mut self, frame: Bytes) {
        if frame.is_empty() {
            return;
        }
        if frame.len() < SMALL {
            self.small.extend_from_slice(&frame);
        } else {
            self.settle_small();
            self.chunks.push(frame);
        }
    }

    /// Makes chunks of everything that is kept.
    fn settle(&mut self) {
        let latest = mem::take(&mut self.latest);
        self.put_away(latest);
        self.settle_small();
    }

    fn lose(&mut self, loss: Loss) {
        self.loss = Some(loss);
        self.chunks = Vec::new();
        self.small = BytesMut::new();
        self.latest = Bytes::new();
    }

    fn settle_small(&mut self) {
        if !self.small.is_empty() {
            self.chunks.push(self.small.split().freeze());
        }
    }
}
