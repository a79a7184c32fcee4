//! What a [`ChunkedBody`](super::ChunkedBody) went through.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Tells how a [`ChunkedBody`](crate::ChunkedBody) was treated, also after it is gone.
///
/// # Clone
///
/// Clones watch the same body.
#[derive(Clone, Debug, Default)]
pub struct BodyMeter {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    polls: AtomicU64,
    frames: AtomicU64,
    ended: AtomicBool,
    dropped: AtomicBool,
}

impl BodyMeter {
    /// How often the body was polled for a frame.
    #[must_use]
    pub fn polls(&self) -> u64 {
        self.shared.polls.load(Ordering::SeqCst)
    }

    /// How many frames it gave out; an error counts as one, the end does not.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.shared.frames.load(Ordering::SeqCst)
    }

    /// Whether its end was read.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.shared.ended.load(Ordering::SeqCst)
    }

    /// Whether it was dropped, at its end or before.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.shared.dropped.load(Ordering::SeqCst)
    }

    pub(crate) fn count_poll(&self) {
        self.shared.polls.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn count_frame(&self) {
        self.shared.frames.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.shared.ended.store(true, Ordering::SeqCst);
    }

    pub(crate) fn drop_body(&self) {
        self.shared.dropped.store(true, Ordering::SeqCst);
    }
}
