use proptest::prelude::*;

use super::*;

const LEASE: Duration = Duration::from_secs(30);
const TTL: Duration = Duration::from_secs(60);

fn room() -> Room {
    Room::new(1_000, 1_000, None)
}

fn id(n: u8) -> RecordId {
    RecordId::new([0; 32], [n; 32])
}

fn claim(n: u8, token: u128) -> Claim {
    Claim {
        id: id(n),
        fingerprint: Fingerprint::new([9; 32]),
        token: Token::from_u128(token),
        lease: LEASE,
        ttl: TTL,
    }
}

fn record(bytes: usize) -> Record {
    bytes::Bytes::from(vec![1; bytes]).into()
}

fn start() -> Instant {
    Instant::now()
}

/// A shard in which token 1 has claimed key 1.
fn claimed(room: &Room, now: Instant) -> Shard {
    let mut shard = Shard::default();
    assert!(room.take_entry(&id(1)));
    shard.insert(&claim(1, 1), 1, now);
    shard
}

#[test]
fn a_lease_is_live_until_the_very_instant_it_ends() {
    let (room, now) = (room(), start());
    let shard = claimed(&room, now);
    let just_before = now + LEASE - Duration::from_nanos(1);
    assert!(matches!(
        shard.find(&claim(1, 2), just_before),
        Found::Live(Claimed::Running { .. })
    ));
    assert!(matches!(
        shard.find(&claim(1, 2), now + LEASE),
        Found::Reclaimable
    ));
}

#[test]
fn i11_an_answer_is_kept_for_the_ttl_from_completion() {
    let (room, now) = (room(), start());
    let mut shard = claimed(&room, now);
    let done = now + Duration::from_secs(20);
    let complete = Step::Complete {
        record: record(3),
        ttl: TTL,
    };
    let settled = shard.step(&id(1), Token::from_u128(1), complete, done, &room);
    assert_eq!(settled, Settled::Applied);
    let just_before = done + TTL - Duration::from_nanos(1);
    assert!(matches!(
        shard.find(&claim(1, 2), just_before),
        Found::Live(Claimed::Completed { .. })
    ));
    assert!(matches!(
        shard.find(&claim(1, 2), done + TTL),
        Found::Reclaimable
    ));
}

#[test]
fn an_answer_without_room_changes_nothing() {
    let (room, now) = (Room::new(1, 2, None), start());
    let mut shard = claimed(&room, now);
    let complete = Step::Complete {
        record: record(3),
        ttl: TTL,
    };
    let settled = shard.step(&id(1), Token::from_u128(1), complete, now, &room);
    assert_eq!(settled, Settled::NoRoom);
    assert!(matches!(
        shard.find(&claim(1, 2), now),
        Found::Live(Claimed::Running { .. })
    ));
}

#[test]
fn a_sweep_removes_what_has_expired_and_nothing_else() {
    let (room, now) = (room(), start());
    let mut shard = claimed(&room, now);
    assert!(room.take_entry(&id(2)));
    shard.insert(&claim(2, 2), 2, now + Duration::from_secs(1));
    assert_eq!(
        shard.sweep(now + LEASE + TTL - Duration::from_nanos(1), 10, &room),
        0
    );
    assert_eq!(shard.sweep(now + LEASE + TTL, 10, &room), 1);
    assert!(!shard.contains(&id(1)));
    assert!(shard.contains(&id(2)));
    assert_eq!(room.entries(), 1);
}

#[test]
fn a_renewed_claim_survives_the_sweep_of_its_first_expiry() {
    let (room, now) = (room(), start());
    let mut shard = claimed(&room, now);
    let renew = Step::Renew {
        lease: LEASE,
        ttl: TTL,
    };
    let later = now + Duration::from_secs(25);
    assert_eq!(
        shard.step(&id(1), Token::from_u128(1), renew, later, &room),
        Settled::Applied
    );
    assert_eq!(shard.sweep(now + LEASE + TTL, 10, &room), 0);
    assert_eq!(shard.sweep(later + LEASE + TTL, 10, &room), 1);
}

#[test]
fn failing_calls_do_not_make_the_queue_grow() {
    let (room, now) = (room(), start());
    let mut shard = Shard::default();
    for n in 0..10_000_u128 {
        assert!(room.take_entry(&id(1)));
        shard.insert(&claim(1, n), 1, now);
        let released = shard.step(&id(1), Token::from_u128(n), Step::Release, now, &room);
        assert_eq!(released, Settled::Applied);
    }
    assert!(shard.queue.len() <= 64, "{}", shard.queue.len());
    assert_eq!(room.entries(), 0);
}

proptest! {
    /// The room that is taken is always that of the records that are there.
    #[test]
    fn room_is_given_back_exactly(steps in prop::collection::vec((0_u8..4, 0_u8..6, 0_u64..40), 0..200)) {
        let room = room();
        let mut shard = Shard::default();
        let mut now = start();
        for (key, action, pause) in steps {
            now += Duration::from_secs(pause);
            let token = Token::from_u128(u128::from(key));
            let step = match action {
                0 => {
                    match shard.find(&claim(key, key.into()), now) {
                        Found::Absent if room.take_entry(&id(key)) => shard.insert(&claim(key, key.into()), 1, now),
                        Found::Reclaimable => shard.take_over(&claim(key, key.into()), 2, now, &room),
                        _ => {}
                    }
                    continue;
                }
                1 => Step::Complete { record: record(7), ttl: TTL },
                2 => Step::Release,
                3 => Step::Hold { ttl: TTL },
                4 => Step::Renew { lease: LEASE, ttl: TTL },
                _ => {
                    shard.sweep(now, 3, &room);
                    continue;
                }
            };
            shard.step(&id(key), token, step, now, &room);
            prop_assert_eq!(room.entries(), shard.records.len());
        }
        shard.sweep(now + LEASE + TTL + TTL, 1_000, &room);
        prop_assert_eq!(room.entries(), 0);
        prop_assert!(room.take_bytes(1_000), "bytes were lost");
    }
}
