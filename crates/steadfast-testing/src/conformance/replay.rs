//! The suite for [`steadfast_replay::Store`].
//!
//! Each property is a function that takes a fresh store and the one thing that moves its clock, and panics if the store
//! does not have the property. [`replay_store!`](crate::replay_store) makes a test of each.

#![expect(
    clippy::missing_panics_doc,
    reason = "every property panics where it does not hold: that is all it does"
)]

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, SystemTime},
};

use steadfast_replay::{
    Claim, Claimed, Digest, EventId, Life, Once, Recorded, Settled, Store, Token,
};
use tokio::{sync::Barrier, task::JoinSet};

/// Makes a test of each property that every replay store must have.
///
/// `store` makes a fresh, empty store; `advance` moves its clock, and it alone may. The attributes are those of each
/// test.
///
/// ```
/// use steadfast_replay::MemoryStore;
///
/// steadfast_testing::replay_store! {
///     #[tokio::test(start_paused = true)]
///     store: async || MemoryStore::new(10_000),
///     advance: tokio::time::advance,
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! replay_store {
    ($(#[$attribute:meta])* store: $store:expr, advance: $advance:expr,) => {
        $crate::replay_store! {
            @tests [$(#[$attribute])*] [($store)().await, $advance]
            g01_one_of_64_racing_records_is_new
            g01_a_record_is_seen_to_its_end
            g03_one_of_64_racing_claims_wins
            g03_an_event_is_known_by_either_identity
            g03_a_lost_claim_changes_nothing
            g03_a_claim_is_won_again_by_its_own_token
            g04_a_released_event_is_free_at_once
            g04_a_lease_is_live_until_its_end_and_free_from_it_on
            g04_the_fence_rises_with_each_claim
            g04_late_steps_of_a_former_owner_change_nothing
            g04_an_owner_that_lost_one_identity_has_lost_the_event
            g04_the_fence_is_above_those_of_each_identity
            g03_a_done_event_is_done_for_its_retention
        }
    };
    (@tests $attributes:tt $subject:tt $($property:ident)*) => {
        $($crate::replay_store! { @test $attributes $subject $property })*
    };
    (@test [$($attributes:tt)*] [$($subject:tt)*] $property:ident) => {
        $($attributes)*
        async fn $property() {
            $crate::conformance::replay::$property($($subject)*).await;
        }
    };
}

const RACERS: usize = 64;
const LEASE: Duration = Duration::from_secs(2);
const RETENTION: Duration = Duration::from_secs(10);
/// How much longer than it must a store may keep an entry, and how far off its clock may be.
const EDGE: Duration = Duration::from_secs(2);

/// G01: of 64 records of one digest at once one is new.
pub async fn g01_one_of_64_racing_records_is_new<St: Store>(store: St, _: impl AsyncFn(Duration)) {
    let dated = Life::Until {
        now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000),
        until: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000),
        keep: RETENTION,
    };
    for life in [Life::For(RETENTION), dated] {
        let once = once(life);
        let recorded = race(&store, move |store| async move {
            answer(store.record(once).await)
        })
        .await;
        assert_eq!(count(&recorded, &Recorded::New), 1);
        assert_eq!(count(&recorded, &Recorded::Seen), RACERS - 1);
    }
}

/// G01: a digest is seen for as long as its life says, and another one is not.
pub async fn g01_a_record_is_seen_to_its_end<St: Store>(
    store: St,
    advance: impl AsyncFn(Duration),
) {
    let first = once(Life::For(RETENTION));
    assert_eq!(answer(store.record(first).await), Recorded::New);
    let other = once(Life::For(RETENTION));
    assert_eq!(answer(store.record(other).await), Recorded::New);
    advance(RETENTION - Duration::from_millis(100)).await;
    assert_eq!(answer(store.record(first).await), Recorded::Seen);
    advance(EDGE).await;
    assert_eq!(answer(store.record(first).await), Recorded::New);
}

/// G03: of 64 claims at once that share any identity one is won.
pub async fn g03_one_of_64_racing_claims_wins<St: Store>(store: St, _: impl AsyncFn(Duration)) {
    let (source, shared) = (random(), random());
    let claimed = race(&store, move |store| async move {
        let event = EventId::new(source, random()).or(shared);
        answer(store.claim(claim(event, Token::random())).await)
    })
    .await;
    let won = claimed
        .iter()
        .filter(|it| matches!(it, Claimed::Won { .. }));
    assert_eq!(won.count(), 1);
    assert_eq!(count(&claimed, &Claimed::Running), RACERS - 1);
}

/// G03: once done, an event is known by each identity alone.
pub async fn g03_an_event_is_known_by_either_identity<St: Store>(
    store: St,
    _: impl AsyncFn(Duration),
) {
    let (source, id, body) = (random(), random(), random());
    let (event, token) = (EventId::new(source, id).or(body), Token::random());
    win(&store, event, token).await;
    for known in [
        EventId::new(source, id),
        EventId::new(source, random()).or(body),
    ] {
        assert_eq!(look(&store, known).await, Claimed::Running);
    }
    apply(store.commit(event, token, RETENTION).await);
    for known in [
        EventId::new(source, id),
        EventId::new(source, random()).or(body),
    ] {
        assert_eq!(look(&store, known).await, Claimed::Done);
    }
}

/// G03: a claim takes all identities or none, so that a duplicate marks nothing as seen.
pub async fn g03_a_lost_claim_changes_nothing<St: Store>(store: St, _: impl AsyncFn(Duration)) {
    let (source, body, other) = (random(), random(), random());
    let (event, token) = (EventId::new(source, body), Token::random());
    win(&store, event, token).await;
    assert_eq!(
        look(&store, EventId::new(source, other).or(body)).await,
        Claimed::Running
    );
    apply(store.commit(event, token, RETENTION).await);
    assert_eq!(
        look(&store, EventId::new(source, other).or(body)).await,
        Claimed::Done
    );
    win(&store, EventId::new(source, other), Token::random()).await;
}

/// G03: a claim whose reply was lost is won again with the same fence, and counts its lease from then on.
pub async fn g03_a_claim_is_won_again_by_its_own_token<St: Store>(
    store: St,
    advance: impl AsyncFn(Duration),
) {
    let (event, token) = (two(), Token::random());
    let fence = win(&store, event, token).await;
    advance(LEASE * 3 / 4).await;
    assert_eq!(win(&store, event, token).await, fence);
    advance(LEASE / 2).await;
    assert_eq!(look(&store, event).await, Claimed::Running);
}

/// G04: what was released is processed again.
pub async fn g04_a_released_event_is_free_at_once<St: Store>(store: St, _: impl AsyncFn(Duration)) {
    let (event, token) = (two(), Token::random());
    win(&store, event, token).await;
    apply(store.release(event, token).await);
    win(&store, event, Token::random()).await;
}

/// G04: a killed owner's event is free when its lease is over, and a renewed one is not.
pub async fn g04_a_lease_is_live_until_its_end_and_free_from_it_on<St: Store>(
    store: St,
    advance: impl AsyncFn(Duration),
) {
    let (event, token) = (two(), Token::random());
    win(&store, event, token).await;
    advance(LEASE / 2).await;
    apply(store.renew(event, token, LEASE, RETENTION).await);
    advance(LEASE - Duration::from_millis(100)).await;
    assert_eq!(look(&store, event).await, Claimed::Running);
    advance(Duration::from_millis(200)).await;
    win(&store, event, Token::random()).await;
}

/// G04: each claim of an event has a higher fence than all before.
pub async fn g04_the_fence_rises_with_each_claim<St: Store>(
    store: St,
    advance: impl AsyncFn(Duration),
) {
    let event = two();
    let mut last = win(&store, event, Token::random()).await;
    for _ in 0..3 {
        advance(LEASE * 2).await;
        let token = Token::random();
        let fence = win(&store, event, token).await;
        assert!(fence > last, "{fence} is not above {last}");
        apply(store.release(event, token).await);
        last = win(&store, event, Token::random()).await;
        assert!(last > fence, "{last} is not above {fence}");
    }
}

/// G04: an owner past its lease commits until somebody else has claimed, and not from then on.
pub async fn g04_late_steps_of_a_former_owner_change_nothing<St: Store>(
    store: St,
    advance: impl AsyncFn(Duration),
) {
    let (event, late) = (two(), Token::random());
    win(&store, event, late).await;
    advance(LEASE * 2).await;
    let owner = Token::random();
    win(&store, event, owner).await;
    for settled in [
        store.renew(event, late, LEASE, RETENTION).await,
        store.commit(event, late, RETENTION).await,
        store.release(event, late).await,
    ] {
        assert_eq!(answer(settled), Settled::Stale);
    }
    assert_eq!(look(&store, event).await, Claimed::Running);
    advance(LEASE * 2).await;
    apply(store.commit(event, owner, RETENTION).await);
    assert_eq!(look(&store, event).await, Claimed::Done);
}

/// G04: an owner that lost one of its two identities has lost both, and leaves the other one free.
pub async fn g04_an_owner_that_lost_one_identity_has_lost_the_event<St: Store>(
    store: St,
    advance: impl AsyncFn(Duration),
) {
    let (source, id, body) = (random(), random(), random());
    let (event, late) = (EventId::new(source, id).or(body), Token::random());
    win(&store, event, late).await;
    advance(LEASE * 2).await;
    let (other, owner) = (EventId::new(source, id).or(random()), Token::random());
    win(&store, other, owner).await;
    for settled in [
        store.renew(event, late, LEASE, RETENTION).await,
        store.commit(event, late, RETENTION).await,
        store.release(event, late).await,
    ] {
        assert_eq!(answer(settled), Settled::Stale);
    }
    assert_eq!(look(&store, event).await, Claimed::Running);
    win(&store, EventId::new(source, body), Token::random()).await;
    apply(store.commit(other, owner, RETENTION).await);
    assert_eq!(look(&store, EventId::new(source, id)).await, Claimed::Done);
}

/// G04: a claim of two identities has a higher fence than the earlier claims of either.
pub async fn g04_the_fence_is_above_those_of_each_identity<St: Store>(
    store: St,
    _: impl AsyncFn(Duration),
) {
    let (source, id, body) = (random(), random(), random());
    let mut highest = 0;
    for (identity, times) in [(id, 1), (body, 4)] {
        for _ in 0..times {
            let (event, token) = (EventId::new(source, identity), Token::random());
            highest = highest.max(win(&store, event, token).await);
            apply(store.release(event, token).await);
        }
    }
    let both = EventId::new(source, id).or(body);
    let fence = win(&store, both, Token::random()).await;
    assert!(fence > highest, "{fence} is not above {highest}");
}

/// G03: a done event stays done for its retention, and is new after it.
pub async fn g03_a_done_event_is_done_for_its_retention<St: Store>(
    store: St,
    advance: impl AsyncFn(Duration),
) {
    let (event, token) = (two(), Token::random());
    win(&store, event, token).await;
    apply(store.commit(event, token, RETENTION).await);
    advance(RETENTION - Duration::from_millis(100)).await;
    assert_eq!(look(&store, event).await, Claimed::Done);
    advance(EDGE).await;
    win(&store, event, Token::random()).await;
}

/// A store for `entries` entries that is full refuses what is new, keeps what it has, and takes new ones afterwards.
pub async fn a_full_store_refuses_what_is_new_and_keeps_the_old<St: Store>(
    store: St,
    advance: impl AsyncFn(Duration),
    entries: usize,
) {
    let kept: Vec<Once> = (0..entries).map(|_| once(Life::For(RETENTION))).collect();
    for once in &kept {
        assert_eq!(answer(store.record(*once).await), Recorded::New);
    }
    for _ in 0..3 {
        let new = once(Life::For(RETENTION));
        assert_eq!(answer(store.record(new).await), Recorded::Full);
        assert_eq!(look(&store, two()).await, Claimed::Full);
    }
    for once in &kept {
        assert_eq!(answer(store.record(*once).await), Recorded::Seen);
    }
    advance(RETENTION + EDGE).await;
    win(&store, two(), Token::random()).await;
}

async fn race<St, T, F>(store: &St, step: impl Fn(St) -> F + Clone + Send + 'static) -> Vec<T>
where
    St: Store,
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(Barrier::new(RACERS));
    let mut racers = JoinSet::new();
    for _ in 0..RACERS {
        let (store, start, step) = (store.clone(), Arc::clone(&start), step.clone());
        racers.spawn(async move {
            start.wait().await;
            step(store).await
        });
    }
    racers.join_all().await
}

fn count<T: PartialEq>(all: &[T], one: &T) -> usize {
    all.iter().filter(|it| *it == one).count()
}

/// What the store answered. A store that fails has no property.
fn answer<T, E: std::error::Error>(result: Result<T, E>) -> T {
    result.expect("the store answers")
}

fn apply<E: std::error::Error>(settled: Result<Settled, E>) {
    assert_eq!(answer(settled), Settled::Applied);
}

async fn win<St: Store>(store: &St, event: EventId, token: Token) -> u64 {
    match answer(store.claim(claim(event, token)).await) {
        Claimed::Won { fence } => fence,
        other => panic!("not won: {other:?}"),
    }
}

/// What somebody else's claim finds. It must not win, as then it would change what it looks at.
async fn look<St: Store>(store: &St, event: EventId) -> Claimed {
    let claimed = answer(store.claim(claim(event, Token::random())).await);
    assert!(
        !matches!(claimed, Claimed::Won { .. }),
        "nothing live is there"
    );
    claimed
}

const fn claim(event: EventId, token: Token) -> Claim {
    Claim {
        event,
        token,
        lease: LEASE,
        retention: RETENTION,
    }
}

fn once(life: Life) -> Once {
    Once {
        digest: random(),
        owner: random(),
        life,
    }
}

fn two() -> EventId {
    EventId::new(random(), random()).or(random())
}

fn random() -> Digest {
    let mut bytes = [0; 32];
    fastrand::fill(&mut bytes);
    Digest::new(bytes)
}
