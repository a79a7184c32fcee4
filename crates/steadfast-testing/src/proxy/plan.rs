//! The sequence of decisions that [`Faults`] stand for.

use std::time::Duration;

use super::faults::{Fault, Faults, Source};

/// Decides one exchange after the other.
#[derive(Debug)]
pub(super) struct Plan {
    faults: Faults,
    rng: fastrand::Rng,
    decided: usize,
}

/// What happens to one exchange, to the last detail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Decision {
    pub(super) fault: Fault,
    pub(super) close: Close,
    pub(super) delay: Duration,
    /// Where to cut, as a share of what there is: `cut / 2^32`.
    cut: u32,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Close {
    Clean,
    Reset,
}

impl Plan {
    pub(super) fn new(faults: Faults) -> Self {
        let rng = fastrand::Rng::with_seed(faults.seed);
        Self {
            faults,
            rng,
            decided: 0,
        }
    }

    pub(super) fn decide(&mut self) -> Decision {
        // Each decision draws the same numbers in the same order, whatever it comes to, so that one setting does not
        // shift what the others mean.
        let roll = self.rng.u8(0..100);
        let kind = self.rng.u64(..);
        let cut = self.rng.u32(..);
        let delay = self.rng.u32(..);
        let reset = self.rng.u8(0..100);

        let fault = match &self.faults.source {
            Source::Mix { percent, weights } if roll < *percent => pick(weights, kind),
            Source::Mix { .. } => Fault::Pass,
            Source::Script(faults) => faults.get(self.decided).copied().unwrap_or(Fault::Pass),
        };
        self.decided = self.decided.saturating_add(1);

        let (least, most) = (*self.faults.delay.start(), *self.faults.delay.end());
        let room = most.saturating_sub(least);
        Decision {
            fault,
            close: if reset < self.faults.resets {
                Close::Reset
            } else {
                Close::Clean
            },
            delay: least.saturating_add(room.mul_f64(f64::from(delay) / f64::from(u32::MAX))),
            cut,
        }
    }
}

impl Decision {
    /// A length in `1..whole`, or 0 if there is none.
    pub(super) fn cut(&self, whole: usize) -> usize {
        let Some(room) = whole.checked_sub(1).filter(|room| *room > 0) else {
            return 0;
        };
        1 + self.share(room)
    }

    /// A length in `0..whole`, or 0 if there is none.
    pub(super) fn cut_or_none(&self, whole: usize) -> usize {
        self.share(whole)
    }

    /// A number in `0..room`, or 0 if there is none.
    fn share(&self, room: usize) -> usize {
        let room = u64::try_from(room).unwrap_or(u64::MAX).min(1 << 31);
        usize::try_from((room * u64::from(self.cut)) >> 32).unwrap_or(0)
    }
}

