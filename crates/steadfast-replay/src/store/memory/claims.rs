use std::{collections::HashMap, time::Duration};

use super::room::Room;
use crate::store::{Claim, Claimed, Digest, EventId, Settled, Token};

/// The claims of some sources, by identity.
///
/// Every method takes *now* and the room it may use, and decides by nothing else.
#[derive(Default)]
pub(super) struct Claims {
    claims: HashMap<Digest, Held>,
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
            self.claims.insert(*identity, held);
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
                held.lease_until = now.saturating_add(lease);
                held.expires = held.lease_until.saturating_add(retention);
            }
        }
        Settled::Applied
    }

    /// Removes the claim of all identities, if all are held with this token. Their room stays taken.
    pub(super) fn end(&mut self, event: &EventId, token: Token) -> bool {
        let held = self.is_held(event, token);
        if held {
            for identity in event.identities() {
                self.claims.remove(identity);
            }
        }
        held
    }

    /// Removes up to `limit` claims that nobody will end.
    pub(super) fn sweep(&mut self, now: Duration, limit: usize, room: &Room) -> usize {
        let mut removed = 0;
        self.claims.retain(|_, held| {
            let keep = held.expires > now || removed == limit;
            removed += usize::from(!keep);
            keep
        });
        room.give_back(removed);
        removed
    }

    fn is_held(&self, event: &EventId, token: Token) -> bool {
        event.identities().all(|identity| {
            let held = self.claims.get(identity);
            held.is_some_and(|held| held.token == token)
        })
    }
}
