use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, Ordering},
    },
};

use hashbrown::HashTable;

use super::{lock, room::Room};
use crate::store::{Digest, Recorded};

/// Must be a power of two of at most 256: a byte of the digest picks the shard.
const SHARDS: usize = 64;

/// How many expired entries a step removes in passing. Two for each one it may add: the table catches up.
const SWEEP_PER_STEP: usize = 2;

/// A set of digests, each with the last second of its life.
pub(super) struct Table {
    shards: Box<[Mutex<Shard>]>,
    /// Whether the clock may be set back, so that what was removed must not be taken for new.
    dated: bool,
    last_now: AtomicU32,
}

impl Table {
    pub(super) fn dated() -> Self {
        Self::new(true)
    }

    pub(super) fn spans() -> Self {
        Self::new(false)
    }

    fn new(dated: bool) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            dated,
            last_now: AtomicU32::new(0),
        }
    }

    /// The index inside a shard uses the first eight bytes of the digest. Picking the shard by another byte keeps a
    /// shard's entries spread over its whole index.
    fn shard(&self, key: &Key) -> MutexGuard<'_, Shard> {
        lock(&self.shards[usize::from(key[15]) % SHARDS])
    }

    /// Adds an entry, unless it is there.
    pub(super) fn record(&self, entry: Entry, now: u32, room: &Room) -> Recorded {
        self.last_now.store(now, Ordering::Relaxed);
        let mut shard = self.shard(&entry.key);
        shard.sweep(now, SWEEP_PER_STEP, room);
        if shard.is_alive(&entry.key, now) {
            return Recorded::Seen;
        }
        if self.dated && entry.until <= shard.forgotten {
            return Recorded::Expired;
        }
        let Some(owner) = entry.owner else {
            return Recorded::Full;
        };
        if let Err(refused) = room.take_owned(owner) {
            // What has expired in this shard may be this owner's.
            if shard.sweep(now, usize::MAX, room) == 0 {
                return refused;
            }
            if let Err(refused) = room.take_owned(owner) {
                return refused;
            }
        }
        shard.insert(entry, now, room);
        Recorded::New
    }

    /// Adds an entry that has its room already.
    pub(super) fn keep(&self, entry: Entry, now: u32, room: &Room) {
        let mut shard = self.shard(&entry.key);
        shard.sweep(now, SWEEP_PER_STEP, room);
        if shard.is_alive(&entry.key, now) {
            room.give_back(1);
        } else {
            shard.insert(entry, now, room);
        }
    }

    pub(super) fn contains(&self, digest: &Digest, now: u32) -> bool {
        let key = key(digest);
        self.shard(&key).is_alive(&key, now)
    }

    pub(super) fn sweep_as_of_last(&self, limit: usize, room: &Room) -> usize {
        self.sweep(self.last_now.load(Ordering::Relaxed), limit, room)
    }

    pub(super) fn sweep(&self, now: u32, limit: usize, room: &Room) -> usize {
        let mut removed = 0;
        for shard in &self.shards {
            removed += lock(shard).sweep(now, limit - removed, room);
        }
        removed
    }
}

/// Half a digest: nobody finds two that agree in it.
type Key = [u8; 16];

pub(super) fn key(digest: &Digest) -> Key {
    *digest.as_bytes().first_chunk().expect("16 is less than 32")
}

#[derive(Clone, Copy)]
pub(super) struct Entry {
    key: Key,
    owner: Option<u64>,
    until: u32,
}

impl Entry {
    pub(super) fn new(digest: &Digest, owner: &Digest, until: u32) -> Self {
        let owner = owner.as_bytes().first_chunk().expect("8 is less than 32");
        Self {
            key: key(digest),
            owner: Some(u64::from_le_bytes(*owner)),
            until,
        }
    }

    /// An entry that counts for nobody.
    pub(super) fn unowned(digest: &Digest, until: u32) -> Self {
        Self {
            key: key(digest),
            owner: None,
            until,
        }
    }
}

const NONE: u32 = u32::MAX;

/// So many unused places are worth no move.
const SMALL: usize = 64;