/// The kind whose share of the weights `kind` falls into.
fn pick(weights: &[u32; Fault::COUNT], kind: u64) -> Fault {
    let total = weights.iter().map(|weight| u64::from(*weight)).sum::<u64>();
    let Some(mut rest) = kind.checked_rem(total) else {
        return Fault::Pass;
    };
    for (fault, weight) in Fault::ALL.iter().zip(weights) {
        let weight = u64::from(*weight);
        if rest < weight {
            return *fault;
        }
        rest -= weight;
    }
    Fault::Pass
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decisions(faults: Faults, count: usize) -> Vec<Decision> {
        let mut plan = Plan::new(faults);
        (0..count).map(|_| plan.decide()).collect()
    }

    fn kinds(faults: Faults, count: usize) -> Vec<Fault> {
        decisions(faults, count)
            .iter()
            .map(|decision| decision.fault)
            .collect()
    }

    fn count_of(fault: Fault, kinds: &[Fault]) -> usize {
        kinds.iter().filter(|kind| **kind == fault).count()
    }

    #[test]
    fn the_same_seed_decides_the_same() {
        let faults = || Faults::percent(30).seed(7);
        assert_eq!(decisions(faults(), 500), decisions(faults(), 500));
        assert_ne!(decisions(faults(), 500), decisions(faults().seed(8), 500));
    }

    #[test]
    fn the_percentage_and_the_weights_are_kept() {
        let kinds = kinds(Faults::percent(30).weight(Fault::CutBody, 4), 20_000);
        let close_to = |fault, expected: usize| {
            let count = count_of(fault, &kinds);
            assert!(
                count.abs_diff(expected) < 200,
                "{fault:?}: {count}, not {expected}"
            );
        };
        close_to(Fault::Pass, 14_000);
        // 6,000 in ten parts: six kinds of one and one of four.
        close_to(Fault::CutBody, 2_400);
        for fault in [
            Fault::LoseRequest,
            Fault::CutRequest,
            Fault::LoseResponse,
            Fault::CutResponse,
            Fault::DelayRequest,
            Fault::DelayResponse,
        ] {
            close_to(fault, 600);
        }
        assert_eq!(
            count_of(Fault::DuplicateRequest, &kinds),
            0,
            "off by default"
        );
    }

    #[test]
    fn none_passes_and_all_breaks() {
        assert_eq!(count_of(Fault::Pass, &kinds(Faults::none(), 500)), 500);
        assert_eq!(count_of(Fault::Pass, &kinds(Faults::percent(255), 500)), 0);
        let weightless = Fault::ALL
            .iter()
            .fold(Faults::percent(100), |faults, fault| {
                faults.weight(*fault, 0)
            });
        assert_eq!(count_of(Fault::Pass, &kinds(weightless, 500)), 500);
    }

    #[test]
    fn every_kind_is_listed_once_in_order() {
        for (index, fault) in Fault::ALL.iter().enumerate() {
            assert_eq!(fault.index(), index);
        }
    }

    #[test]
    fn a_script_is_followed_and_then_passes() {
        let script = [Fault::Pass, Fault::CutBody, Fault::LoseRequest];
        assert_eq!(
            kinds(Faults::script(script), 4),
            [Fault::Pass, Fault::CutBody, Fault::LoseRequest, Fault::Pass]
        );
    }

    #[test]
    fn a_setting_does_not_shift_the_other_draws() {
        let plain = decisions(Faults::percent(30), 200);
        let other = decisions(Faults::percent(90).resets(0).weight(Fault::CutBody, 0), 200);
        for (plain, other) in plain.iter().zip(&other) {
            assert_eq!((plain.cut, plain.delay), (other.cut, other.delay));
        }
    }

    #[test]
    fn resets_and_delays_stay_in_their_bounds() {
        let millis = Duration::from_millis;
        let all = decisions(Faults::none().resets(100).delay(millis(5)..=millis(9)), 500);
        assert!(all.iter().all(|one| one.close == Close::Reset));
        assert!(
            all.iter()
                .all(|one| (millis(5)..=millis(9)).contains(&one.delay))
        );
        let none = decisions(Faults::none().resets(0), 500);
        assert!(none.iter().all(|one| one.close == Close::Clean));
        let most = decisions(Faults::none().delay(millis(9)..=Duration::MAX), 500);
        assert!(most.iter().all(|one| one.delay >= millis(9)));
    }

    #[test]
    fn a_cut_is_never_all_and_reaches_every_length() {
        let all = decisions(Faults::none(), 2_000);
        let mut cuts = all.iter().map(|one| one.cut(5)).collect::<Vec<_>>();
        cuts.sort_unstable();
        cuts.dedup();
        assert_eq!(cuts, [1, 2, 3, 4]);
        let mut cuts = all.iter().map(|one| one.cut_or_none(3)).collect::<Vec<_>>();
        cuts.sort_unstable();
        cuts.dedup();
        assert_eq!(cuts, [0, 1, 2]);
        assert_eq!((all[0].cut(0), all[0].cut(1), all[0].cut(2)), (0, 0, 1));
        assert_eq!(all[0].cut_or_none(0), 0);
    }
}
