use std::{
    fmt, io,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use crate::{metadata, step::Stopwatch};

/// How long a command may run unless it says otherwise; a hung one must not eat the whole CI budget.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// How often a running command is asked whether it has ended.
const POLL: Duration = Duration::from_millis(20);

/// One command line, run from the workspace root, that can also be printed for repeating by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    program: String,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
    unset: Vec<&'static str>,
    limit: Duration,
}

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    reason: String,
    /// The command to type to see it again.
    command: Option<String>,
}

impl Invocation {
    /// Starts a command line of words without spaces in them.
    pub(crate) fn new(line: &str) -> Self {
        let (program, args) = line.split_once(' ').unwrap_or((line, ""));
        args.split_whitespace().fold(Self::of(program), Self::arg)
    }

    /// Starts the command line of this program, spaces and all.
    pub(crate) fn of(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            unset: Vec::new(),
            limit: LIMIT,
        }
    }

    /// Adds one argument, spaces and all.
    pub(crate) fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Removes an environment variable.
    pub(crate) fn unset(mut self, name: &'static str) -> Self {
        self.unset.push(name);
        self
    }

    /// Sets how long the command may run, 40 minutes by default.
    pub(crate) const fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Prints the command and runs it, its output going where ours goes.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        println!("$ {self}");
        let child = self
            .command()
            .spawn()
            .map_err(|error| self.failure(spawn_reason(&error)))?;
        match wait(child, self.limit) {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => Err(self.failure(format!("it ended with {status}"))),
            Ok(None) => Err(self.failure(format!("it was stopped after {:?}", self.limit))),
            Err(error) => Err(self.failure(format!("waiting for it failed: {error}"))),
        }
    }

    /// Runs the command silently and returns what it printed.
    pub(crate) fn output(&self) -> Result<String, Failure> {
        let output = self
            .command()
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| self.failure(spawn_reason(&error)))?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            return Err(self.failure(format!(
                "it ended with {}\n{}",
                output.status,
                told.trim_end()
            )));
        }
        String::from_utf8(output.stdout).map_err(|_| self.failure("it printed no UTF-8".to_owned()))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .stdin(Stdio::null())
            .current_dir(metadata::root());
        // What `cargo run` tells us about ourselves would be taken for the nested call's own. Build scripts that
        // watch these variables would run again, and everything behind them.
        for (name, _) in std::env::vars_os() {
            let told_by_cargo = name.to_str().is_some_and(|name| {
                name == "CARGO"
                    || name.starts_with("CARGO_PKG_")
                    || name.starts_with("CARGO_MANIFEST_")
            });
            if told_by_cargo {
                command.env_remove(name);
            }
        }
        for name in &self.unset {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn failure(&self, reason: String) -> Failure {
        Failure {
            reason,
            command: Some(self.to_string()),
        }
    }
}

impl Failure {
    /// A failure that no single command shows again.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            command: None,
        }
    }

    /// Says in which step it happened.
    pub(crate) fn in_step(mut self, name: &str) -> Self {
        self.reason = format!("step '{name}' failed: {}", self.reason);
        self
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.unset.is_empty() {
            write!(f, "env")?;
            for name in &self.unset {
                write!(f, " -u {name}")?;
            }
            write!(f, " ")?;
        }
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(value))?;
        }
        write!(f, "{}", quoted(&self.program))?;
        self.args
            .iter()
            .try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        let Some(command) = &self.command else {
            return Ok(());
        };
        let root = metadata::root();
        write!(
            f,
            "\nto repeat it:\n  cd {}\n  {command}",
            quoted(&root.display().to_string())
        )
    }
}

/// Waits for `child`; `None` when it had to be stopped at `limit`.
#[expect(
    clippy::disallowed_methods,
    reason = "no runtime here whose thread could be blocked"
)]
fn wait(mut child: Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let stopwatch = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if stopwatch.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

fn spawn_reason(error: &io::Error) -> String {
    format!("it could not be started: {error}")
}

/// Quotes a word for a POSIX shell where it needs that.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Says whether a command can be started and succeeds; prints nothing.
pub(crate) fn succeeds(line: &str) -> bool {
    Invocation::new(line).output().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_printed_so_that_a_shell_reads_it_back() {
        let invocation = Invocation::new("cargo test -- --exact")
            .arg("it's one")
            .arg("")
            .env("RUSTFLAGS", "-Dwarnings --cfg x")
            .unset("CARGO_TARGET_DIR");
        assert_eq!(
            invocation.to_string(),
            r"env -u CARGO_TARGET_DIR RUSTFLAGS='-Dwarnings --cfg x' cargo test -- --exact 'it'\''s one' ''"
        );
    }

    #[test]
    fn what_cargo_said_about_this_crate_is_not_passed_on() {
        // Set by cargo and nextest for this test too.
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        let printed = Invocation::new("env").output().expect("`env` succeeds");
        assert!(
            printed.lines().any(|line| line.starts_with("PATH=")),
            "{printed}"
        );
        for name in ["CARGO=", "CARGO_PKG_", "CARGO_MANIFEST_"] {
            assert!(
                !printed.lines().any(|line| line.starts_with(name)),
                "{printed}"
            );
        }
    }

    #[test]
    fn a_command_that_hangs_is_stopped_at_its_limit() {
        let failure = Invocation::new("sleep 3600")
            .limit(Duration::from_millis(1))
            .run();
        let told = failure.expect_err("it never ends by itself").to_string();
        assert!(told.starts_with("it was stopped after 1ms"), "{told}");
        assert!(told.ends_with("\n  sleep 3600"), "{told}");
    }

    #[test]
    fn a_command_that_does_not_exist_is_a_failure_not_a_panic() {
        let told = Invocation::new("no-such-program-at-all")
            .run()
            .expect_err("there is none")
            .to_string();
        assert!(told.starts_with("it could not be started"), "{told}");
    }
}
