use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    hash::{BuildHasherDefault, Hasher},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    super::{Claim, Claimed, Fingerprint, Record, RecordId, Settled, Token, Tombstone},
    room::Room,
};

/// A part of the records, with what is needed to find the expired ones.
///
/// Every method takes *now* and the room it may use, and decides by nothing else.
#[derive(Default)]
pub(super) struct Shard {
    records: HashMap<[u8; 32], Entry, BuildHasherDefault<DigestHasher>>,
    /// When to look at a record next. Each record has an entry that is not later than its expiry, unless that was
    /// brought forward; what was released or prolonged since is found out when its time comes.
    queue: BinaryHeap<Reverse<(Instant, [u8; 32])>>,
}

struct Entry {
    tenant: [u8; 32],
    fingerprint: Fingerprint,
    expires: Instant,
    state: State,
}

enum State {
    Claimed {
        token: Token,
        fence: u64,
        lease_until: Instant,
    },
    Completed {
        record: Record,
    },
    Held,
    Tombstone {
        tombstone: Tombstone,
    },
}

/// What there is for a claim.
pub(super) enum Found {
    Absent,
    /// It is there, and free: expired, or its owner's lease is over.
    Reclaimable,
    /// It is the claimant's already.
    Owned {
        fence: u64,
    },
    Live(Claimed),
}

/// A step that needs the claim.
pub(super) enum Step {
    Complete { record: Record, ttl: Duration },
    Hold { ttl: Duration },
    Release,
    Renew { lease: Duration, ttl: Duration },
    Tombstone { tombstone: Tombstone, ttl: Duration },
}

impl Shard {
    pub(super) fn contains(&self, id: &RecordId) -> bool {
        self.records.contains_key(id.key())
    }

    pub(super) fn find(&self, claim: &Claim, now: Instant) -> Found {
        let Some(entry) = self.records.get(claim.id.key()) else {
            return Found::Absent;
        };
        let fingerprint = entry.fingerprint;
        Found::Live(match &entry.state {
            State::Claimed { token, fence, .. } if *token == claim.token => {
                return Found::Owned { fence: *fence };
            }
            State::Claimed { lease_until, .. } if *lease_until <= now => return Found::Reclaimable,
            _ if entry.expires <= now => return Found::Reclaimable,
            State::Claimed { .. } => Claimed::Running { fingerprint },
            State::Completed { record } => Claimed::Completed {
                fingerprint,
                record: record.clone(),
            },
            State::Held => Claimed::Held { fingerprint },
            State::Tombstone { tombstone } => Claimed::Tombstone {
                fingerprint,
                tombstone: *tombstone,
            },
        })
    }

    /// Adds a claimed record, for which there is room.
    pub(super) fn insert(&mut self, claim: &Claim, fence: u64, now: Instant) {
        let entry = Entry::claimed(claim, fence, now);
        self.queue.push(Reverse((entry.expires, *claim.id.key())));
        self.records.insert(*claim.id.key(), entry);
    }

    /// Claims a record that is there and free.
    pub(super) fn take_over(&mut self, claim: &Claim, fence: u64, now: Instant, room: &Room) {
        if let Some(entry) = self.records.get_mut(claim.id.key()) {
            room.give_back_bytes(entry.bytes());
            *entry = Entry::claimed(claim, fence, now);
        }
    }

    pub(super) fn step(
        &mut self,
        id: &RecordId,
        token: Token,
        step: Step,
        now: Instant,
        room: &Room,
    ) -> Settled {
        let Some(entry) = self.records.get_mut(id.key()) else {
            return Settled::Stale;
        };
        let State::Claimed {
            token: owner,
            lease_until,
            ..
        } = &mut entry.state
        else {
            return Settled::Stale;
        };
        if *owner != token {
            return Settled::Stale;
        }
        match step {
            Step::Renew { lease, ttl } => {
                *lease_until = after(now, lease);
                entry.expires = after(*lease_until, ttl);
            }
            Step::Complete { record, ttl } => {
                if !room.take_bytes(record.as_bytes().len()) {
                    return Settled::NoRoom;
                }
                entry.settle(State::Completed { record }, after(now, ttl));
            }
            Step::Hold { ttl } => entry.settle(State::Held, after(now, ttl)),
            Step::Tombstone { tombstone, ttl } => {
                entry.settle(State::Tombstone { tombstone }, after(now, ttl));
            }
            Step::Release => {
                let entry = self.records.remove(id.key()).expect("it was found above");
                room.give_back_entry(&entry.tenant, entry.bytes());
                self.forget_released();
            }
        }
        Settled::Applied
    }

    /// Removes up to `limit` expired records.
    pub(super) fn sweep(&mut self, now: Instant, limit: usize, room: &Room) -> usize {
        let mut removed = 0;
        // What was prolonged costs a look too: the number of looks is bounded, not only that of the removals.
        for _ in 0..limit.saturating_mul(2) {
            let Some(Reverse((at, _))) = self.queue.peek() else {
                break;
            };
            if *at > now || removed == limit {
                break;
            }
            let Some(Reverse((_, key))) = self.queue.pop() else {
                break;
            };
            let Some(entry) = self.records.get(&key) else {
                continue;
            };
            if entry.expires > now {
                self.queue.push(Reverse((entry.expires, key)));
            } else if let Some(entry) = self.records.remove(&key) {
                room.give_back_entry(&entry.tenant, entry.bytes());
                removed += 1;
            }
        }
        removed
    }

    /// Keeps the queue from growing by what was released: it is rebuilt as soon as most of it is left over, which costs
    /// a constant amount a release on average.
    fn forget_released(&mut self) {
        if self.queue.len() > 2 * self.records.len() + 32 {
            self.queue = self
                .records
                .iter()
                .map(|(key, entry)| Reverse((entry.expires, *key)))
                .collect();
        }
    }
}

impl Entry {
    fn claimed(claim: &Claim, fence: u64, now: Instant) -> Self {
        let lease_until = after(now, claim.lease);
        Self {
            tenant: *claim.id.tenant(),
            fingerprint: claim.fingerprint,
            expires: after(lease_until, claim.ttl),
            state: State::Claimed {
                token: claim.token,
                fence,
                lease_until,
            },
        }
    }

    fn settle(&mut self, state: State, expires: Instant) {
        self.state = state;
        self.expires = expires;
    }

    fn bytes(&self) -> usize {
        match &self.state {
            State::Completed { record } => record.as_bytes().len(),
            State::Claimed { .. } | State::Held | State::Tombstone { .. } => 0,
        }
    }
}

/// A span too long for the clock ends in a hundred years.
fn after(now: Instant, span: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    now.checked_add(span.min(CENTURY)).unwrap_or(now)
}

/// The keys are SHA-256 digests already: their first eight bytes are as good a hash as any.
#[derive(Default)]
pub(super) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_ne_bytes(*first);
        }
    }

    // The length prefix of an array is the same for all keys.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests;
