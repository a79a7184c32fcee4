use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use crate::Candidate;

/// The signatures of the current tick of the timestamp, so that no second request gets one of them.
#[derive(Default)]
pub(super) struct Recent {
    tick: Mutex<Tick>,
}

#[derive(Default)]
struct Tick {
    ends: Option<SystemTime>,
    signatures: HashSet<[u8; 16]>,
}

/// So many signatures of one tick are remembered. Beyond, none is looked for: whoever sends so many different requests a
/// second is not repeating one.
const CAPACITY: usize = 4096;

impl Recent {
    /// Takes a signature that differs from `ends` on. Whether it is the first of its kind.
    pub(super) fn take(&self, signature: &Candidate, ends: SystemTime) -> bool {
        let mut tick = self.tick.lock().unwrap_or_else(PoisonError::into_inner);
        if tick.ends != Some(ends) {
            tick.ends = Some(ends);
            tick.signatures.clear();
        }
        let Some(start) = signature.signature().first_chunk() else {
            return true;
        };
        if tick.signatures.len() == CAPACITY {
            return !tick.signatures.contains(start);
        }
        tick.signatures.insert(*start)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Algorithm;

    fn signature(number: u32) -> Candidate {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Candidate::new(Algorithm::HmacSha256, &bytes).unwrap()
    }

    #[test]
    fn pitfall_24_a_signature_is_taken_once_a_tick() {
        let (recent, now) = (Recent::default(), SystemTime::UNIX_EPOCH);
        assert!(recent.take(&signature(1), now));
        assert!(!recent.take(&signature(1), now));
        assert!(recent.take(&signature(2), now));
        assert!(recent.take(&signature(1), now + Duration::from_secs(1)));
    }

    #[test]
    fn it_remembers_no_more_than_it_has_room_for() {
        let (recent, now) = (Recent::default(), SystemTime::UNIX_EPOCH);
        for number in 0..10_000 {
            recent.take(&signature(number), now);
        }
        assert_eq!(recent.tick.lock().unwrap().signatures.len(), CAPACITY);
        assert!(!recent.take(&signature(0), now));
        assert!(recent.take(&signature(9_999), now));
    }
}
