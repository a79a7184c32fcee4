use std::collections::HashMap;

use super::rounds::Medians;
use crate::{Scenario, Target};

/// What was measured of one scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) medians: Medians,
    pub(super) allocations: f64,
    pub(super) instructions: Option<u64>,
}

/// What was measured, by group and name.
pub(super) type Measured = HashMap<(&'static str, &'static str), Figures>;

/// One scenario among the others.
pub(super) struct Compared<'a> {
    pub(super) scenario: Scenario,
    measured: &'a Measured,
}

impl<'a> Compared<'a> {
    pub(super) const fn new(scenario: Scenario, measured: &'a Measured) -> Self {
        Self { scenario, measured }
    }

    pub(super) fn own(&self) -> Option<&'a Figures> {
        self.of(self.scenario.name())
    }

    /// The median over that of the bare call.
    pub(super) fn over_bare(&self) -> Option<f64> {
        let medians = self.own()?.medians;
        Some(medians.own - medians.bare?)
    }

    pub(super) fn times_bare(&self) -> Option<f64> {
        let medians = self.own()?.medians;
        Some(medians.own / medians.bare?)
    }

    pub(super) fn times_peer(&self) -> Option<f64> {
        self.times(self.scenario.peer()?)
    }

    /// How many times as much it costs as another one, each over its bare call.
    fn times(&self, name: &'static str) -> Option<f64> {
        let other = crate::find(&format!("{}/{name}", self.scenario.group()))?;
        let other = Self::new(other, self.measured);
        Some(self.over_bare()? / other.over_bare()?)
    }

    /// `None` where something was not measured.
    pub(super) fn meets(&self, target: Target) -> Option<bool> {
        Some(match target {
            Target::OverBare(most) => self.over_bare()? <= most,
            Target::OfBare(most) => self.times_bare()? <= most,
            Target::Times(most, name) => self.times(name)? <= most,
            Target::NoAllocation => {
                let bare = self.of(self.scenario.bare()?)?;
                self.own()?.allocations <= bare.allocations
            }
        })
    }

    fn of(&self, name: &'static str) -> Option<&'a Figures> {
        self.measured.get(&(self.scenario.group(), name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(medians: &[(&'static str, f64, f64)]) -> Measured {
        let figures = |own, bare| Figures {
            medians: Medians {
                own,
                bare: Some(bare),
            },
            allocations: 1.0,
            instructions: None,
        };
        medians
            .iter()
            .map(|&(name, own, bare)| (("server", name), figures(own, bare)))
            .collect()
    }

    #[test]
    fn costs_are_compared_over_the_bare_call() {
        let measured = measured(&[
            ("replay", 600.0, 100.0),
            ("axum-idempotent-replay", 1_200.0, 200.0),
        ]);
        let replay = crate::find("server/replay").unwrap();
        let compared = Compared::new(replay, &measured);
        assert_eq!(compared.over_bare(), Some(500.0));
        assert_eq!(compared.times_bare(), Some(6.0));
        assert_eq!(compared.times_peer(), Some(0.5));
        assert_eq!(compared.meets(Target::OverBare(500.0)), Some(true));
        assert_eq!(compared.meets(Target::OverBare(499.0)), Some(false));
        assert_eq!(
            compared.meets(Target::Times(0.4, "axum-idempotent-replay")),
            Some(false)
        );
    }

    #[test]
    fn an_allocation_more_than_the_bare_call_is_seen() {
        let mut measured = measured(&[("bare-get", 10.0, 10.0), ("pass-through-get", 20.0, 10.0)]);
        let pass = crate::find("server/pass-through-get").unwrap();
        let meets = |measured: &Measured| Compared::new(pass, measured).meets(Target::NoAllocation);
        assert_eq!(meets(&measured), Some(true));
        measured
            .get_mut(&("server", "pass-through-get"))
            .unwrap()
            .allocations = 2.0;
        assert_eq!(meets(&measured), Some(false));
    }

    #[test]
    fn what_was_not_measured_meets_nothing_and_misses_nothing() {
        let measured = measured(&[("axum-idempotent-replay", 600.0, 100.0)]);
        let replay = crate::find("server/replay").unwrap();
        let compared = Compared::new(replay, &measured);
        assert_eq!(compared.meets(Target::OverBare(1.0)), None);
        assert_eq!(compared.times_peer(), None);
    }
}
