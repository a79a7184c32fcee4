use proptest::prelude::*;

use super::*;
use crate::Backoff;

const DRAW: Draw = Draw(u32::MAX);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn facts() -> Facts {
    Facts {
        repeatable: true,
        keyed: true,
        key_left: None,
        deadline: None,
        now: Instant::now(),
    }
}

fn failure(trigger: Trigger, named: Option<u64>, facts: &Facts) -> Failure {
    Failure {
        trigger,
        named: named.map(secs),
        at: facts.now,
        resignable: true,
    }
}

fn verdict(profile: &Profile, trigger: Trigger, named: Option<u64>) -> Verdict {
    let facts = facts();
    decide(
        profile,
        &Tally::default(),
        &facts,
        &failure(trigger, named, &facts),
        DRAW,
    )
}

const fn is_repeated(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Repeat(_))
}

#[test]
fn r02_r03_each_profile_repeats_what_its_table_says() {
    use Trigger::{
        BadGateway, Conflict, InternalServerError, Network, RequestTimeout, ServiceUnavailable,
        TooManyRequests, Unauthorized,
    };
    let columns = [
        (Network, None),
        (RequestTimeout, None),
        (Conflict, Some(1)),
        (Conflict, None),
        (TooManyRequests, Some(1)),
        (TooManyRequests, None),
        (InternalServerError, None),
        (BadGateway, None),
        (ServiceUnavailable, Some(1)),
        (ServiceUnavailable, None),
        (Unauthorized, None),
    ];
    let rows = [
        (Profile::new(), "yyynyyyyyyn"),
        (Profile::openemail(), "yynnynyyyyn"),
        (Profile::payments(), "yynnyyyyyyy"),
        (Profile::botix(), "ynnnyynnynn"),
    ];
    for (profile, expected) in rows {
        let found: String = columns
            .iter()
            .map(|&(trigger, named)| {
                if is_repeated(verdict(&profile, trigger, named)) {
                    'y'
                } else {
                    'n'
                }
            })
            .collect();
        assert_eq!(found, expected, "{profile:?}");
    }
}

#[test]
fn r09_a_429_that_the_profile_does_not_repeat_is_given_up_and_not_swallowed() {
    let found = verdict(&Profile::openemail(), Trigger::TooManyRequests, None);
    assert_eq!(found, Verdict::GiveUp(Stopped::NotRepeatable));
    let found = verdict(&Profile::botix(), Trigger::InternalServerError, None);
    assert_eq!(found, Verdict::Final);
}

#[test]
fn r03_a_409_is_repeated_only_with_a_key_and_a_time() {
    let profile = Profile::new().on(Trigger::Conflict, Repeat::Always);
    assert!(is_repeated(verdict(&profile, Trigger::Conflict, Some(1))));
    assert_eq!(verdict(&profile, Trigger::Conflict, None), Verdict::Final);
    let unkeyed = Facts {
        keyed: false,
        ..facts()
    };
    let conflict = failure(Trigger::Conflict, Some(1), &unkeyed);
    let found = decide(&profile, &Tally::default(), &unkeyed, &conflict, DRAW);
    assert_eq!(found, Verdict::Final);
}

#[test]
fn r03_a_401_is_repeated_once_at_once_and_outside_the_limit() {
    let profile = Profile {
        retries: 0,
        ..Profile::payments()
    };
    let mut tally = Tally::default();
    let facts = facts();
    let unauthorized = failure(Trigger::Unauthorized, None, &facts);
    let Verdict::Repeat(retry) = decide(&profile, &tally, &facts, &unauthorized, DRAW) else {
        panic!("it is signed afresh");
    };
    assert_eq!((retry.wait, retry.until), (Duration::ZERO, facts.now));
    tally.count(Trigger::Unauthorized);
    assert_eq!(tally.retries, 0);
    assert_eq!(
        decide(&profile, &tally, &facts, &unauthorized, DRAW),
        Verdict::Final
    );

    let stale = Failure {
        resignable: false,
        ..unauthorized
    };
    let found = decide(&profile, &Tally::default(), &facts, &stale, DRAW);
    assert_eq!(found, Verdict::Final);
}

#[test]
fn r03_payments_repeats_a_500_once_a_call() {
    let profile = Profile::payments();
    let mut tally = Tally::default();
    let facts = facts();
    let internal = failure(Trigger::InternalServerError, None, &facts);
    assert!(is_repeated(decide(
        &profile, &tally, &facts, &internal, DRAW
    )));
    tally.count(Trigger::InternalServerError);
    let found = decide(&profile, &tally, &facts, &internal, DRAW);
    assert_eq!(found, Verdict::GiveUp(Stopped::Attempts));
    let gateway = failure(Trigger::BadGateway, None, &facts);
    assert!(is_repeated(decide(
        &profile, &tally, &facts, &gateway, DRAW
    )));
}

