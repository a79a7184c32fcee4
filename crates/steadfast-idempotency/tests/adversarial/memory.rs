//! A memory store that many tenants and many records press on.

use steadfast_idempotency::{
    Claim, Claimed, Fingerprint, MemoryStore, Record, RecordId, Settled, Store as _, Token,
};

use super::kit::seconds;

fn claim(tenant: u8, key: u16) -> Claim {
    let mut digest = [tenant; 32];
    digest[..2].copy_from_slice(&key.to_be_bytes());
    // Which part of the store it is in.
    digest[31] = key.to_be_bytes()[1];
    Claim {
        id: RecordId::new([tenant; 32], digest),
        fingerprint: Fingerprint::new([0; 32]),
        token: Token::random(),
        lease: seconds(1),
        ttl: seconds(10),
    }
}

async fn done(store: &MemoryStore, claim: Claim) {
    let Ok(claimed) = store.claim(claim).await;
    assert!(matches!(claimed, Claimed::Won(_)), "{claimed:?}");
    let record = Record::from(bytes::Bytes::from_static(b"record"));
    let Ok(settled) = store
        .complete(claim.id, claim.token, record, claim.ttl)
        .await;
    assert_eq!(settled, Settled::Applied);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_whose_records_have_all_expired_is_not_refused_for_the_expired_of_others() {
    let store = MemoryStore::with_tenant_cap(10_000, 1_000_000, 1);
    // In the part that is looked at last, behind thousands of others.
    done(&store, claim(255, 63)).await;
    for key in 0..5_000 {
        let tenant = u8::try_from(key % 250).unwrap();
        let mut other = claim(tenant, key);
        // Each of its own tenant, so that the cap does not matter.
        let mut own = [tenant; 32];
        own[..2].copy_from_slice(&key.to_be_bytes());
        other.id = RecordId::new(own, *other.id.key());
        done(&store, other).await;
    }
    tokio::time::advance(seconds(20)).await;
    let Ok(claimed) = store.claim(claim(255, 0)).await;
    assert!(matches!(claimed, Claimed::Won(_)), "{claimed:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_keys_that_came_and_went_in_every_state() {
    let store = MemoryStore::with_tenant_cap(64, 1_000, 64);
    for round in 0..200_u16 {
        for key in 0..64 {
            let claim = claim(1, key);
            let Ok(claimed) = store.claim(claim).await;
            assert!(
                matches!(claimed, Claimed::Won(_)),
                "round {round}: {claimed:?}"
            );
            let (id, token) = (claim.id, claim.token);
            let Ok(settled) = match key % 4 {
                0 => store.release(id, token).await,
                1 => store.hold(id, token, claim.ttl).await,
                2 => {
                    let record = Record::from(bytes::Bytes::from_static(b"record"));
                    store.complete(id, token, record, claim.ttl).await
                }
                _ => store.renew(id, token, claim.lease, claim.ttl).await,
            };
            assert_eq!(settled, Settled::Applied);
        }
        tokio::time::advance(seconds(30)).await;
    }
    let Ok(_) = store.purge(usize::MAX).await;
    assert!(store.is_empty(), "{store:?}");
    // All of the room is there again: entries, bytes and the tenant's share.
    for key in 0..64 {
        done(&store, claim(1, key)).await;
    }
}
