use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Buf as _;
use http_body::Body as _;
use steadfast_core::Body;
use tokio::time::Instant;

use crate::alarm::Alarm;

/// The pause before a retry: waits until its time, and reads the discarded response to its end meanwhile, so that its
/// connection can be used again.
pub(crate) struct Pause<B: http_body::Body> {
    until: Instant,
    alarm: Alarm,
    discarded: Option<Discarded<B>>,
}

struct Discarded<B: http_body::Body> {
    body: Pin<Box<Body<B>>>,
    left: usize,
}

impl<B: http_body::Body> Pause<B> {
    /// No connection is kept longer than this for the sake of a response that nobody reads.
    const DRAIN_TIME: Duration = Duration::from_secs(1);
    /// Reading more than this costs more than a new connection.
    const DRAIN_BYTES: usize = 64 * 1024;

    pub(crate) fn new(until: Instant, discarded: Option<Body<B>>) -> Self {
        let discarded = discarded
            .filter(|body| !body.is_end_stream())
            .map(|body| Discarded {
                body: Box::pin(body),
                left: Self::DRAIN_BYTES,
            });
        let first = match discarded {
            Some(_) => until.min(Instant::now() + Self::DRAIN_TIME),
            None => until,
        };
        Self {
            until,
            alarm: Alarm::at(first),
            discarded,
        }
    }
}

impl<B: http_body::Body> Future for Pause<B> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if let Some(discarded) = &mut this.discarded
            && discarded.poll_drain(cx).is_ready()
        {
            this.discarded = None;
        }
        ready!(this.alarm.poll(cx));
        this.discarded = None;
        if !this.alarm.is_at(this.until) {
            this.alarm = Alarm::at(this.until);
            ready!(this.alarm.poll(cx));
        }
        Poll::Ready(())
    }
}

impl<B: http_body::Body> Discarded<B> {
    /// Ready when there is nothing more to read, or no more worth reading.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(Ok(frame)) = ready!(self.body.as_mut().poll_frame(cx)) {
            let read = frame.data_ref().map_or(0, |data| data.remaining());
            // Frames of nothing count as well, or a body of them would never end.
            match self.left.checked_sub(read.max(1)) {
                Some(left) => self.left = left,
                None => break,
            }
        }
        Poll::Ready(())
    }
}

impl<B: http_body::Body> fmt::Debug for Pause<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pause")
            .field("until", &self.until)
            .field("draining", &self.discarded.is_some())
            .finish_non_exhaustive()
    }
}
