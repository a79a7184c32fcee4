//! The memory store against the suite that every store has to pass.

use std::time::Duration;

use steadfast_idempotency::{BoxStore, MemoryStore};
use steadfast_testing::conformance::idempotency::{capacity, claims, subject::Subject};
use tokio::time::advance;

const MIB: usize = 1024 * 1024;

mod memory {
    use super::{MIB, MemoryStore, advance};

    steadfast_testing::idempotency_store! {
        #[tokio::test(start_paused = true)]
        store: async || MemoryStore::new(10_000, MIB),
        advance: advance,
    }
}

mod boxed {
    use super::{BoxStore, MIB, MemoryStore, advance};

    steadfast_testing::idempotency_store! {
        #[tokio::test(start_paused = true)]
        store: async || BoxStore::new(MemoryStore::new(10_000, MIB)),
        advance: advance,
    }
}

mod with_tenant_cap {
    use super::{MIB, MemoryStore, advance};

    steadfast_testing::idempotency_store! {
        #[tokio::test(start_paused = true)]
        store: async || MemoryStore::with_tenant_cap(10_000, MIB, 100),
        advance: advance,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i13_one_of_64_claims_that_race_on_many_threads_wins() {
    let store = MemoryStore::new(10_000, MIB);
    let no_clock = async |_by: Duration| unreachable!("this property needs no time");
    for _ in 0..16 {
        let subject = Subject::new(store.clone(), no_clock);
        claims::i13_one_of_64_racing_claims_wins(subject).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_store_refuses_new_keys_and_keeps_the_old() {
    for entries in [8, 64, 200] {
        let subject = Subject::new(MemoryStore::new(entries, MIB), advance);
        capacity::a_full_store_refuses_new_keys_and_keeps_the_old(subject, entries).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_room_leaves_the_claim() {
    let subject = Subject::new(MemoryStore::new(100, 1000), advance);
    capacity::an_answer_without_room_leaves_the_claim(subject, 1000).await;
}

#[tokio::test(start_paused = true)]
async fn a_tenant_at_its_cap_leaves_room_for_others() {
    let store = MemoryStore::with_tenant_cap(100, MIB, 5);
    let subject = Subject::new(store, advance);
    capacity::a_tenant_at_its_cap_leaves_room_for_others(subject, 5).await;
}
