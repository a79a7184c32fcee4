use std::fmt::{self, Display};

use super::figures::{Compared, Measured};
use crate::{Scenario, Target, scenarios};

/// The figures as a Markdown table.
pub(super) struct Table<'a> {
    measured: &'a Measured,
}

impl<'a> Table<'a> {
    pub(super) const fn new(measured: &'a Measured) -> Self {
        Self { measured }
    }
}

const HEAD: &str = "\
| scenario | median | over bare | ratio | allocations per call | instructions | target | met |
|---|--:|--:|---|--:|--:|---|---|
";

impl Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for scenario in scenarios() {
            row(f, &Compared::new(scenario, self.measured))?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, compared: &Compared<'_>) -> fmt::Result {
    let scenario = compared.scenario;
    let own = compared.own();
    writeln!(
        f,
        "| {} | {} | {} | {} | {} | {} | {} | {} |",
        name(&scenario),
        or_dash(own.map(|own| nanoseconds(own.medians.own))),
        or_dash(
            compared
                .over_bare()
                .map(|over| format!("{}{}", sign(over), nanoseconds(over)))
        ),
        ratios(compared),
        or_dash(own.map(|own| format!("{:.1}", own.allocations))),
        or_dash(own.and_then(|own| own.instructions)),
        join(scenario.targets().iter().map(|target| describe(*target))),
        join(
            scenario
                .targets()
                .iter()
                .map(|target| met(compared, *target).to_owned())
        ),
    )
}

fn name(scenario: &Scenario) -> String {
    format!("{}/{}", scenario.group(), scenario.name())
}

fn ratios(compared: &Compared<'_>) -> String {
    let bare = compared
        .times_bare()
        .map(|times| format!("{times:.2} × bare"));
    let peer = compared
        .times_peer()
        .map(|times| format!("{times:.2} × peer"));
    join(bare.into_iter().chain(peer))
}

fn describe(target: Target) -> String {
    match target {
        Target::OverBare(most) => format!("over bare ≤ {}", nanoseconds(most)),
        Target::OfBare(most) => format!("≤ {most:.2} × bare"),
        Target::NoAllocation => "no allocation".to_owned(),
        Target::Times(most, name) => format!("≤ {most} × {name}"),
    }
}

fn met(compared: &Compared<'_>, target: Target) -> &'static str {
    match compared.meets(target) {
        None => "–",
        Some(true) => "yes",
        Some(false) => "**no**",
    }
}

fn nanoseconds(nanoseconds: f64) -> String {
    if nanoseconds.abs() < 1_000.0 {
        format!("{nanoseconds:.0} ns")
    } else {
        format!("{:.2} µs", nanoseconds / 1_000.0)
    }
}

fn sign(over: f64) -> &'static str {
    if over < 0.0 { "" } else { "+" }
}

fn or_dash(figure: Option<impl Display>) -> String {
    figure.map_or_else(|| "–".to_owned(), |figure| figure.to_string())
}

fn join(parts: impl Iterator<Item = String>) -> String {
    or_dash(Some(parts.collect::<Vec<_>>().join("; ")).filter(|joined| !joined.is_empty()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{
        super::{figures::Figures, rounds::Medians},
        *,
    };

    #[test]
    fn a_row_says_what_was_measured_and_whether_it_is_met() {
        let figures = |own, instructions| Figures {
            medians: Medians {
                own,
                bare: Some(100.0),
            },
            allocations: 2.0,
            instructions,
        };
        let measured = HashMap::from([
            (("server", "bare-get"), figures(100.0, Some(400))),
            (("server", "pass-through-get"), figures(1_160.0, None)),
        ]);
        let table = Table::new(&measured).to_string();
        let row = table
            .lines()
            .find(|line| line.starts_with("| server/pass-through-get"));
        assert_eq!(
            row,
            Some(
                "| server/pass-through-get | 1.16 µs | +1.06 µs | 11.60 × bare | 2.0 | – \
                 | over bare ≤ 50 ns; no allocation | **no**; yes |"
            )
        );
    }
}
