use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

use super::{config::Config, rejection::Rejection};
use crate::Window;

/// How long a body is waited for: no longer than configured, and not past the moment at which its timestamp grows stale.
///
/// No timer is set for a body that is there when it is asked for.
pub(super) struct Patience<'a> {
    config: &'a Config,
    window: Option<&'a Window>,
    waiting: Option<Waiting>,
}

struct Waiting {
    sleep: Pin<Box<Sleep>>,
    deadline: Instant,
}

/// A window is inclusive: it is over a moment later.
const MOMENT: Duration = Duration::from_millis(1);

impl<'a> Patience<'a> {
    pub(super) const fn new(config: &'a Config, window: Option<&'a Window>) -> Self {
        Self {
            config,
            window,
            waiting: None,
        }
    }

    /// When to look again, at the latest at the deadline.
    fn next_look(&self, now: Instant, deadline: Instant) -> Instant {
        let fresh_for = self.window.map(|window| {
            let left = window.until().duration_since(self.config.clock.now());
            left.unwrap_or_default() + MOMENT
        });
        let stale = fresh_for.and_then(|fresh_for| now.checked_add(fresh_for));
        stale.map_or(deadline, |stale| stale.min(deadline))
    }

    /// Ready when it has run out.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Rejection> {
        loop {
            let mut waiting = self.waiting.take().unwrap_or_else(|| {
                let now = Instant::now();
                // Further than a clock reaches is for ever.
                let deadline = now
                    .checked_add(self.config.read_timeout)
                    .unwrap_or_else(|| now + Duration::from_secs(365 * 24 * 60 * 60));
                Waiting {
                    sleep: Box::pin(sleep_until(self.next_look(now, deadline))),
                    deadline,
                }
            });
            if waiting.sleep.as_mut().poll(cx).is_pending() {
                self.waiting = Some(waiting);
                return Poll::Pending;
            }
            let now = Instant::now();
            if let Some(window) = self.window
                && let Err(reason) = window.judge(self.config.clock.now())
            {
                return Poll::Ready(reason.into());
            }
            if now >= waiting.deadline {
                return Poll::Ready(Rejection::BodyTimeout);
            }
            // The wall clock was set back meanwhile.
            let next = self.next_look(now, waiting.deadline);
            waiting.sleep.as_mut().reset(next);
            self.waiting = Some(waiting);
        }
    }
}
