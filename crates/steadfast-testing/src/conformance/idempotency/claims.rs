//! Who wins a key.

use std::{sync::Arc, time::Duration};

use steadfast_idempotency::{Claimed, RecordId, Store};
use tokio::{sync::Barrier, task::JoinSet};

use super::subject::{LEASE, Owner, Step, Subject, TTL, View, answer, claim, fresh_id, random};

const CLAIMANTS: usize = 64;

/// I13, I1: of 64 claims at once one is won, and the others find the winner's request running.
///
/// Races for real only on a multi-thread runtime.
pub async fn i13_one_of_64_racing_claims_wins<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    for _ in 0..8 {
        race(subject.store(), fresh_id()).await;
    }
}

/// I13, I1: of 64 claims at once of a key whose lease is over one is won.
pub async fn i13_one_of_64_racing_takeovers_wins<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let ids = [fresh_id(), fresh_id(), fresh_id()];
    for id in ids {
        subject.win(claim(id, Owner::stranger())).await;
    }
    subject.advance(LEASE).await;
    for id in ids {
        race(subject.store(), id).await;
    }
}

/// I13, I3: of 64 claims at once of a key whose record has expired one is won.
pub async fn i13_one_of_64_racing_claims_wins_what_has_expired<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let mut ids = Vec::new();
    for step in Step::SETTLING {
        let (id, owner) = (fresh_id(), Owner::stranger());
        subject.win(claim(id, owner)).await;
        subject.apply(id, owner.token, step).await;
        ids.push(id);
    }
    subject.advance(TTL).await;
    for id in ids {
        race(subject.store(), id).await;
    }
}

/// Claims the free key from many sides at once.
async fn race<St: Store>(store: &St, id: RecordId) {
    let start = Arc::new(Barrier::new(CLAIMANTS));
    let mut claims = JoinSet::new();
    for _ in 0..CLAIMANTS {
        let (store, start) = (store.clone(), Arc::clone(&start));
        claims.spawn(async move {
            let owner = Owner::stranger();
            start.wait().await;
            (owner, answer(store.claim(claim(id, owner)).await))
        });
    }
    let claims = claims.join_all().await;
    let winners = claims
        .iter()
        .filter(|(_, claimed)| matches!(claimed, Claimed::Won(_)))
        .map(|(owner, _)| owner)
        .collect::<Vec<_>>();
    let [winner] = winners[..] else {
        panic!("{} of {CLAIMANTS} claims were won", winners.len());
    };
    for (owner, claimed) in &claims {
        if owner.token == winner.token || matches!(claimed, Claimed::Vanished) {
            continue;
        }
        let expected = Some(View::Running(winner.fingerprint));
        assert_eq!(View::of(claimed), expected, "the losers see the winner");
    }
}

/// I8: a claim whose reply was lost is won again by the token that holds the key, with the same fence, and by nobody
/// else.
pub async fn a_claim_is_won_again_by_its_own_token<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let (id, owner) = (fresh_id(), Owner::stranger());
    let fence = subject.win(claim(id, owner)).await;
    for _ in 0..3 {
        assert_eq!(subject.win(claim(id, owner)).await, fence);
        assert_eq!(subject.look(id).await, View::Running(owner.fingerprint));
    }
    subject.apply(id, owner.token, Step::Complete).await;
    let claimed = subject.claim(claim(id, owner)).await;
    assert_eq!(
        View::of(&claimed),
        Step::Complete.leaves(owner),
        "a repeat that comes after the end does not start anew"
    );
}

/// I8: whoever claims again may rely on a whole lease from then on.
pub async fn the_lease_counts_from_the_repeat_of_a_claim<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let (id, owner) = (fresh_id(), Owner::stranger());
    subject.win(claim(id, owner)).await;
    subject.advance(LEASE / 2).await;
    subject.win(claim(id, owner)).await;
    subject.advance_just_within(LEASE).await;
    assert_eq!(subject.look(id).await, View::Running(owner.fingerprint));
    subject.advance_to_the_end().await;
    subject.assert_free(id).await;
}

/// Each takeover has a higher fence than all before, also long after the lease.
pub async fn the_fence_rises_with_each_takeover<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let id = fresh_id();
    let mut last = subject.win(claim(id, Owner::stranger())).await;
    for wait in [LEASE, LEASE * 2, TTL, LEASE] {
        subject.advance(wait).await;
        let fence = subject.win(claim(id, Owner::stranger())).await;
        assert!(fence > last, "{fence} is not above {last}");
        last = fence;
    }
}

/// A fence is higher than those of all earlier claims of the key, also of claims that came to their end.
pub async fn the_fence_rises_past_release_and_expiry<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let id = fresh_id();
    let mut last = None;
    for step in Step::ALL {
        let owner = Owner::stranger();
        let fence = subject.win(claim(id, owner)).await;
        assert!(Some(fence) > last, "{fence} is not above {last:?}");
        last = Some(fence);
        subject.apply(id, owner.token, step).await;
        subject.advance(LEASE + TTL).await;
    }
}

/// I10: what is done to one key is not seen at another, of the same tenant or of another one.
pub async fn i10_keys_and_tenants_do_not_touch_each_other<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let tenant = random();
    // Keys that differ in one bit only, wherever that is.
    let key = random();
    let mut ids = vec![RecordId::new(tenant, key), fresh_id()];
    for byte in [0, 7, 8, 15, 16, 31] {
        let mut other = key;
        other[byte] ^= 1;
        ids.push(RecordId::new(tenant, other));
    }
    let mut owners = Vec::new();
    for id in &ids {
        let owner = Owner::stranger();
        subject.win(claim(*id, owner)).await;
        owners.push(owner);
    }
    let (first, rest) = ids.split_first().expect("they were just made");
    for step in [Step::Renew, Step::Complete] {
        subject.apply(*first, owners[0].token, step).await;
        for (id, owner) in rest.iter().zip(&owners[1..]) {
            assert_eq!(subject.look(*id).await, View::Running(owner.fingerprint));
        }
    }
    for (id, owner) in rest.iter().zip(&owners[1..]) {
        subject.apply(*id, owner.token, Step::Release).await;
    }
    assert_eq!(
        Some(subject.look(*first).await),
        Step::Complete.leaves(owners[0])
    );
}

/// A clone is the same store.
pub async fn clones_share_the_records<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let (id, owner) = (fresh_id(), Owner::stranger());
    let one = subject.store().clone();
    let won = answer(one.claim(claim(id, owner)).await);
    assert!(matches!(won, Claimed::Won(_)), "not won: {won:?}");
    drop(one);
    assert_eq!(subject.look(id).await, View::Running(owner.fingerprint));
    subject.apply(id, owner.token, Step::Complete).await;
    let other = subject.store().clone();
    let found = answer(other.claim(claim(id, Owner::stranger())).await);
    assert_eq!(View::of(&found), Step::Complete.leaves(owner));
}
