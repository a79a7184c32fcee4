use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{Method, StatusCode};
use steadfast_core::facts::Stopped;
use tokio::time::Instant;

use crate::{
    origin::{Origin, OriginMap},
    report::Report,
};

/// A call that was given up, as the operator hears of it (R09).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GiveUp<'a> {
    /// The method of the call.
    pub method: &'a Method,
    /// The host it went to, without a port; empty where the request named none.
    pub host: &'a str,
    /// The status of the last response, 504 where the layer made it itself; `None` when there was none.
    pub status: Option<StatusCode>,
    /// How many requests were sent.
    pub attempts: u32,
    /// Why it was given up. Never [`Stopped::Cancelled`].
    pub reason: Stopped,
    /// What the last response asked for in `Retry-After`.
    pub retry_after: Option<Duration>,
    /// How many calls this event stands for: this one, and those to the same origin and with the same reason that were
    /// coalesced since the last event.
    pub calls: u64,
}

pub(crate) type OnGiveUp = Arc<dyn Fn(&GiveUp<'_>) + Send + Sync>;

/// Tells of given-up calls: the first one of an origin and reason at once, the others in a while together.
#[derive(Clone, Default)]
pub(crate) struct GiveUps {
    pub(crate) on_give_up: Option<OnGiveUp>,
    pub(crate) coalesced: Coalesced,
}

/// How long events of one origin and reason are held back after one was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coalesced {
    span: Duration,
    windows: Arc<Mutex<OriginMap<Windows>>>,
}

/// An origin's window for each reason that occurred, of which there are six at most.
#[derive(Debug, Default)]
struct Windows(Vec<(Stopped, Window)>);

#[derive(Debug)]
struct Window {
    /// When the last event was told.
    since: Instant,
    held_back: u64,
}

impl GiveUps {
    /// Ends a call with an outcome that a repeat might have changed.
    pub(crate) fn give_up(
        &self,
        report: &mut Report,
        reason: Stopped,
        method: &Method,
        origin: &Origin,
        status: Option<StatusCode>,
    ) {
        let (attempts, retry_after) = report.update(|report| {
            report.stopped = Some(reason);
            (report.attempts, report.retry_after)
        });
        let give_up = GiveUp {
            method,
            host: origin.host(),
            status,
            attempts,
            reason,
            retry_after,
            calls: 1,
        };
        self.tell(origin, give_up);
    }

    /// Tells of `give_up`, whose `calls` is set here, or holds it back.
    fn tell(&self, origin: &Origin, mut give_up: GiveUp<'_>) {
        let calls = self.coalesced.admit(origin, give_up.reason, Instant::now());
        let status = give_up.status.map(|status| status.as_u16());
        let retry_after_ms = give_up.retry_after.map(millis);
        let Some(calls) = calls else {
            tracing::info!(
                method = %give_up.method,
                host = give_up.host,
                status,
                attempts = give_up.attempts,
                reason = give_up.reason.as_str(),
                retry_after_ms,
                "call given up, event coalesced",
            );
            return;
        };
        give_up.calls = calls;
        tracing::warn!(
            method = %give_up.method,
            host = give_up.host,
            status,
            attempts = give_up.attempts,
            reason = give_up.reason.as_str(),
            retry_after_ms,
            calls,
            "call given up",
        );
        if let Some(on_give_up) = &self.on_give_up {
            on_give_up(&give_up);
        }
    }
}

impl fmt::Debug for GiveUps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GiveUps")
            .field("on_give_up", &self.on_give_up.is_some())
            .field("span", &self.coalesced.span)
            .finish_non_exhaustive()
    }
}

impl Coalesced {
    /// Nothing is held back when `span` is zero.
    pub(crate) fn within(span: Duration) -> Self {
        Self {
            span,
            windows: Arc::default(),
        }
    }

    /// How many calls an event of now stands for; `None` when it is held back.
    fn admit(&self, origin: &Origin, reason: Stopped, now: Instant) -> Option<u64> {
        if self.span.is_zero() {
            return Some(1);
        }
        let is_open = |window: &Window| now.saturating_duration_since(window.since) < self.span;
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        windows
            .entry(origin, |windows| !windows.0.iter().any(|(_, w)| is_open(w)))
            .admit(reason, now, is_open)
    }
}

impl Windows {
    fn admit(
        &mut self,
        reason: Stopped,
        now: Instant,
        is_open: impl Fn(&Window) -> bool,
    ) -> Option<u64> {
        let new = Window {
            since: now,
            held_back: 0,
        };
        let known = self.0.iter_mut().find(|(known, _)| *known == reason);
        let Some((_, window)) = known else {
            self.0.push((reason, new));
            return Some(1);
        };
        if is_open(window) {
            window.held_back = window.held_back.saturating_add(1);
            return None;
        }
        let calls = window.held_back.saturating_add(1);
        *window = new;
        Some(calls)
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn origin(host: &str) -> Origin {
        Origin::of(&Request::get(format!("https://{host}/")).body(()).unwrap())
    }

    #[test]
    fn r09_events_of_a_minute_are_told_together() {
        let coalesced = Coalesced::within(MINUTE);
        let (a, start) = (origin("a"), Instant::now());
        let admit = |at: Duration| coalesced.admit(&a, Stopped::Attempts, start + at);
        assert_eq!(admit(Duration::ZERO), Some(1));
        assert_eq!(admit(Duration::ZERO), None);
        assert_eq!(admit(MINUTE - Duration::from_nanos(1)), None);
        assert_eq!(admit(MINUTE), Some(3));
        assert_eq!(admit(MINUTE), None);
        assert_eq!(admit(MINUTE * 5), Some(2));
    }

    #[test]
    fn r09_origins_and_reasons_are_told_apart() {
        let coalesced = Coalesced::within(MINUTE);
        let now = Instant::now();
        let admit = |host, reason| coalesced.admit(&origin(host), reason, now);
        assert_eq!(admit("a", Stopped::Attempts), Some(1));
        assert_eq!(admit("b", Stopped::Attempts), Some(1));
        assert_eq!(admit("a", Stopped::Budget), Some(1));
        assert_eq!(admit("a", Stopped::Attempts), None);
    }

    #[test]
    fn r09_without_a_span_every_call_is_told_of() {
        let coalesced = Coalesced::within(Duration::ZERO);
        let now = Instant::now();
        for _ in 0..3 {
            assert_eq!(
                coalesced.admit(&origin("a"), Stopped::Attempts, now),
                Some(1)
            );
        }
    }
}
