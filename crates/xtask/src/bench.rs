use std::time::Duration;

use crate::invocation::{Failure, Invocation};

const PACKAGE: &str = "steadfast-bench";

/// Criterion measures every benchmark for seconds, and there are many.
const LIMIT: Duration = Duration::from_secs(3 * 60 * 60);

/// Runs the benchmarks whose name contains `filter`, then prints the ratios between all that were measured.
///
/// The report is a program of the bench crate, since only that crate knows which figure is set against which:
/// `cargo run --release -p steadfast-bench --bin report`.
pub(crate) fn run(filter: &str) -> Result<(), Failure> {
    let mut bench = Invocation::new("cargo bench --benches --all-features --package").arg(PACKAGE);
    if !filter.is_empty() {
        bench = bench.arg("--").arg(filter);
    }
    bench.limit(LIMIT).run()?;
    for program in ["report", "memory"] {
        Invocation::new("cargo run --release --package")
            .arg(PACKAGE)
            .arg("--bin")
            .arg(program)
            .run()?;
    }
    Ok(())
}
