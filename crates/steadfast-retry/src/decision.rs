use std::time::Duration;

use steadfast_core::facts::Stopped;
use tokio::time::Instant;

use crate::{
    Profile,
    backoff::Draw,
    budget::Price,
    outcome::{Failure, Repeat, Trigger, Triggers},
};

/// What a call has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Retries that count towards the limit.
    pub(crate) retries: u32,
    /// Answers with 429.
    pub(crate) throttled: u32,
    /// What the call was repeated for.
    pub(crate) repeated: Triggers,
}

/// What is known of a call when an attempt has failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Its class allows a second request, and its body can be sent again.
    pub(crate) repeatable: bool,
    /// It carries a key, and the key is what allows a second request.
    pub(crate) keyed: bool,
    /// How long its key may still be used.
    pub(crate) key_left: Option<Duration>,
    /// When the whole call ends.
    pub(crate) deadline: Option<Instant>,
    pub(crate) now: Instant,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// The outcome is not one to repeat.
    Final,
    /// A repeat might have cured it, but something stands against it.
    GiveUp(Stopped),
    /// Send it again, if the budget allows.
    Repeat(Retry),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Retry {
    pub(crate) wait: Duration,
    /// `wait` after the failure: never earlier.
    pub(crate) until: Instant,
    pub(crate) price: Price,
}

impl Tally {
    /// Counts a retry that was decided.
    pub(crate) const fn count(&mut self, trigger: Trigger) {
        self.repeated.insert(trigger);
        match trigger {
            Trigger::Unauthorized => {}
            Trigger::TooManyRequests => {
                self.throttled = self.throttled.saturating_add(1);
                self.retries = self.retries.saturating_add(1);
            }
            _ => self.retries = self.retries.saturating_add(1),
        }
    }
}

/// The guards, in order: repeatable, attempts, cap, deadline. The budget is the last one and asked by the caller, so
/// that nothing is taken from it for a retry that another guard forbids.
pub(crate) fn decide(
    profile: &Profile,
    tally: &Tally,
    facts: &Facts,
    failure: &Failure,
    draw: Draw,
) -> Verdict {
    if !is_worth_repeating(profile, tally, facts.keyed, failure) {
        return match failure.trigger {
            // A 429 is never swallowed (R09), so it is a give-up even where the profile does not repeat it.
            Trigger::TooManyRequests => Verdict::GiveUp(Stopped::NotRepeatable),
            _ => Verdict::Final,
        };
    }
    let wait = wait(profile, tally, failure, draw);
    if !facts.repeatable || facts.key_left.is_some_and(|left| wait > left) {
        return Verdict::GiveUp(Stopped::NotRepeatable);
    }
    if !has_attempts_left(profile, tally, failure.trigger) {
        return Verdict::GiveUp(Stopped::Attempts);
    }
    if failure.named.is_some_and(|ask| ask > profile.cap) {
        return Verdict::GiveUp(Stopped::OverCap);
    }
    let Some(until) = failure.at.checked_add(wait) else {
        return Verdict::GiveUp(Stopped::OverCap);
    };
    if facts
        .deadline
        .is_some_and(|deadline| until.max(facts.now) >= deadline)
    {
        return Verdict::GiveUp(Stopped::Deadline);
    }
    let price = match (failure.trigger, failure.named) {
        (Trigger::TooManyRequests, Some(_)) => Price::Scheduled,
        _ => Price::Full,
    };
    Verdict::Repeat(Retry { wait, until, price })
}

/// Whether a repeat might cure this failure, as the profile sees it. `keyed` says that the call carries a key, and the
/// key is what allows a second request.
pub(crate) fn is_worth_repeating(
    profile: &Profile,
    tally: &Tally,
    keyed: bool,
    failure: &Failure,
) -> bool {
    let rule = profile.repeat(failure.trigger);
    let allowed = match rule {
        Repeat::Always | Repeat::Once => true,
        Repeat::Named => failure.named.is_some(),
        Repeat::Never => false,
    };
    allowed
        && match failure.trigger {
            Trigger::Conflict => keyed && failure.named.is_some(),
            Trigger::Unauthorized => {
                failure.resignable && !tally.repeated.contains(Trigger::Unauthorized)
            }
            _ => true,
        }
}

fn has_attempts_left(profile: &Profile, tally: &Tally, trigger: Trigger) -> bool {
    match trigger {
        // A request signed afresh is another request: it does not count towards the limit.
        Trigger::Unauthorized => true,
        trigger if profile.repeat(trigger) == Repeat::Once && tally.repeated.contains(trigger) => {
            false
        }
        _ => tally.retries < profile.retries,
    }
}

/// The own exponent counts every retry, also those whose wait the server named: a 503 after a 429 is no first failure.
fn wait(profile: &Profile, tally: &Tally, failure: &Failure, draw: Draw) -> Duration {
    match (failure.named, failure.trigger) {
        (Some(ask), Trigger::TooManyRequests) => profile.named.wait(ask, tally.throttled, draw),
        (Some(ask), _) => profile.named.wait(ask, 0, draw),
        (None, Trigger::Unauthorized) => Duration::ZERO,
        (None, _) => profile.backoff.wait(tally.retries, draw),
    }
}

#[cfg(test)]
mod tests;
