use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{RecordId, lock};

/// What is left of a store's capacity.
pub(super) struct Room {
    entries: Count,
    bytes: Count,
    tenants: Option<TenantRoom>,
}

/// What is left for each tenant that has records.
pub(super) struct TenantRoom {
    cap: usize,
    used: Mutex<HashMap<[u8; 32], usize>>,
}

struct Count {
    cap: usize,
    used: AtomicUsize,
}

impl Room {
    pub(super) const fn new(entries: usize, bytes: usize, tenants: Option<TenantRoom>) -> Self {
        Self {
            entries: Count::new(entries),
            bytes: Count::new(bytes),
            tenants,
        }
    }

    pub(super) fn entries(&self) -> usize {
        self.entries.used.load(Ordering::Relaxed)
    }

    /// Takes the room of one record, if there is any, and any bytes for its answer.
    pub(super) fn take_entry(&self, id: &RecordId) -> bool {
        if self.bytes.is_full() || !self.entries.take(1) {
            return false;
        }
        if self
            .tenants
            .as_ref()
            .is_none_or(|tenants| tenants.take(id.tenant()))
        {
            return true;
        }
        self.entries.give_back(1);
        false
    }

    pub(super) fn give_back_entry(&self, tenant: &[u8; 32], bytes: usize) {
        self.entries.give_back(1);
        self.bytes.give_back(bytes);
        if let Some(tenants) = &self.tenants {
            tenants.give_back(tenant);
        }
    }

    pub(super) fn take_bytes(&self, bytes: usize) -> bool {
        self.bytes.take(bytes)
    }

    pub(super) fn give_back_bytes(&self, bytes: usize) {
        self.bytes.give_back(bytes);
    }
}

impl TenantRoom {
    pub(super) fn new(cap: usize) -> Self {
        Self {
            cap,
            used: Mutex::default(),
        }
    }

    fn take(&self, tenant: &[u8; 32]) -> bool {
        if self.cap == 0 {
            return false;
        }
        let mut used = lock(&self.used);
        let used = used.entry(*tenant).or_default();
        let free = *used < self.cap;
        *used += usize::from(free);
        free
    }

    fn give_back(&self, tenant: &[u8; 32]) {
        let mut used = lock(&self.used);
        if let Some(count) = used.get_mut(tenant) {
            *count -= 1;
            if *count == 0 {
                used.remove(tenant);
            }
        }
    }
}

impl Count {
    const fn new(cap: usize) -> Self {
        Self {
            cap,
            used: AtomicUsize::new(0),
        }
    }

    fn is_full(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.cap
    }

    fn take(&self, amount: usize) -> bool {
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(amount).filter(|used| *used <= self.cap)
            })
            .is_ok()
    }

    fn give_back(&self, amount: usize) {
        self.used.fetch_sub(amount, Ordering::Relaxed);
    }
}
