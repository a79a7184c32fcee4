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
    pub(crate) plan: fn(&Metadata) -> Result<Plan, Failure>,
}

/// What a step comes to in this workspace, on this machine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Run(Vec<Invocation>),
    /// There is nothing to run, for this reason.
    Skip(String),
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Failed,
    Passed,
    Skipped,
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
        let ended = run(step, metadata);
        let elapsed = stopwatch.elapsed();
        let outcome = *ended.as_ref().unwrap_or(&Outcome::Failed);
        println!(
            "<== {}: {} in {}",
            step.name,
            outcome.word(),
            seconds(elapsed)
        );
        rows.push((step.name, outcome, elapsed));
        if let Err(failure) = ended {
            result = Err(failure.in_step(step.name));
            break;
        }
    }
    println!("\n{}", table(&rows));
    result
}

fn run(step: &Step, metadata: &Metadata) -> Result<Outcome, Failure> {
    match (step.plan)(metadata)? {
        Plan::Run(invocations) => {
            invocations.iter().try_for_each(Invocation::run)?;
            Ok(Outcome::Passed)
        }
        Plan::Skip(reason) => {
            println!("skipped: {reason}");
            Ok(Outcome::Skipped)
        }
    }
}

fn table(rows: &[(&str, Outcome, Duration)]) -> String {
    let total = rows.iter().map(|&(_, _, elapsed)| elapsed).sum();
    let width = rows
        .iter()
        .map(|&(name, ..)| name.len())
        .max()
        .unwrap_or(0)
        .max("total".len());
    let mut table = String::new();
    let cells = rows
        .iter()
        .map(|&(name, outcome, elapsed)| (name, outcome.word(), elapsed));
    for (name, outcome, elapsed) in cells.chain([("total", "", total)]) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            table,
            "{name:<width$}  {outcome:<7}  {:>8}",
            seconds(elapsed)
        );
    }
    table
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}

impl Outcome {
    const fn word(self) -> &'static str {
        match self {
            Self::Failed => "FAILED",
            Self::Passed => "ok",
            Self::Skipped => "skipped",
        }
    }
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
            ("fmt", Outcome::Passed, Duration::from_millis(1_250)),
            ("fuzz-smoke", Outcome::Skipped, Duration::ZERO),
            ("doc", Outcome::Failed, Duration::from_secs(100)),
        ];
        let expected = "\
fmt         ok          1.2 s
fuzz-smoke  skipped     0.0 s
doc         FAILED    100.0 s
total                 101.2 s
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
        const fn step(name: &'static str, plan: fn(&Metadata) -> Result<Plan, Failure>) -> Step {
            Step {
                name,
                about: "",
                tools: &[],
                plan,
            }
        }
        let steps = [
            step("first", |_| {
                Ok(Plan::Run(vec![Invocation::new("cargo --version")]))
            }),
            step("second", |_| Ok(Plan::Skip("nothing to do".to_owned()))),
            step("third", |_| {
                Ok(Plan::Run(vec![Invocation::new("cargo no-such-command")]))
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
