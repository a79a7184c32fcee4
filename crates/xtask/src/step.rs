use std::{fmt::Write as _, time::Duration};

use crate::{
    invocation::{Failure, Invocation},
    metadata::Metadata,
    tool::Tool,
};

/// A named part of a run.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What must be installed beside cargo and rustc.
    pub(crate) tools: &'static [&'static Tool],
    /// The commands that the step comes to in this workspace, on this machine.
    pub(crate) plan: fn(&Metadata) -> Result<Vec<Invocation>, Failure>,
}

/// Runs the steps one after the other, stops at the first that fails, and prints the times of all that ran.
pub(crate) fn run_all<'s>(
    steps: impl IntoIterator<Item = &'s Step>,
    metadata: &Metadata,
) -> Result<(), Failure> {
    let mut rows = Vec::new();
    let mut result = Ok(());
    for step in steps {
        println!("\n==> {}: {}", step.name, step.about);
        let stopwatch = Stopwatch::start();
        let ended =
            (step.plan)(metadata).and_then(|plan| plan.iter().try_for_each(Invocation::run));
        let elapsed = stopwatch.elapsed();
        let outcome = if ended.is_ok() { "ok" } else { "FAILED" };
        println!("<== {}: {outcome} in {}", step.name, seconds(elapsed));
        rows.push((step.name, outcome, elapsed));
        if let Err(failure) = ended {
            result = Err(failure.in_step(step.name));
            break;
        }
    }
    println!("\n{}", table(&rows));
    result
}

fn table(rows: &[(&str, &str, Duration)]) -> String {
    let total = rows.iter().map(|&(_, _, elapsed)| elapsed).sum();
    let width = rows
        .iter()
        .map(|&(name, ..)| name.len())
        .max()
        .unwrap_or(0)
        .max("total".len());
    let mut table = String::new();
    for (name, outcome, elapsed) in rows.iter().copied().chain([("total", "", total)]) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            table,
            "{name:<width$}  {outcome:<6}  {:>8}",
            seconds(elapsed)
        );
    }
    table
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}

/// Measures how long a command takes.
#[derive(Debug)]
#[expect(clippy::disallowed_types, reason = "real time is what is measured")]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "real time is what is measured"
    )]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_step_and_the_total() {
        let rows = [
            ("fmt", "ok", Duration::from_millis(1_250)),
            ("features", "ok", Duration::ZERO),
            ("doc", "FAILED", Duration::from_secs(100)),
        ];
        let expected = "\
fmt       ok         1.2 s
features  ok         0.0 s
doc       FAILED   100.0 s
total              101.2 s
";
        assert_eq!(table(&rows), expected);
    }

    fn metadata() -> Metadata {
        Metadata {
            packages: Vec::new(),
            target_directory: "target".into(),
        }
    }

    #[test]
    fn a_failed_step_ends_the_run_and_is_named_with_its_command() {
        const fn step(
            name: &'static str,
            plan: fn(&Metadata) -> Result<Vec<Invocation>, Failure>,
        ) -> Step {
            Step {
                name,
                about: "",
                tools: &[],
                plan,
            }
        }
        let steps = [
            step("first", |_| Ok(vec![Invocation::new("cargo --version")])),
            step("second", |_| Ok(vec![])),
            step("third", |_| {
                Ok(vec![Invocation::new("cargo no-such-command")])
            }),
            step("fourth", |_| {
                panic!("a step after the failed one was planned")
            }),
        ];
        let failure = run_all(&steps, &metadata())
            .expect_err("the third step fails")
            .to_string();
        assert!(failure.starts_with("step 'third' failed: "), "{failure}");
        assert!(failure.ends_with("\n  cargo no-such-command"), "{failure}");
    }
}
