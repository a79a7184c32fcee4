use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use super::room::Room;
use crate::store::{Claim, Claimed, Digest, EventId, Settled, Token};

/// How many expired claims a step removes in passing: two for each one it may add.
const SWEEP_PER_STEP: usize = 4;

/// So many unused places are worth no move to a smaller map.
const SMALL: usize = 64;

/// The claims of some sources, by identity.
///
/// Every method takes *now* and the room it may use, and decides by nothing else.
#[derive(Default)]
pub(super) struct Claims {
    claims: HashMap<Digest, Held>,
    /// The claims in the order in which they end.
    expiring: BTreeSet<(Duration, Digest)>,
    fence: u64,
}

#[derive(Clone, Copy)]
struct Held {
    token: Token,
    fence: u64,
    lease_until: Duration,
    expires: Duration,
}

impl Claims {
    /// Takes all identities, or none.
    pub(super) fn claim(&mut self, claim: &Claim, now: Duration, room: &Room) -> Claimed {
        self.sweep(now, SWEEP_PER_STEP, room);
        let identities = claim.event.identities();
        let held = |identity: &Digest| self.claims.get(identity);
        let foreign = |held: &&Held| held.token != claim.token && held.lease_until > now;
        if identities
            .clone()
            .filter_map(held)
            .any(|held| foreign(&held))
        {
            return Claimed::Running;
        }
        let mut own = identities.clone().map(held);
        let again = own
            .clone()
            .all(|held| held.is_some_and(|held| held.token == claim.token));
        let fence = match own.next().flatten() {
            Some(held) if again => held.fence,
            _ => self.fence + 1,
        };
        let missing = identities
            .clone()
            .filter(|identity| held(identity).is_none());
        if !room.take(missing.count()) {
            return Claimed::Full;
        }
        self.fence = self.fence.max(fence);
        let lease_until = now.saturating_add(claim.lease);
        for identity in identities {
            let held = Held {
                token: claim.token,
                fence,
                lease_until,
                expires: lease_until.saturating_add(claim.retention),
            };
            self.expiring.insert((held.expires, *identity));
            if let Some(before) = self.claims.insert(*identity, held)
                && before.expires != held.expires
            {
                self.expiring.remove(&(before.expires, *identity));
            }
        }
        Claimed::Won { fence }
    }

    pub(super) fn renew(
        &mut self,
        event: &EventId,
        token: Token,
        now: Duration,
        lease: Duration,
        retention: Duration,
    ) -> Settled {
        if !self.is_held(event, token) {
            return Settled::Stale;
        }
        for identity in event.identities() {
            if let Some(held) = self.claims.get_mut(identity) {
                self.expiring.remove(&(held.expires, *identity));
                held.lease_until = now.saturating_add(lease);
                held.expires = held.lease_until.saturating_add(retention);
                self.expiring.insert((held.expires, *identity));
            }
        }
        Settled::Applied
    }

    /// Removes the claim of all identities, if all are held with this token. Their room stays taken.
    pub(super) fn end(&mut self, event: &EventId, token: Token) -> bool {
        let held = self.is_held(event, token);
        if held {
            for identity in event.identities() {
                if let Some(held) = self.claims.remove(identity) {
                    self.expiring.remove(&(held.expires, *identity));
                }
            }
            self.shrink();
        }
        held
    }

    /// Removes up to `limit` claims that nobody will end.
    pub(super) fn sweep(&mut self, now: Duration, limit: usize, room: &Room) -> usize {
        let mut removed = 0;
        while removed < limit
            && let Some((expires, identity)) = self.expiring.first()
            && *expires <= now
        {
            self.claims.remove(identity);
            self.expiring.pop_first();
            removed += 1;
        }
        self.shrink();
        room.give_back(removed);
        removed
    }

    /// Gives memory back after a burst. Paid for by the three quarters that were removed.
    fn shrink(&mut self) {
        let len = self.claims.len();
        if self.claims.capacity() > SMALL.max(4 * len) {
            self.claims.shrink_to(2 * len);
        }
    }

    fn is_held(&self, event: &EventId, token: Token) -> bool {
        event.identities().all(|identity| {
            let held = self.claims.get(identity);
            held.is_some_and(|held| held.token == token)
        })
    }
}
