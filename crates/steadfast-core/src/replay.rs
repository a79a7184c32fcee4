use std::{
    fmt,
    num::NonZeroU64,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;

use self::tape::Tape;
use crate::{BoxError, body::poll_bytes};

mod tape;

pin_project! {
    /// A request body that can be sent again.
    ///
    /// The inner body streams while the first attempt sends it, and what streams is kept. A clone is a handle for
    /// another attempt: it starts at the first byte, repeats what was kept and goes on with what the inner body still
    /// has. Over the cap the running attempt goes on and only the repeat is given up: [`is_replayable`] turns false.
    ///
    /// One attempt sends at a time. As soon as a newer attempt begins, an older one that is still being read fails, so
    /// that its connection breaks off instead of delivering a body that only looks whole.
    ///
    /// [`is_replayable`]: ReplayBody::is_replayable
    ///
    /// # Clone
    ///
    /// Shares what was kept, and the inner body. A clone of a body made by [`ReplayBody::once`] can only fail.
    pub struct ReplayBody<B>
    where
        B: http_body::Body,
    {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<B>
    where
        B: http_body::Body,
    {
        Empty,
        Once { #[pin] body: B },
        Refused { reason: Refused },
        Shared { attempt: Attempt<B> },
    }
}

/// One attempt's place in the body.
struct Attempt<B: http_body::Body> {
    shared: Arc<Shared<B>>,
    /// The generation it was made in: it can begin as long as that is the current one.
    generation: u64,
    /// Which attempt this is, once it has begun.
    begun: Option<NonZeroU64>,
    /// How many kept chunks it has repeated.
    position: usize,
    sent: u64,
    ended: bool,
}

/// What all attempts have in common.
struct Shared<B> {
    /// The size of the whole body.
    total: SizeHint,
    /// Attempts of an earlier generation can begin no more. It changes under the lock of the tape alone.
    generation: AtomicU64,
    tape: Mutex<Tape<B>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("the request body cannot be sent again")]
    NotReplayable,
    #[error("a newer attempt sends this request body")]
    Superseded,
}

impl<B: http_body::Body> ReplayBody<B> {
    /// Keeps up to `cap` bytes of `body` for further attempts.
    pub fn new(body: B, cap: usize) -> Self {
        if body.is_end_stream() {
            return Self { kind: Kind::Empty };
        }
        let total = body.size_hint();
        if total.lower() > cap as u64 {
            return Self::once(body);
        }
        let attempt = Attempt::of(Arc::new(Shared {
            total,
            generation: AtomicU64::new(0),
            tape: Mutex::new(Tape::new(body, cap)),
        }));
        Self {
            kind: Kind::Shared { attempt },
        }
    }

    /// Keeps nothing: `body` is sent once.
    pub const fn once(body: B) -> Self {
        Self {
            kind: Kind::Once { body },
        }
    }

    /// Begins this attempt now, and not when it is first polled.
    ///
    /// From here on the body is this attempt's. Every earlier one fails, whether it is being read or was not polled yet,
    /// and can no more use up what the inner body still has. A retry calls it when it is decided: its first request may
    /// still be streaming. Returns whether this attempt can send the whole body; if not, nothing has changed.
    pub fn begin(&mut self) -> bool {
        match &mut self.kind {
            Kind::Empty => true,
            Kind::Once { .. } | Kind::Refused { .. } => false,
            Kind::Shared { attempt } => attempt.begin(),
        }
    }

    /// Whether a clone can still send the whole body.
    ///
    /// False for a body that was made to be sent once, one that grew over the cap, and one whose inner body failed.
    #[must_use]
    pub fn is_replayable(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Once { .. } | Kind::Refused { .. } => false,
            Kind::Shared { attempt } => attempt.shared.lock().is_replayable(),
        }
    }
}

impl<B: http_body::Body> Clone for ReplayBody<B> {
    fn clone(&self) -> Self {
        let kind = match &self.kind {
            Kind::Empty => Kind::Empty,
            Kind::Once { .. } => Kind::Refused {
                reason: Refused::NotReplayable,
            },
            Kind::Refused { reason } => Kind::Refused { reason: *reason },
            Kind::Shared { attempt } => Kind::Shared {
                attempt: Attempt::of(Arc::clone(&attempt.shared)),
            },
        };
        Self { kind }
    }
}

impl<B> http_body::Body for ReplayBody<B>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project().kind.project() {
            KindProj::Empty => Poll::Ready(None),
            KindProj::Once { body } => {
                poll_bytes(body, cx).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
            }
            KindProj::Refused { reason } => Poll::Ready(Some(Err((*reason).into()))),
            KindProj::Shared { attempt } => attempt.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Once { body } => body.is_end_stream(),
            Kind::Refused { .. } => false,
            Kind::Shared { attempt } => attempt.ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Once { body } => body.size_hint(),
            Kind::Refused { .. } => SizeHint::new(),
            Kind::Shared { attempt } => attempt.size_hint(),
        }
    }
}

