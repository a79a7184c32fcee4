//! Random steps against a model that fits on a page.

use std::{collections::BTreeMap, fmt, time::Duration};

use bytes::Bytes;
use steadfast_idempotency::{
    Claim, Claimed, Fingerprint, Record, RecordId, Settled, Store, Token, Tombstone,
    TombstoneReason,
};

use super::subject::{LEASE, Owner, Subject, TTL, View, answer, fresh_id};

const RUNS: u64 = 48;
const STEPS: usize = 250;
const KEYS: usize = 3;
const OWNERS: usize = 3;

/// Whatever is done, in whatever order and at whatever time, the store answers as the model does.
///
/// The steps follow from seeds, which a failure names.
pub async fn any_steps_agree_with_the_model<St, A>(subject: Subject<St, A>)
where
    St: Store,
    A: AsyncFn(Duration),
{
    for seed in 0..RUNS {
        let mut run = Run::new(&subject, seed);
        for step in 0..STEPS {
            run.step(step).await;
        }
    }
}

struct Run<'a, St, A> {
    subject: &'a Subject<St, A>,
    seed: u64,
    rng: fastrand::Rng,
    ids: [RecordId; KEYS],
    owners: [Owner; OWNERS],
    model: Model,
}

impl<'a, St, A> Run<'a, St, A>
where
    St: Store,
    A: AsyncFn(Duration),
{
    fn new(subject: &'a Subject<St, A>, seed: u64) -> Self {
        Self {
            subject,
            seed,
            rng: fastrand::Rng::with_seed(seed),
            ids: std::array::from_fn(|_| fresh_id()),
            owners: std::array::from_fn(|_| Owner::stranger()),
            model: Model::default(),
        }
    }

    async fn step(&mut self, step: usize) {
        let key = self.rng.usize(0..KEYS);
        let owner = self.owners[self.rng.usize(0..OWNERS)];
        let id = self.ids[key];
        let lease = LEASE * self.rng.u32(1..=2);
        let ttl = TTL / self.rng.u32(1..=2);
        let choice = self.rng.u8(0..16);
        let now = self.model.now;
        let place = Place {
            seed: self.seed,
            step,
            choice,
            key,
            now,
        };
        let store = self.subject.store();
        match choice {
            0..=5 => {
                let claim = Claim {
                    id,
                    fingerprint: owner.fingerprint,
                    token: owner.token,
                    lease,
                    ttl,
                };
                let claimed = self.subject.claim(claim).await;
                self.model.claim(key, &claim, &claimed, &place);
            }
            6 | 7 => {
                let settled = answer(store.renew(id, owner.token, lease, ttl).await);
                let state = State::Claimed {
                    token: owner.token,
                    lease_until: now + lease,
                };
                let next = Some((state, now + lease + ttl));
                self.model.settle(key, owner.token, settled, next, &place);
            }
            8 => {
                let record = Record::from(Bytes::from(vec![choice; self.rng.usize(0..64)]));
                let settled = store.complete(id, owner.token, record.clone(), ttl);
                let settled = answer(settled.await);
                let next = Some((State::Completed(record), now + ttl));
                self.model.settle(key, owner.token, settled, next, &place);
            }
            9 => {
                let tombstone = Tombstone {
                    status: self.rng.u16(200..300),
                    reason: TombstoneReason::Streamed,
                };
                let settled = store.tombstone(id, owner.token, tombstone, ttl);
                let settled = answer(settled.await);
                let next = Some((State::Tombstone(tombstone), now + ttl));
                self.model.settle(key, owner.token, settled, next, &place);
            }
            10 => {
                let settled = answer(store.hold(id, owner.token, ttl).await);
                let next = Some((State::Held, now + ttl));
                self.model.settle(key, owner.token, settled, next, &place);
            }
            11 => {
                let settled = answer(store.release(id, owner.token).await);
                self.model.settle(key, owner.token, settled, None, &place);
            }
            12 => {
                let limit = self.rng.usize(0..4);
                let purged = answer(store.purge(limit).await);
                assert!(
                    purged <= limit,
                    "{place}: purged {purged} of at most {limit}"
                );
            }
            _ => {
                // Of such spans leases and ttls are made, so that their very ends are met often.
                let by = LEASE / 2 * [1, 2, 3, 5][self.rng.usize(0..4)];
                self.subject.advance(by).await;
                self.model.now += by;
            }
        }
    }
}

