//! What a probe saw.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

/// Tells what a [`ServiceProbe`](crate::ServiceProbe) and all its clones saw, and can hold back their readiness.
///
/// # Clone
///
/// Clones watch the same probe.
#[derive(Clone, Debug, Default)]
pub struct ProbeHandle {
    // Never held while foreign code runs, a waker's included.
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    calls: usize,
    completed: usize,
    dropped: usize,
    panicked: usize,
    in_flight: usize,
    peak_in_flight: usize,
    live_reservations: usize,
    unused_reservations: usize,
    blocked: bool,
    wakers: Vec<Waker>,
    breaches: Vec<&'static str>,
}

/// As many breaches as are kept; the first ones tell what went wrong.
const MAX_BREACHES: usize = 16;

impl ProbeHandle {
    /// How often the probe was called.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.seen().calls
    }

    /// How many calls ran to their answer, a response or an error.
    #[must_use]
    pub fn completed(&self) -> usize {
        self.seen().completed
    }

    /// How many futures were dropped before their answer.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.seen().dropped
    }

    /// How many answers panicked.
    #[must_use]
    pub fn panicked(&self) -> usize {
        self.seen().panicked
    }

    /// How many futures are alive without their answer.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.seen().in_flight
    }

    /// The most futures that were in flight at one time.
    #[must_use]
    pub fn peak_in_flight(&self) -> usize {
        self.seen().peak_in_flight
    }

    /// How many instances are ready and not yet called.
    #[must_use]
    pub fn live_reservations(&self) -> usize {
        self.seen().live_reservations
    }

    /// How many reservations were given back without a call.
    #[must_use]
    pub fn unused_reservations(&self) -> usize {
        self.seen().unused_reservations
    }

    /// The breaches of Tower's contract so far, at most the first 16.
    #[must_use]
    pub fn breaches(&self) -> Vec<&'static str> {
        self.seen().breaches.clone()
    }

    /// Lets no further instance become ready until [`unblock`](Self::unblock). Reservations taken before stay.
    pub fn block(&self) {
        self.seen().blocked = true;
    }

    /// Ends [`block`](Self::block) and wakes every task that waited meanwhile.
    pub fn unblock(&self) {
        let wakers = {
            let mut seen = self.seen();
            seen.blocked = false;
            mem::take(&mut seen.wakers)
        };
        for waker in wakers {
            waker.wake();
        }
    }

    /// Checks that nothing is left behind: no reservation, no future in flight, no breach.
    ///
    /// # Panics
    ///
    /// Panics if something is.
    #[track_caller]
    pub fn assert_quiescent(&self) {
        let seen = self.seen();
        let (breaches, reservations, in_flight) = (
            seen.breaches.clone(),
            seen.live_reservations,
            seen.in_flight,
        );
        drop(seen);
        assert!(breaches.is_empty(), "contract broken: {breaches:?}");
        assert_eq!(reservations, 0, "reservations are still held");
        assert_eq!(in_flight, 0, "futures are still in flight");
    }

    /// Whether readiness is held back; if so, `waker` is woken when that ends.
    pub(crate) fn is_blocked(&self, waker: &Waker) -> bool {
        let mut seen = self.seen();
        if seen.blocked && !seen.wakers.iter().any(|known| known.will_wake(waker)) {
            seen.wakers.push(waker.clone());
        }
        seen.blocked
    }

    pub(crate) fn reserve(&self) {
        self.seen().live_reservations += 1;
    }

    pub(crate) fn give_back(&self) {
        let mut seen = self.seen();
        seen.live_reservations -= 1;
        seen.unused_reservations += 1;
    }

    /// Turns a reservation into a call.
    pub(crate) fn call(&self) {
        let mut seen = self.seen();
        seen.live_reservations -= 1;
        seen.calls += 1;
        seen.in_flight += 1;
        seen.peak_in_flight = seen.peak_in_flight.max(seen.in_flight);
    }

    pub(crate) fn complete(&self) {
        let mut seen = self.seen();
        seen.in_flight -= 1;
        seen.completed += 1;
    }

    pub(crate) fn abandon(&self, panicked: bool) {
        let mut seen = self.seen();
        seen.in_flight -= 1;
        if panicked {
            seen.panicked += 1;
        } else {
            seen.dropped += 1;
        }
    }

    /// Keeps the breach, then panics.
    #[track_caller]
    pub(crate) fn breach(&self, what: &'static str) -> ! {
        let mut seen = self.seen();
        if seen.breaches.len() < MAX_BREACHES {
            seen.breaches.push(what);
        }
        drop(seen);
        panic!("service probe: {what}");
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
