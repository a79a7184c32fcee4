use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::lock;
use crate::store::Recorded;

/// Owners whose entries are counted under one lock.
const QUOTA_PARTS: u64 = 16;

/// So many unused places are worth no move to a smaller map.
const SMALL: usize = 64;

/// What is left of a store's capacity.
pub(super) struct Room {
    capacity: usize,
    used: AtomicUsize,
    quota: Option<Quota>,
}

struct Quota {
    per_key: usize,
    used: Box<[Mutex<HashMap<u64, usize>>]>,
}

impl Room {
    pub(super) fn new(capacity: usize, per_key: Option<usize>) -> Self {
        Self {
            capacity,
            used: AtomicUsize::new(0),
            quota: per_key.map(|per_key| Quota {
                per_key,
                used: (0..QUOTA_PARTS).map(|_| Mutex::default()).collect(),
            }),
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes room for `count` entries, or none.
    pub(super) fn take(&self, count: usize) -> bool {
        let more = |used: usize| used.checked_add(count).filter(|all| *all <= self.capacity);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    pub(super) fn give_back(&self, count: usize) {
        self.used.fetch_sub(count, Ordering::Relaxed);
    }

    /// Takes room for one entry of this owner.
    pub(super) fn take_owned(&self, owner: u64) -> Result<(), Recorded> {
        if !self.take(1) {
            return Err(Recorded::Full);
        }
        let Some(quota) = &self.quota else {
            return Ok(());
        };
        let mut used = lock(quota.part(owner));
        let count = used.entry(owner).or_default();
        if *count >= quota.per_key {
            if *count == 0 {
                used.remove(&owner);
            }
            self.give_back(1);
            return Err(Recorded::OverQuota);
        }
        *count += 1;
        Ok(())
    }

    pub(super) fn give_back_owned(&self, owner: Option<u64>) {
        self.give_back(1);
        let (Some(quota), Some(owner)) = (&self.quota, owner) else {
            return;
        };
        let mut used = lock(quota.part(owner));
        if let Some(count) = used.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                used.remove(&owner);
                let len = used.len();
                if used.capacity() > SMALL.max(4 * len) {
                    used.shrink_to(2 * len);
                }
            }
        }
    }
}

impl Quota {
    fn part(&self, owner: u64) -> &Mutex<HashMap<u64, usize>> {
        let part = usize::try_from(owner % QUOTA_PARTS).unwrap_or_default();
        &self.used[part]
    }
}