/// What the store should hold, by its own clock.
#[derive(Default)]
struct Model {
    now: Duration,
    records: BTreeMap<usize, Entry>,
    /// The last fence of each key, which outlives its records.
    fences: BTreeMap<usize, u64>,
}

struct Entry {
    fingerprint: Fingerprint,
    state: State,
    expires: Duration,
}

#[derive(Clone)]
enum State {
    Claimed { token: Token, lease_until: Duration },
    Completed(Record),
    Held,
    Tombstone(Tombstone),
}

impl Model {
    fn claim(&mut self, key: usize, claim: &Claim, claimed: &Claimed, place: &Place) {
        let entry = self.records.get(&key);
        let is_own = entry.is_some_and(|entry| entry.owner() == Some(claim.token));
        let live = entry.filter(|entry| entry.is_live(self.now) && !is_own);
        let expected = live.map(Entry::view);
        assert_eq!(View::of(claimed), expected, "{place}: {claimed:?}");
        let Claimed::Won(won) = claimed else {
            assert!(expected.is_some(), "{place}: {claimed:?} for a free key");
            return;
        };

        let last = self.fences.insert(key, won.fence);
        let rose = match last {
            Some(last) if is_own => won.fence >= last,
            Some(last) => won.fence > last,
            None => true,
        };
        assert!(
            rose,
            "{place}: the fence went from {last:?} to {}",
            won.fence
        );
        let lease_until = self.now + claim.lease;
        let entry = Entry {
            fingerprint: claim.fingerprint,
            state: State::Claimed {
                token: claim.token,
                lease_until,
            },
            expires: lease_until + claim.ttl,
        };
        self.records.insert(key, entry);
    }

    /// A step of `token` that should leave `next`, was `settled`.
    fn settle(
        &mut self,
        key: usize,
        token: Token,
        settled: Settled,
        next: Option<(State, Duration)>,
        place: &Place,
    ) {
        let entry = self.records.get_mut(&key);
        let Some(entry) = entry.filter(|entry| entry.owner() == Some(token)) else {
            assert_eq!(settled, Settled::Stale, "{place}");
            return;
        };
        // A claim that nobody renewed for so long that its record has expired may be gone or not.
        if entry.expires <= self.now && settled == Settled::Stale {
            self.records.remove(&key);
            return;
        }
        assert_eq!(settled, Settled::Applied, "{place}");
        match next {
            Some((state, expires)) => {
                entry.state = state;
                entry.expires = expires;
            }
            None => {
                self.records.remove(&key);
            }
        }
    }
}

impl Entry {
    const fn owner(&self) -> Option<Token> {
        match self.state {
            State::Claimed { token, .. } => Some(token),
            State::Completed(_) | State::Held | State::Tombstone(_) => None,
        }
    }

    fn is_live(&self, now: Duration) -> bool {
        match self.state {
            State::Claimed { lease_until, .. } => now < lease_until,
            State::Completed(_) | State::Held | State::Tombstone(_) => now < self.expires,
        }
    }

    fn view(&self) -> View {
        let fingerprint = self.fingerprint;
        match &self.state {
            State::Claimed { .. } => View::Running(fingerprint),
            State::Completed(record) => View::Completed(fingerprint, record.clone()),
            State::Held => View::Held(fingerprint),
            State::Tombstone(tombstone) => View::Tombstone(fingerprint, *tombstone),
        }
    }
}

/// Where in which run a step was.
struct Place {
    seed: u64,
    step: usize,
    choice: u8,
    key: usize,
    now: Duration,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            step,
            choice,
            key,
            now,
        } = self;
        write!(
            f,
            "seed {seed}, step {step} (choice {choice} on key {key} at {now:?})"
        )
    }
}