/// A failure that every guard is against is stopped by the first of them; taking that away leaves the next one.
#[test]
fn the_guards_stand_in_order() {
    let profile = Profile {
        cap: secs(60),
        ..Profile::new()
    };
    let exhausted = Tally {
        retries: 2,
        ..Tally::default()
    };
    let now = Instant::now();
    let against = Facts {
        repeatable: false,
        keyed: true,
        key_left: Some(Duration::ZERO),
        deadline: Some(now),
        now,
    };
    let long = failure(Trigger::TooManyRequests, Some(61), &against);
    let stopped = |tally: &Tally, facts: &Facts, failure: &Failure| match decide(
        &profile, tally, facts, failure, DRAW,
    ) {
        Verdict::GiveUp(stopped) => Some(stopped),
        _ => None,
    };

    assert_eq!(
        stopped(&exhausted, &against, &long),
        Some(Stopped::NotRepeatable)
    );
    let old_key = Facts {
        repeatable: true,
        ..against
    };
    assert_eq!(
        stopped(&exhausted, &old_key, &long),
        Some(Stopped::NotRepeatable)
    );
    let late = Facts {
        key_left: None,
        ..old_key
    };
    assert_eq!(stopped(&exhausted, &late, &long), Some(Stopped::Attempts));
    assert_eq!(
        stopped(&Tally::default(), &late, &long),
        Some(Stopped::OverCap)
    );
    let short = failure(Trigger::TooManyRequests, Some(60), &late);
    assert_eq!(
        stopped(&Tally::default(), &late, &short),
        Some(Stopped::Deadline)
    );
    let free = Facts {
        deadline: None,
        ..late
    };
    assert_eq!(stopped(&Tally::default(), &free, &short), None);
}

#[test]
fn r06_sixty_seconds_are_waited_and_sixty_one_are_not() {
    let Verdict::Repeat(retry) = verdict(&Profile::new(), Trigger::TooManyRequests, Some(60))
    else {
        panic!("the cap itself is not over the cap");
    };
    assert_eq!(retry.wait, secs(60));
    let found = verdict(&Profile::new(), Trigger::TooManyRequests, Some(61));
    assert_eq!(found, Verdict::GiveUp(Stopped::OverCap));
    let found = verdict(
        &Profile::new(),
        Trigger::ServiceUnavailable,
        Some(u64::from(u32::MAX)),
    );
    assert_eq!(found, Verdict::GiveUp(Stopped::OverCap));
}

#[test]
fn r06_only_the_servers_own_number_over_the_cap_stops() {
    let facts = facts();
    let tally = Tally {
        retries: 2,
        throttled: 2,
        ..Tally::default()
    };
    let throttled = failure(Trigger::TooManyRequests, Some(50), &facts);
    let Verdict::Repeat(retry) = decide(&Profile::botix(), &tally, &facts, &throttled, DRAW) else {
        panic!("the server asked for less than the cap");
    };
    assert_eq!(retry.wait, secs(60));
}

#[test]
fn r05_only_a_further_429_doubles_the_servers_wait() {
    let facts = facts();
    let tally = Tally {
        retries: 2,
        throttled: 2,
        ..Tally::default()
    };
    let unavailable = failure(Trigger::ServiceUnavailable, Some(5), &facts);
    let Verdict::Repeat(retry) = decide(&Profile::botix(), &tally, &facts, &unavailable, DRAW)
    else {
        panic!("it names a time");
    };
    assert_eq!(retry.wait, secs(5));
}

#[test]
fn r07_the_own_exponent_keeps_its_count_over_named_waits() {
    let facts = facts();
    let mut tally = Tally::default();
    tally.count(Trigger::TooManyRequests);
    let unavailable = failure(Trigger::ServiceUnavailable, None, &facts);
    let Verdict::Repeat(retry) = decide(&Profile::new(), &tally, &facts, &unavailable, DRAW) else {
        panic!("an attempt is left");
    };
    assert_eq!(retry.wait, secs(1));
}

#[test]
fn r10_a_wait_that_ends_at_the_deadline_is_not_begun() {
    let mut facts = facts();
    let throttled = failure(Trigger::TooManyRequests, Some(5), &facts);
    facts.deadline = Some(facts.now + secs(5));
    let found = decide(&Profile::new(), &Tally::default(), &facts, &throttled, DRAW);
    assert_eq!(found, Verdict::GiveUp(Stopped::Deadline));
    facts.deadline = Some(facts.now + secs(5) + Duration::from_nanos(1));
    assert!(is_repeated(decide(
        &Profile::new(),
        &Tally::default(),
        &facts,
        &throttled,
        DRAW
    )));
}

