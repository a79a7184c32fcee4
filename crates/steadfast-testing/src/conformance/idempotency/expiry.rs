//! How long what lives.

use std::time::Duration;

use steadfast_idempotency::{Settled, Store};

use super::subject::{LEASE, Owner, Step, Subject, TOMBSTONE, TTL, View, answer, claim, fresh_id};

/// I1, I3: nobody else wins a key before its lease is over, and from that very instant on anybody does.
pub async fn a_lease_is_live_until_its_end_and_free_from_it_on<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let (id, owner) = (fresh_id(), Owner::stranger());
    subject.win(claim(id, owner)).await;
    subject.advance_just_within(LEASE).await;
    assert_eq!(subject.look(id).await, View::Running(owner.fingerprint));
    subject.advance_to_the_end().await;
    subject.assert_free(id).await;
}

/// A renewal makes the lease last as long as it says from then on, be that longer or shorter than before.
pub async fn a_renewed_lease_counts_from_the_renewal<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    for lease in [LEASE, LEASE * 4, LEASE / 4] {
        let (id, owner) = (fresh_id(), Owner::stranger());
        subject.win(claim(id, owner)).await;
        for _ in 0..3 {
            subject.advance(LEASE / 8).await;
            let renewed = subject.store().renew(id, owner.token, lease, TTL);
            assert_eq!(answer(renewed.await), Settled::Applied);
        }
        subject.advance_just_within(lease).await;
        assert_eq!(subject.look(id).await, View::Running(owner.fingerprint));
        subject.advance_to_the_end().await;
        subject.assert_free(id).await;
    }
}

/// I11, I3: an answer, a tombstone and a hold live for their ttl from the step that made them, and not from the
/// claim, and the key is free from that very instant on.
pub async fn i11_a_settled_record_lives_for_its_ttl_from_then_on<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    for step in Step::SETTLING {
        let (id, owner) = (fresh_id(), Owner::stranger());
        subject.win(claim(id, owner)).await;
        subject.advance(LEASE / 2).await;
        subject.apply(id, owner.token, step).await;
        subject.advance_just_within(TTL).await;
        assert_eq!(Some(subject.look(id).await), step.leaves(owner));
        subject.advance_to_the_end().await;
        subject.assert_free(id).await;
    }
}

/// I11: what is settled for less than the rest of the lease is free when that is over, and not when the claim would
/// have been.
pub async fn a_short_ttl_is_not_stretched_by_the_lease<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let ttl = LEASE / 2;
    for step in Step::SETTLING {
        let (id, owner) = (fresh_id(), Owner::stranger());
        subject.win(claim(id, owner)).await;
        let store = subject.store();
        let settled = answer(match step {
            Step::Hold => store.hold(id, owner.token, ttl).await,
            Step::Tombstone => store.tombstone(id, owner.token, TOMBSTONE, ttl).await,
            _ => {
                store
                    .complete(id, owner.token, Step::Complete.record(), ttl)
                    .await
            }
        });
        assert_eq!(settled, Settled::Applied);
        subject.advance_just_within(ttl).await;
        assert_eq!(Some(subject.look(id).await), step.leaves(owner));
        subject.advance_to_the_end().await;
        subject.assert_free(id).await;
    }
}

/// I3: after the end of its record a key is as good as new: claimed for another request, with a whole lease.
pub async fn what_has_expired_is_claimed_as_new<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    for step in Step::SETTLING {
        let (id, former, owner) = (fresh_id(), Owner::stranger(), Owner::stranger());
        subject.win(claim(id, former)).await;
        subject.apply(id, former.token, step).await;
        subject.advance(TTL).await;
        subject.win(claim(id, owner)).await;
        subject.advance_just_within(LEASE).await;
        assert_eq!(subject.look(id).await, View::Running(owner.fingerprint));
        subject.apply(id, owner.token, step).await;
        assert_eq!(Some(subject.look(id).await), step.leaves(owner));
    }
}

/// I7: a purge removes no more than it is allowed to, and nothing that has not expired, a claim whose lease is over
/// included: its fence has to be known to whoever takes it over.
pub async fn purge_keeps_what_has_not_expired<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    const EXPIRED: usize = 12;
    let mut expired = Vec::new();
    for step in Step::SETTLING.into_iter().cycle().take(EXPIRED) {
        let (id, owner) = (fresh_id(), Owner::stranger());
        subject.win(claim(id, owner)).await;
        subject.apply(id, owner.token, step).await;
        expired.push(id);
    }
    subject.advance(TTL - LEASE).await;
    let lapsed = fresh_id();
    let fence = subject.win(claim(lapsed, Owner::stranger())).await;
    subject.advance(LEASE).await;
    let mut live = Vec::new();
    for step in [Step::Complete, Step::Hold, Step::Renew, Step::Tombstone] {
        let (id, owner) = (fresh_id(), Owner::stranger());
        subject.win(claim(id, owner)).await;
        subject.apply(id, owner.token, step).await;
        live.push((id, step.leaves(owner)));
    }

    assert_eq!(answer(subject.store().purge(0).await), 0);
    let mut purged = 0;
    for limit in [1, 5, 100, 100] {
        let count = answer(subject.store().purge(limit).await);
        assert!(count <= limit, "{count} at a limit of {limit}");
        purged += count;
    }
    assert!(
        purged <= EXPIRED,
        "{purged} were purged, {EXPIRED} had expired"
    );

    for (id, left) in live {
        assert_eq!(Some(subject.look(id).await), left);
    }
    let successor = subject.win(claim(lapsed, Owner::stranger())).await;
    assert!(successor > fence, "{successor} is not above {fence}");
    for id in expired {
        subject.assert_free(id).await;
    }
}
