//! What a store with a limit does when it is reached.
//!
//! Not every store has one, so these are not part of [`idempotency_store!`](crate::idempotency_store).

use std::time::Duration;

use bytes::Bytes;
use steadfast_idempotency::{Claimed, Record, RecordId, Settled, Store};

use super::subject::{
    LEASE, Owner, Step, Subject, TOMBSTONE, TTL, View, answer, claim, fresh_id, random,
};

/// A store with room for `capacity` records, at least 8, refuses one more, keeps those it has, whatever their state,
/// and serves them; room comes back by release and by expiry, and by nothing else.
pub async fn a_full_store_refuses_new_keys_and_keeps_the_old<St, A>(
    subject: Subject<St, A>,
    capacity: usize,
) where
    St: Store,
    A: AsyncFn(Duration),
{
    let mut records = Vec::new();
    for step in [Step::Complete, Step::Hold, Step::Renew, Step::Tombstone]
        .into_iter()
        .cycle()
        .take(capacity)
    {
        let (id, owner) = (fresh_id(), Owner::stranger());
        subject.win(claim(id, owner)).await;
        subject.apply(id, owner.token, step).await;
        records.push((id, owner, step));
    }
    for _ in 0..2 * capacity {
        assert_full(&subject, fresh_id()).await;
    }
    for (id, owner, step) in &records {
        assert_eq!(Some(subject.look(*id).await), step.leaves(*owner));
    }

    // A claim that is running is renewed, won again, and comes to its end.
    let mut running = records
        .iter()
        .filter(|(_, _, step)| *step == Step::Renew)
        .map(|(id, owner, _)| (*id, *owner));
    let (id, owner) = running.next().expect("every fourth record is running");
    subject.win(claim(id, owner)).await;
    subject.apply(id, owner.token, Step::Renew).await;
    subject.apply(id, owner.token, Step::Complete).await;
    assert_full(&subject, fresh_id()).await;

    // A release makes room for one.
    let (released, owner) = running.next().expect("there are at least two");
    subject.apply(released, owner.token, Step::Release).await;
    subject.win(claim(fresh_id(), Owner::stranger())).await;
    assert_full(&subject, released).await;

    // A lease that is over makes none, but may be taken over.
    subject.advance(LEASE).await;
    assert_full(&subject, fresh_id()).await;
    let mut live = 0;
    for (id, _) in running {
        subject.win(claim(id, Owner::stranger())).await;
        live += 1;
    }

    // Expiry makes room, without a purge: for all but those that were just taken over.
    subject.advance(TTL).await;
    for _ in live..capacity {
        subject.win(claim(fresh_id(), Owner::stranger())).await;
    }
    assert_full(&subject, fresh_id()).await;
}

/// An answer that finds no room among `bytes` bytes changes nothing: the claim stands, and can be settled otherwise.
pub async fn an_answer_without_room_leaves_the_claim<St, A>(subject: Subject<St, A>, bytes: usize)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let (id, owner) = (fresh_id(), Owner::stranger());
    let record = |len| Record::from(Bytes::from(vec![b'x'; len]));
    subject.win(claim(id, owner)).await;
    for _ in 0..2 {
        let completed = subject
            .store()
            .complete(id, owner.token, record(bytes + 1), TTL);
        assert_eq!(answer(completed.await), Settled::NoRoom);
        assert_eq!(subject.look(id).await, View::Running(owner.fingerprint));
    }
    let settled = subject.store().tombstone(id, owner.token, TOMBSTONE, TTL);
    assert_eq!(answer(settled.await), Settled::Applied);
    assert_eq!(Some(subject.look(id).await), Step::Tombstone.leaves(owner));

    // One that was stored gives its room back: a store may find out that it has expired a lease later.
    for _ in 0..3 {
        let (id, owner) = (fresh_id(), Owner::stranger());
        subject.win(claim(id, owner)).await;
        let completed = subject
            .store()
            .complete(id, owner.token, record(bytes), TTL);
        assert_eq!(answer(completed.await), Settled::Applied);
        subject.advance(TTL + LEASE).await;
    }
}

/// A tenant with `cap` records gets no more, and others do.
pub async fn a_tenant_at_its_cap_leaves_room_for_others<St, A>(subject: Subject<St, A>, cap: usize)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let tenant = random();
    let mut last = None;
    for _ in 0..cap {
        let (id, owner) = (RecordId::new(tenant, random()), Owner::stranger());
        subject.win(claim(id, owner)).await;
        last = Some((id, owner));
    }
    assert_full(&subject, RecordId::new(tenant, random())).await;
    subject.win(claim(fresh_id(), Owner::stranger())).await;

    let (id, owner) = last.expect("a cap of 0 has nothing to test");
    assert_eq!(subject.look(id).await, View::Running(owner.fingerprint));
    subject.apply(id, owner.token, Step::Release).await;
    let next = RecordId::new(tenant, random());
    subject.win(claim(next, Owner::stranger())).await;
    assert_full(&subject, RecordId::new(tenant, random())).await;
}

async fn assert_full<St, A>(subject: &Subject<St, A>, id: RecordId)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let claimed = subject.claim(claim(id, Owner::stranger())).await;
    assert!(matches!(claimed, Claimed::Full), "not full: {claimed:?}");
}
