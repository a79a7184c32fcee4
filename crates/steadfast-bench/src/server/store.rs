use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use steadfast::idempotency::{
    Claim, Fingerprint, IdempotencyLayer, MemoryStore, Record, RecordId, Scope, Store as _, Token,
};

use crate::message::CONTENT;

/// The layer over a store that holds so many completed calls.
pub(super) fn layer(live: usize) -> IdempotencyLayer<MemoryStore> {
    IdempotencyLayer::new(filled(live), Scope::global())
}

fn filled(live: usize) -> MemoryStore {
    let store = MemoryStore::new(1 << 24, 1 << 34);
    let mut random = fastrand::Rng::with_seed(live as u64);
    for _ in 0..live {
        complete_a_call(&store, &mut random);
    }
    store
}

/// As the layer does it. The ids are digests, which random bytes stand for.
fn complete_a_call(store: &MemoryStore, random: &mut fastrand::Rng) {
    let ttl = Duration::from_secs(24 * 60 * 60);
    let mut digest = [0; 32];
    random.fill(&mut digest);
    let claim = Claim {
        id: RecordId::new([0; 32], digest),
        fingerprint: Fingerprint::new(digest),
        token: Token::from_u128(random.u128(..)),
        lease: Duration::from_secs(30),
        ttl,
    };
    let claimed = store.claim(claim).now_or_never();
    let record = Record::from(Bytes::copy_from_slice(&[CONTENT, &CONTENT[..64]].concat()));
    let completed = store
        .complete(claim.id, claim.token, record, ttl)
        .now_or_never();
    assert!(
        claimed.is_some() && completed.is_some(),
        "a memory store answers at once"
    );
}