impl<B: http_body::Body> Shared<B> {
    /// A panic inside the inner body leaves the tape as it was before that frame, so a poisoned lock is still sound.
    fn lock(&self) -> MutexGuard<'_, Tape<B>> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Makes an attempt of this generation the reader of the tape, which the caller has locked.
    fn begin(&self, tape: &mut Tape<B>, generation: u64) -> Result<NonZeroU64, Refused> {
        if generation == self.generation() {
            tape.begin()
        } else {
            Err(Refused::Superseded)
        }
    }
}

impl<B: http_body::Body> Attempt<B> {
    fn of(shared: Arc<Shared<B>>) -> Self {
        Self {
            generation: shared.generation(),
            shared,
            begun: None,
            position: 0,
            sent: 0,
            ended: false,
        }
    }

    fn begin(&mut self) -> bool {
        let mut tape = self.shared.lock();
        let begun = match self.begun {
            // It goes on where it is: a reader begun anew would be given once more what it has just read.
            Some(begun) if tape.is_whole_for(begun) => begun,
            Some(_) => return false,
            None => match self.shared.begin(&mut tape, self.generation) {
                Ok(begun) => begun,
                Err(_) => return false,
            },
        };
        self.generation += 1;
        self.shared
            .generation
            .store(self.generation, Ordering::Relaxed);
        self.begun = Some(begun);
        true
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>>
    where
        B::Error: Into<BoxError>,
    {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut tape = self.shared.lock();
        let begun = match self.begun {
            Some(begun) => begun,
            None => match self.shared.begin(&mut tape, self.generation) {
                Ok(begun) => *self.begun.insert(begun),
                Err(refused) => return Poll::Ready(Some(Err(refused.into()))),
            },
        };
        let frame = std::task::ready!(tape.poll_frame(begun, &mut self.position, cx));
        self.ended = tape.is_at_end(self.position) || frame.is_none();
        drop(tape);
        if let Some(Ok(frame)) = &frame {
            let sent = frame.data_ref().map_or(0, Bytes::len);
            self.sent = self.sent.saturating_add(sent as u64);
            self.ended |= frame.is_trailers();
        }
        Poll::Ready(frame)
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        if self.ended {
            hint.set_exact(0);
            return hint;
        }
        let total = &self.shared.total;
        hint.set_lower(total.lower().saturating_sub(self.sent));
        if let Some(upper) = total.upper() {
            hint.set_upper(upper.saturating_sub(self.sent));
        }
        hint
    }
}

impl<B: http_body::Body> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Empty => "ReplayBody::Empty",
            Kind::Once { .. } => "ReplayBody::Once",
            Kind::Refused { .. } => "ReplayBody::Refused",
            Kind::Shared { .. } => "ReplayBody::Shared",
        })
    }
}

#[cfg(test)]
mod tests;
