use std::{
    env,
    io::{self, ErrorKind},
    path::PathBuf,
    process::Command,
};

use crate::Scenario;

/// The most calls that the program `scenario` makes.
pub const MOST_CALLS: usize = 1_024;

/// Counts instructions of the program `scenario`.
pub(super) struct Callgrind {
    program: PathBuf,
}

impl Callgrind {
    /// `None` on a machine without valgrind.
    pub(super) fn new() -> io::Result<Option<Self>> {
        match Command::new("valgrind").arg("--version").output() {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "--release", "--quiet"])
            .args(["--package", "steadfast-bench", "--bin", "scenario"])
            .status()?;
        if !built.success() {
            return Err(io::Error::other("the program `scenario` cannot be built"));
        }
        let program = env::current_exe()?.with_file_name("scenario");
        Ok(Some(Self { program }))
    }

    /// The instructions of one call, as the difference between many calls and half as many.
    pub(super) fn per_call(&self, scenario: &Scenario) -> Option<u64> {
        let half = MOST_CALLS / 2;
        let many = self.instructions(scenario, MOST_CALLS)?;
        let few = self.instructions(scenario, half)?;
        Some(many.checked_sub(few)? / half as u64)
    }

    fn instructions(&self, scenario: &Scenario, calls: usize) -> Option<u64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&self.program)
            .arg(format!("{}/{}", scenario.group(), scenario.name()))
            .arg(calls.to_string())
            .output()
            .ok()?;
        if !output.status.success() {
            return None;
        }
        collected(&String::from_utf8_lossy(&output.stderr))
    }
}

fn collected(log: &str) -> Option<u64> {
    let line = log.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_the_log() {
        let log = "==7== Events    : Ir\n==7== Collected : 153407\n==7== \n";
        assert_eq!(collected(log), Some(153_407));
        assert_eq!(collected("==7== error\n"), None);
    }
}
