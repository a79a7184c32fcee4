//! What an owner may do with its claim, and what nobody else may.

use std::time::Duration;

use bytes::Bytes;
use steadfast_idempotency::{Record, RecordId, Settled, Store, Token, Tombstone, TombstoneReason};

use super::subject::{LEASE, Owner, Step, Subject, TTL, View, answer, claim, fresh_id};

/// I08: a completed answer comes back as it was given, whatever its bytes.
pub async fn i08_an_answer_is_given_back_byte_for_byte<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let every_byte = (0..=u8::MAX).collect::<Vec<_>>();
    for bytes in [
        Vec::new(),
        vec![0],
        every_byte.clone(),
        every_byte.repeat(256),
    ] {
        let (id, owner) = (fresh_id(), Owner::stranger());
        let record = Record::from(Bytes::from(bytes));
        subject.win(claim(id, owner)).await;
        let completed = subject
            .store()
            .complete(id, owner.token, record.clone(), TTL);
        assert_eq!(answer(completed.await), Settled::Applied);
        for _ in 0..2 {
            let expected = View::Completed(owner.fingerprint, record.clone());
            assert_eq!(subject.look(id).await, expected);
        }
    }
}

/// A tombstone comes back as it was given, whatever its status and reason.
pub async fn a_tombstone_is_given_back<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    for reason in [
        TombstoneReason::BodyError,
        TombstoneReason::NotSaved,
        TombstoneReason::Streamed,
        TombstoneReason::TooLarge,
    ] {
        for status in [101, 200, 201, 999] {
            let (id, owner) = (fresh_id(), Owner::stranger());
            let tombstone = Tombstone { status, reason };
            subject.win(claim(id, owner)).await;
            let settled = subject.store().tombstone(id, owner.token, tombstone, TTL);
            assert_eq!(answer(settled.await), Settled::Applied);
            for _ in 0..2 {
                let expected = View::Tombstone(owner.fingerprint, tombstone);
                assert_eq!(subject.look(id).await, expected);
            }
        }
    }
}

/// A held key can be won by nobody, its former owner included.
pub async fn a_held_key_is_blocked<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let (id, owner) = (fresh_id(), Owner::stranger());
    subject.win(claim(id, owner)).await;
    subject.apply(id, owner.token, Step::Hold).await;
    let held = View::Held(owner.fingerprint);
    assert_eq!(subject.look(id).await, held);
    let again = subject.claim(claim(id, owner)).await;
    assert_eq!(View::of(&again), Some(held));
}

/// I12: a released key is free at once, for any request.
pub async fn i12_a_released_key_is_free_at_once<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    let id = fresh_id();
    for _ in 0..3 {
        let owner = Owner::stranger();
        subject.win(claim(id, owner)).await;
        assert_eq!(subject.look(id).await, View::Running(owner.fingerprint));
        subject.apply(id, owner.token, Step::Release).await;
    }
    subject.assert_free(id).await;
}

/// I09, I6: the request that a key was claimed for is known in every state, also after a renewal and a takeover.
pub async fn i09_the_fingerprint_stays_in_every_state<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    for step in Step::ALL {
        let (id, owner) = (fresh_id(), Owner::stranger());
        subject.win(claim(id, Owner::stranger())).await;
        subject.advance(LEASE).await;
        subject.win(claim(id, owner)).await;
        assert_eq!(subject.look(id).await, View::Running(owner.fingerprint));
        subject.apply(id, owner.token, Step::Renew).await;
        subject.apply(id, owner.token, step).await;
        if let Some(left) = step.leaves(owner) {
            assert_eq!(subject.look(id).await, left);
        }
    }
}

/// I2: an owner that was taken over changes nothing any more, whatever it does and whatever its successor has done
/// meanwhile; nor does it make the successor's record live longer.
pub async fn late_steps_of_a_former_owner_change_nothing<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    for done in Step::ALL {
        for late in Step::ALL {
            let (id, former, owner) = (fresh_id(), Owner::stranger(), Owner::stranger());
            subject.win(claim(id, former)).await;
            subject.advance(LEASE).await;
            subject.win(claim(id, owner)).await;
            subject.apply(id, owner.token, done).await;
            assert_nothing_changes(&subject, id, former.token, late, done.leaves(owner)).await;
        }
    }
}

/// I2: an owner that has settled or released its claim holds it no longer.
pub async fn steps_after_the_last_one_change_nothing<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    for done in Step::ALL {
        if done == Step::Renew {
            continue;
        }
        for late in Step::ALL {
            let (id, owner) = (fresh_id(), Owner::stranger());
            subject.win(claim(id, owner)).await;
            subject.apply(id, owner.token, done).await;
            assert_nothing_changes(&subject, id, owner.token, late, done.leaves(owner)).await;
        }
    }
}

/// I2: nothing comes of a step for a key that was never claimed, or that is claimed by somebody else.
pub async fn steps_without_a_claim_change_nothing<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    for step in Step::ALL {
        let id = fresh_id();
        let stranger = Owner::stranger().token;
        assert_nothing_changes(&subject, id, stranger, step, None).await;

        let (id, owner) = (fresh_id(), Owner::stranger());
        subject.win(claim(id, owner)).await;
        let running = Some(View::Running(owner.fingerprint));
        assert_nothing_changes(&subject, id, stranger, step, running).await;
    }
}

/// Does a step that must be stale shortly before the record's end, which must stay where it was.
async fn assert_nothing_changes<St, A>(
    subject: &Subject<St, A>,
    id: RecordId,
    token: Token,
    step: Step,
    there: Option<View>,
) where
    St: Store,
    A: AsyncFn(Duration),
{
    let Some(there) = there else {
        assert_eq!(
            subject.step(id, token, step).await,
            Settled::Stale,
            "{step:?}"
        );
        subject.assert_free(id).await;
        return;
    };
    let span = match there {
        View::Running(_) => LEASE,
        View::Completed(..) | View::Held(_) | View::Tombstone(..) => TTL,
    };
    subject.advance_just_within(span).await;
    assert_eq!(
        subject.step(id, token, step).await,
        Settled::Stale,
        "{step:?} on {there:?}"
    );
    assert_eq!(subject.look(id).await, there, "after {step:?}");
    subject.advance_to_the_end().await;
    subject.assert_free(id).await;
}

/// I2: an owner whose lease is over, and whom nobody has taken over, still holds the claim.
pub async fn an_owner_past_its_lease_settles_until_it_is_taken_over<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    for step in Step::ALL {
        let (id, owner) = (fresh_id(), Owner::stranger());
        subject.win(claim(id, owner)).await;
        subject.advance(LEASE).await;
        subject.advance_just_within(TTL).await;
        subject.apply(id, owner.token, step).await;
        match step.leaves(owner) {
            Some(left) => assert_eq!(subject.look(id).await, left),
            None => subject.assert_free(id).await,
        }
    }
}
