//! The memory store against the suite that every store has to pass, and what is its own.

use std::{
    future::Future,
    time::{Duration, SystemTime},
};

use steadfast_replay::{
    BoxStore, Claim, Claimed, Digest, EventId, Life, MemoryStore, Once, Recorded, Settled,
    Store as _, Token,
};
use steadfast_testing::conformance::replay;
use tokio::time::advance;

mod memory {
    use super::{MemoryStore, advance};

    steadfast_testing::replay_store! {
        #[tokio::test(start_paused = true)]
        store: async || MemoryStore::new(10_000),
        advance: advance,
    }
}

mod boxed {
    use super::{BoxStore, MemoryStore, advance};

    steadfast_testing::replay_store! {
        #[tokio::test(start_paused = true)]
        store: async || BoxStore::new(MemoryStore::new(10_000)),
        advance: advance,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g01_g03_one_of_64_that_race_on_many_threads_wins() {
    let no_clock = async |_by: Duration| unreachable!("these properties need no time");
    for _ in 0..8 {
        let store = MemoryStore::new(10_000);
        replay::g01_one_of_64_racing_records_is_new(store.clone(), no_clock).await;
        replay::g03_one_of_64_racing_claims_wins(store, no_clock).await;
    }
}

#[tokio::test(start_paused = true)]
async fn g01_a_full_store_refuses_what_is_new_and_keeps_the_old() {
    for entries in [2, 64, 200] {
        let store = MemoryStore::new(entries);
        replay::a_full_store_refuses_what_is_new_and_keeps_the_old(store, advance, entries).await;
    }
}

fn dated(n: u32, now: u64, until: u64) -> Once {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let mut digest = [7; 32];
    digest[..4].copy_from_slice(&n.to_le_bytes());
    Once {
        digest: Digest::new(digest),
        owner: Digest::new([1; 32]),
        life: Life::Until {
            now: at(now),
            until: at(until),
            keep: Duration::from_secs(65),
        },
    }
}

#[tokio::test(start_paused = true)]
async fn g02_a_clock_that_is_set_back_revives_nothing() {
    let store = MemoryStore::new(100);
    let record = |once| store.record(once);
    assert_eq!(record(dated(1, 100, 130)).await, Ok(Recorded::New));
    assert_eq!(record(dated(1, 130, 130)).await, Ok(Recorded::Seen));
    // The clock leaps forward, the entry is removed, and the clock is set right.
    assert_eq!(record(dated(2, 1_000, 1_030)).await, Ok(Recorded::New));
    store.purge(100).await.unwrap();
    assert_eq!(store.len(), 1);
    assert_eq!(record(dated(1, 101, 130)).await, Ok(Recorded::Expired));
    assert_eq!(record(dated(3, 101, 131)).await, Ok(Recorded::New));
}

#[tokio::test(start_paused = true)]
async fn g01_a_key_at_its_quota_leaves_room_for_others() {
    let store = MemoryStore::with_quota(100, 2);
    let other = |n| Once {
        owner: Digest::new([2; 32]),
        ..dated(n, 100, 130)
    };
    assert_eq!(store.record(dated(1, 100, 130)).await, Ok(Recorded::New));
    assert_eq!(store.record(dated(2, 100, 130)).await, Ok(Recorded::New));
    assert_eq!(
        store.record(dated(3, 100, 130)).await,
        Ok(Recorded::OverQuota)
    );
    assert_eq!(store.record(dated(1, 100, 130)).await, Ok(Recorded::Seen));
    assert_eq!(store.record(other(4)).await, Ok(Recorded::New));
}

#[test]
fn a_million_live_entries_take_at_most_64_bytes_each() {
    const ENTRIES: u32 = 1_000_000;
    let store = MemoryStore::new(ENTRIES as usize);
    let info = allocation_counter::measure(|| {
        for n in 0..ENTRIES {
            let mut once = dated(n, 100, 130 + u64::from(n % 60));
            let spread = u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut digest = *once.digest.as_bytes();
            digest[..8].copy_from_slice(&spread.to_le_bytes());
            digest[15] = spread.to_le_bytes()[3];
            once.digest = Digest::new(digest);
            let recorded = futures_util::FutureExt::now_or_never(store.record(once));
            assert_eq!(recorded, Some(Ok(Recorded::New)));
        }
    });
    assert_eq!(store.len(), ENTRIES as usize);
    let each = info.bytes_current / i64::from(ENTRIES);
    assert!(each <= 64, "{each} bytes an entry");
}

fn event(n: u32) -> EventId {
    EventId::new(Digest::new([9; 32]), dated(n, 0, 0).digest)
}

fn claim(n: u32) -> Claim {
    Claim {
        event: event(n),
        token: Token::from_u128(u128::from(n)),
        lease: Duration::from_secs(30),
        retention: Duration::from_secs(60),
    }
}

fn done<F: Future>(step: F) -> F::Output {
    futures_util::FutureExt::now_or_never(step).expect("the memory store answers at once")
}

#[tokio::test(start_paused = true)]
async fn g05_memory_taken_in_a_burst_is_given_back_when_the_burst_is_over() {
    const BURST: u32 = 20_000;
    let store = MemoryStore::with_quota(1_000_000, 10);
    let burst = allocation_counter::measure(|| {
        for n in 0..BURST {
            let mut once = dated(n, 100, 130);
            once.owner = Digest::new(*once.digest.as_bytes());
            assert_eq!(done(store.record(once)), Ok(Recorded::New));
            assert!(matches!(
                done(store.claim(claim(n))),
                Ok(Claimed::Won { .. })
            ));
        }
    });
    assert_eq!(store.len(), 2 * BURST as usize);
    advance(Duration::from_secs(91)).await;
    let after = allocation_counter::measure(|| {
        assert_eq!(
            done(store.record(dated(BURST, 1_000, 1_030))),
            Ok(Recorded::New)
        );
        while done(store.purge(1_000)).unwrap() > 0 {}
    });
    assert_eq!(store.len(), 1);
    let kept = burst.bytes_current + after.bytes_current;
    assert!(
        kept * 50 < burst.bytes_current,
        "{kept} bytes are kept of {}",
        burst.bytes_current
    );
}

#[tokio::test(start_paused = true)]
async fn g01_what_is_alive_is_known_after_memory_was_given_back() {
    let store = MemoryStore::new(100_000);
    for n in 0..20_000 {
        let until = if n % 16 == 0 {
            500 + u64::from(n % 7)
        } else {
            130
        };
        assert_eq!(store.record(dated(n, 100, until)).await, Ok(Recorded::New));
    }
    store.record(dated(20_000, 200, 230)).await.unwrap();
    while store.purge(777).await.unwrap() > 0 {}
    for n in (0..20_000).step_by(16) {
        assert_eq!(store.record(dated(n, 200, 500)).await, Ok(Recorded::Seen));
    }
    assert_eq!(store.len(), 20_000 / 16 + 1);
    store.record(dated(20_001, 600, 630)).await.unwrap();
    while store.purge(777).await.unwrap() > 0 {}
    assert_eq!(store.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn g04_claims_of_killed_owners_are_removed_in_passing_and_renewed_ones_are_not() {
    let store = MemoryStore::new(1_000);
    for n in 0..100 {
        store.claim(claim(n)).await.unwrap();
    }
    advance(Duration::from_secs(60)).await;
    let (lease, retention) = (Duration::from_secs(30), Duration::from_secs(60));
    let renewed = store.renew(event(7), Token::from_u128(7), lease, retention);
    assert_eq!(renewed.await, Ok(Settled::Applied));
    advance(Duration::from_secs(31)).await;
    for n in 100..130 {
        store.claim(claim(n)).await.unwrap();
    }
    assert_eq!(store.len(), 31);
    let committed = store.commit(event(7), Token::from_u128(7), retention);
    assert_eq!(committed.await, Ok(Settled::Applied));
}

#[tokio::test(start_paused = true)]
async fn g05_a_claim_takes_at_most_320_bytes_an_identity() {
    const CLAIMS: u32 = 100_000;
    let store = MemoryStore::new(CLAIMS as usize);
    let info = allocation_counter::measure(|| {
        for n in 0..CLAIMS {
            let won = done(store.claim(claim(n)));
            assert!(matches!(won, Ok(Claimed::Won { .. })));
        }
    });
    let each = info.bytes_current / i64::from(CLAIMS);
    assert!(each <= 320, "{each} bytes an identity");
}
