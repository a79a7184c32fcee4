//! The memory store against the suite that every store has to pass, and what is its own.

use std::time::{Duration, SystemTime};

use steadfast_replay::{BoxStore, Digest, Life, MemoryStore, Once, Recorded, Store as _};
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
