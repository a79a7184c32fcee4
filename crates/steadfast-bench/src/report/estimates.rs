use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::Scenario;

#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
}

/// The median of the last measurement in nanoseconds, if there was one.
pub(super) fn median(scenario: &Scenario) -> Option<f64> {
    let directory = directory()?.join(scenario.group()).join(scenario.name());
    read(&directory.join("new").join("estimates.json"))
}

fn read(file: &Path) -> Option<f64> {
    let estimates: Estimates = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    Some(estimates.median.point_estimate)
}

/// Where criterion writes: into `criterion` beside the directory of this program, unless told otherwise.
fn directory() -> Option<PathBuf> {
    if let Some(home) = env::var_os("CRITERION_HOME") {
        return Some(home.into());
    }
    let program = env::current_exe().ok()?;
    Some(program.parent()?.parent()?.join("criterion"))
}
