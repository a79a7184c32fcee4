use crate::{Case, client, replay, server, signature};

/// A stack of services, a kind of call, and what it may cost.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    group: &'static str,
    name: &'static str,
    bare: Option<&'static str>,
    peer: Option<&'static str>,
    targets: &'static [Target],
    bulk: bool,
    case: fn() -> Box<dyn Case>,
}

/// What a scenario may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Target {
    /// So many nanoseconds more than the bare call.
    OverBare(f64),
    /// So many times the bare call.
    OfBare(f64),
    /// No more allocations than the bare call.
    NoAllocation,
    /// So many times what another scenario costs, both over the bare call.
    Times(f64, &'static str),
}

impl Scenario {
    pub(crate) const fn new(
        group: &'static str,
        name: &'static str,
        case: fn() -> Box<dyn Case>,
    ) -> Self {
        Self {
            group,
            name,
            bare: None,
            peer: None,
            targets: &[],
            bulk: false,
            case,
        }
    }

    /// Names the call without the layer.
    pub(crate) const fn over(mut self, bare: &'static str) -> Self {
        self.bare = Some(bare);
        self
    }

    /// Names the same call with a peer instead of the layer.
    pub(crate) const fn beside(mut self, peer: &'static str) -> Self {
        self.peer = Some(peer);
        self
    }

    pub(crate) const fn within(mut self, targets: &'static [Target]) -> Self {
        self.targets = targets;
        self
    }

    /// Marks calls that move or stand on so much that counting their instructions would take minutes.
    pub(crate) const fn bulk(mut self) -> Self {
        self.bulk = true;
        self
    }

    /// Which part it is about: `client`, `server`, `signature` or `replay`.
    #[must_use]
    pub const fn group(&self) -> &'static str {
        self.group
    }

    /// Its name, which no other scenario of its group has.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The name of the bare call, in the same group.
    #[must_use]
    pub const fn bare(&self) -> Option<&'static str> {
        self.bare
    }

    /// The name of the peer's scenario, in the same group.
    #[must_use]
    pub const fn peer(&self) -> Option<&'static str> {
        self.peer
    }

    /// What it may cost.
    #[must_use]
    pub const fn targets(&self) -> &'static [Target] {
        self.targets
    }

    /// Whether it moves or stands on so much that only its time is of interest.
    #[must_use]
    pub const fn is_bulk(&self) -> bool {
        self.bulk
    }

    /// Builds the stack. Inside [`in_runtime`](crate::in_runtime).
    #[must_use]
    pub fn case(&self) -> Box<dyn Case> {
        (self.case)()
    }
}

/// All scenarios.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    [
        server::SCENARIOS,
        client::SCENARIOS,
        signature::SCENARIOS,
        replay::SCENARIOS,
    ]
    .concat()
}

/// The scenario with this name, which is `group/name`.
#[must_use]
pub fn find(name: &str) -> Option<Scenario> {
    let (group, name) = name.split_once('/')?;
    scenarios()
        .into_iter()
        .find(|scenario| scenario.group == group && scenario.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{in_runtime, message::CONTENT};

    const MARKS: [&str; 2] = ["idempotent-replayed", "idempotency-replayed"];

    #[test]
    fn every_call_is_answered_as_its_name_says() {
        for scenario in scenarios() {
            let (first, second) = in_runtime(|| {
                let mut case = scenario.case();
                (case.look(), case.look())
            })
            .unwrap();
            for seen in [&first, &second] {
                assert_eq!(seen.status, 200, "{scenario:?}");
                assert_eq!(seen.body, CONTENT.as_slice(), "{scenario:?}");
            }
            let is_replay =
                |headers: &http::HeaderMap| MARKS.iter().any(|mark| headers.contains_key(*mark));
            assert!(!is_replay(&first.headers), "{scenario:?}");
            assert_eq!(
                is_replay(&second.headers),
                scenario.name.ends_with("replay"),
                "{scenario:?}"
            );
        }
    }

    #[test]
    fn what_a_scenario_is_compared_with_is_measured_too() {
        for scenario in scenarios() {
            let others = scenario.targets.iter().filter_map(|target| match target {
                Target::Times(_, name) => Some(*name),
                Target::OverBare(_) | Target::OfBare(_) | Target::NoAllocation => None,
            });
            for name in others.chain(scenario.bare).chain(scenario.peer) {
                let name = format!("{}/{name}", scenario.group);
                assert!(find(&name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn a_stack_that_fills_up_is_built_anew() {
        in_runtime(|| {
            let mut case = find("server/fresh-10").unwrap().case();
            for _ in 0..3 {
                case.prepare(30);
                case.run(30);
            }
        })
        .unwrap();
    }
}