#[test]
fn r04_a_named_wait_counts_from_the_head_and_not_from_the_end_of_the_body() {
    let mut facts = facts();
    let throttled = failure(Trigger::TooManyRequests, Some(5), &facts);
    facts.now += secs(3);
    let Verdict::Repeat(retry) =
        decide(&Profile::new(), &Tally::default(), &facts, &throttled, DRAW)
    else {
        panic!("nothing stands against it");
    };
    assert_eq!(retry.until, throttled.at + secs(5));
    facts.deadline = Some(throttled.at + secs(6));
    assert!(is_repeated(decide(
        &Profile::new(),
        &Tally::default(),
        &facts,
        &throttled,
        DRAW
    )));
}

#[test]
fn i05_a_key_that_would_be_too_old_after_the_wait_is_not_sent_again() {
    let mut facts = facts();
    let throttled = failure(Trigger::TooManyRequests, Some(5), &facts);
    facts.key_left = Some(secs(5));
    assert!(is_repeated(decide(
        &Profile::new(),
        &Tally::default(),
        &facts,
        &throttled,
        DRAW
    )));
    facts.key_left = Some(Duration::from_millis(4_999));
    let found = decide(&Profile::new(), &Tally::default(), &facts, &throttled, DRAW);
    assert_eq!(found, Verdict::GiveUp(Stopped::NotRepeatable));
}

#[test]
fn r13_a_429_that_names_a_time_is_cheaper() {
    let price = |trigger, named| match verdict(&Profile::new(), trigger, named) {
        Verdict::Repeat(retry) => retry.price,
        other => panic!("{other:?}"),
    };
    assert_eq!(price(Trigger::TooManyRequests, Some(0)), Price::Scheduled);
    assert_eq!(price(Trigger::TooManyRequests, None), Price::Full);
    assert_eq!(price(Trigger::ServiceUnavailable, Some(0)), Price::Full);
    assert_eq!(price(Trigger::Network, None), Price::Full);
}

#[test]
fn r08_every_profile_bounds_its_attempts() {
    let attempts = [
        (Profile::new(), 3),
        (Profile::openemail(), 3),
        (Profile::payments(), 6),
        (Profile::botix(), 5),
    ];
    for (profile, attempts) in attempts {
        let mut tally = Tally::default();
        let facts = facts();
        let throttled = failure(Trigger::TooManyRequests, Some(0), &facts);
        let mut sent = 1;
        while is_repeated(decide(&profile, &tally, &facts, &throttled, DRAW)) {
            tally.count(Trigger::TooManyRequests);
            sent += 1;
        }
        assert_eq!(sent, attempts, "{profile:?}");
    }
}

fn triggers() -> impl Strategy<Value = Trigger> {
    prop::sample::select(vec![
        Trigger::Network,
        Trigger::RequestTimeout,
        Trigger::Conflict,
        Trigger::TooManyRequests,
        Trigger::InternalServerError,
        Trigger::BadGateway,
        Trigger::ServiceUnavailable,
        Trigger::Unauthorized,
    ])
}

fn profiles() -> impl Strategy<Value = Profile> {
    prop::sample::select(vec![
        Profile::new(),
        Profile::openemail(),
        Profile::payments(),
        Profile::botix(),
        Profile {
            backoff: Backoff::exponential(secs(3), secs(90)),
            ..Profile::new()
        },
    ])
}

proptest! {
    /// Whatever happens, in whatever order: no wait is shorter than the server asked, none longer than the own maximum
    /// or the cap, and a call ends.
    #[test]
    fn r04_r06_every_wait_is_between_the_servers_word_and_the_cap(
        profile in profiles(),
        outcomes in prop::collection::vec((triggers(), prop::option::of(0_u64..100)), 100),
        draw: u32,
    ) {
        let mut tally = Tally::default();
        let facts = facts();
        let mut repeats = 0;
        for (trigger, named) in outcomes {
            let failure = failure(trigger, named, &facts);
            match decide(&profile, &tally, &facts, &failure, Draw(draw)) {
                Verdict::Repeat(retry) => {
                    prop_assert!(retry.wait >= failure.named.unwrap_or_default());
                    prop_assert!(retry.wait <= profile.cap.max(profile.backoff.max()));
                    prop_assert_eq!(retry.until, facts.now + retry.wait);
                    tally.count(trigger);
                    repeats += 1;
                }
                Verdict::Final | Verdict::GiveUp(_) => break,
            }
        }
        prop_assert!(repeats <= profile.retries + 1);
    }
}
