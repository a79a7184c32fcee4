use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    task::{Unconstrained, unconstrained},
    time::{Instant, Sleep, sleep_until},
};

/// A point in time that ends something, unless that ends before.
///
/// The timer is set when there is something to wait for: a call that is answered at once costs none.
pub(crate) struct Alarm {
    at: Instant,
    /// Outside of tokio's cooperative budget: what the alarm ends may use that up in each poll.
    sleep: Option<Pin<Box<Unconstrained<Sleep>>>>,
}

impl Alarm {
    pub(crate) const fn at(at: Instant) -> Self {
        Self { at, sleep: None }
    }

    /// Goes off after `span`; never, if that lies beyond the end of time.
    pub(crate) fn after(span: Duration) -> Option<Self> {
        Instant::now().checked_add(span).map(Self::at)
    }

    /// Whether there is one and its time has come. Otherwise the task is woken when it has.
    pub(crate) fn has_gone_off(alarm: &mut Option<Self>, cx: &mut Context<'_>) -> bool {
        alarm
            .as_mut()
            .is_some_and(|alarm| alarm.poll(cx).is_ready())
    }

    pub(crate) fn is_at(&self, at: Instant) -> bool {
        self.at == at
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        // A timer wakes no earlier than the next millisecond: it is not for what is due already.
        if self.sleep.is_none() && at <= Instant::now() {
            return Poll::Ready(());
        }
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(unconstrained(sleep_until(at))));
        sleep.as_mut().poll(cx)
    }
}