/// An entry as it is kept, 32 bytes: in the list of those that expire together, or in that of free places.
struct Place {
    key: Key,
    owner: [u8; 8],
    until: u32,
    next: u32,
}

/// A part of the table. Every method takes *now* and the room it may use, and decides by nothing else.
#[derive(Default)]
struct Shard {
    places: Vec<Place>,
    free: Vec<u32>,
    index: HashTable<u32>,
    /// The first of the list of those that live up to this second.
    expiring: BTreeMap<u32, u32>,
    /// The last second of all lives that were ended.
    forgotten: u32,
}

impl Shard {
    fn find(&self, key: &Key) -> Option<&Place> {
        let is_it = |at: &u32| self.places[*at as usize].key == *key;
        let at = self.index.find(hash(key), is_it)?;
        Some(&self.places[*at as usize])
    }

    fn is_alive(&self, key: &Key, now: u32) -> bool {
        self.find(key).is_some_and(|place| place.until >= now)
    }

    /// Adds an entry that is not alive, for which there is room.
    fn insert(&mut self, entry: Entry, now: u32, room: &Room) {
        if self.find(&entry.key).is_some() {
            // It is there and dead: so is all that expired with it or before.
            self.sweep(now, usize::MAX, room);
        }
        let head = self.expiring.entry(entry.until).or_insert(NONE);
        let place = Place {
            key: entry.key,
            owner: entry.owner.unwrap_or_default().to_le_bytes(),
            until: entry.until,
            next: *head,
        };
        let at = if let Some(at) = self.free.pop() {
            self.places[at as usize] = place;
            at
        } else {
            let at = u32::try_from(self.places.len()).expect("a shard is not that large");
            if self.places.len() == self.places.capacity() {
                // By a quarter: what is not used is memory too.
                self.places.reserve_exact(self.places.len() / 4 + 8);
            }
            self.places.push(place);
            at
        };
        *head = at;
        let Self { places, index, .. } = self;
        let hash_of = |at: &u32| hash(&places[*at as usize].key);
        index.insert_unique(hash(&entry.key), at, hash_of);
    }

    /// Removes up to `limit` entries whose last second is over.
    fn sweep(&mut self, now: u32, limit: usize, room: &Room) -> usize {
        let mut removed = 0;
        while removed < limit {
            let Some(mut first) = self.expiring.first_entry() else {
                break;
            };
            let until = *first.key();
            if until >= now {
                break;
            }
            let at = *first.get();
            let place = &self.places[at as usize];
            if place.next == NONE {
                first.remove();
            } else {
                *first.get_mut() = place.next;
            }
            self.forgotten = self.forgotten.max(until);
            if let Ok(found) = self
                .index
                .find_entry(hash(&place.key), |other| *other == at)
            {
                found.remove();
            }
            let owner = u64::from_le_bytes(place.owner);
            room.give_back_owned((owner != 0).then_some(owner));
            self.free.push(at);
            removed += 1;
        }
        self.shrink();
        removed
    }

    /// Gives memory back after a burst: moves what is alive together when it takes under a quarter of the places. Paid
    /// for by the three quarters that were removed.
    fn shrink(&mut self) {
        let alive = self.places.len() - self.free.len();
        if self.places.len() <= SMALL.max(4 * alive) {
            return;
        }
        let mut places = Vec::with_capacity(alive + alive / 4 + 8);
        for head in self.expiring.values_mut() {
            let (mut old, mut new) = (*head, NONE);
            while let Some(place) = self.places.get(old as usize) {
                let at = u32::try_from(places.len()).expect("a shard is not that large");
                old = place.next;
                places.push(Place {
                    next: new,
                    ..*place
                });
                new = at;
            }
            *head = new;
        }
        let hash_of = |at: &u32| hash(&places[*at as usize].key);
        let mut index = HashTable::with_capacity(places.len());
        for (at, place) in (0..).zip(&places) {
            index.insert_unique(hash(&place.key), at, hash_of);
        }
        self.index = index;
        self.places = places;
        self.free = Vec::new();
    }
}

/// The digest is as good as any hash of it.
fn hash(key: &Key) -> u64 {
    u64::from_le_bytes(*key.first_chunk().expect("8 is less than 16"))
}
