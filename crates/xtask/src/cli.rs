use std::{ffi::OsString, fmt};

use lexopt::{Arg, Parser, ValueExt};

use crate::test;

const HELP: &str = "\
The chores of the workspace.

Usage: cargo xtask <COMMAND>

Commands:
  test   Install what is missing, then check and test everything; what CI runs
  setup  Install what is missing and stop
  bench  Run the benchmarks and print the ratios between them

Options:
  -h, --help  Print this help, or with a command that command's
";

const HELP_BENCH: &str = "\
Run the benchmarks of steadfast-bench, then print how each layer compares with the bare call and its peers.

Usage: cargo xtask bench [FILTER]

Arguments:
  [FILTER]  Run only the benchmarks whose name contains FILTER

Options:
  -h, --help  Print this help
";

const HELP_SETUP: &str = "\
Install the tools and the packages that `cargo xtask test` needs and that are missing. Those present are left as they
are.

Usage: cargo xtask setup

Options:
  -h, --help  Print this help
";

const HELP_TEST: &str = "\
Install what is missing, then check and test everything, stopping at the first step that fails.

Usage: cargo xtask test [--only STEP]... [--list]

Options:
      --only STEP  Run only this step, in the usual order; may be given several times
      --list       List the steps and stop
  -h, --help       Print this help
";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Run the benchmarks whose name contains the filter; an empty filter means all.
    Bench { filter: String },
    /// Print this text.
    Help(&'static str),
    /// List the steps of `test`.
    List,
    /// Install the tools.
    Setup,
    /// Run these steps; an empty list means all.
    Test { only: Vec<&'static str> },
}

/// Why the command line cannot be obeyed.
#[derive(Debug)]
pub(crate) enum UsageError {
    Arguments(lexopt::Error),
    NoCommand,
    UnknownCommand(String),
    UnknownStep(String),
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(error) => write!(f, "{error}; see `cargo xtask --help`"),
            Self::NoCommand => write!(f, "no command given\n\n{HELP}"),
            Self::UnknownCommand(name) => {
                write!(f, "unknown command '{name}'; see `cargo xtask --help`")
            }
            Self::UnknownStep(name) => {
                write!(f, "unknown step '{name}'; see `cargo xtask test --list`")
            }
        }
    }
}

impl From<lexopt::Error> for UsageError {
    fn from(error: lexopt::Error) -> Self {
        Self::Arguments(error)
    }
}

/// Reads the arguments that follow the program's name.
pub(crate) fn parse<I>(args: I) -> Result<Command, UsageError>
where
    I: IntoIterator<Item = OsString>,
    I::IntoIter: 'static,
{
    let mut parser = Parser::from_args(args);
    let Some(first) = parser.next()? else {
        return Err(UsageError::NoCommand);
    };
    match first {
        Arg::Long("help") | Arg::Short('h') => Ok(Command::Help(HELP)),
        Arg::Value(name) => match name.string()?.as_str() {
            "bench" => parse_bench(parser),
            "setup" => parse_setup(parser),
            "test" => parse_test(parser),
            other => Err(UsageError::UnknownCommand(other.to_owned())),
        },
        other @ (Arg::Long(_) | Arg::Short(_)) => Err(other.unexpected().into()),
    }
}

fn parse_bench(mut parser: Parser) -> Result<Command, UsageError> {
    let mut filter = None;
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("help") | Arg::Short('h') => return Ok(Command::Help(HELP_BENCH)),
            Arg::Value(value) if filter.is_none() => filter = Some(value.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Command::Bench {
        filter: filter.unwrap_or_default(),
    })
}

fn parse_setup(mut parser: Parser) -> Result<Command, UsageError> {
    match parser.next()? {
        None => Ok(Command::Setup),
        Some(Arg::Long("help") | Arg::Short('h')) => Ok(Command::Help(HELP_SETUP)),
        Some(other) => Err(other.unexpected().into()),
    }
}

fn parse_test(mut parser: Parser) -> Result<Command, UsageError> {
    let mut only = Vec::new();
    let mut list = false;
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("help") | Arg::Short('h') => return Ok(Command::Help(HELP_TEST)),
            Arg::Long("list") => list = true,
            Arg::Long("only") => {
                let name = parser.value()?.string()?;
                let step = test::STEPS.iter().find(|step| step.name == name);
                only.push(step.ok_or(UsageError::UnknownStep(name))?.name);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(if list {
        Command::List
    } else {
        Command::Test { only }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(line: &str) -> Result<Command, UsageError> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(words)
    }

    #[test]
    fn every_command_is_read() {
        for (line, expected) in [
            ("test", Command::Test { only: vec![] }),
            ("test --only fmt", Command::Test { only: vec!["fmt"] }),
            (
                "test --only=fmt --only doc",
                Command::Test {
                    only: vec!["fmt", "doc"],
                },
            ),
            ("test --list", Command::List),
            ("setup", Command::Setup),
            (
                "bench",
                Command::Bench {
                    filter: String::new(),
                },
            ),
            (
                "bench retry",
                Command::Bench {
                    filter: "retry".to_owned(),
                },
            ),
        ] {
            assert_eq!(parse_words(line).expect(line), expected, "{line}");
        }
    }

    #[test]
    fn help_is_given_for_the_whole_and_for_each_command() {
        for (line, expected) in [
            ("--help", HELP),
            ("-h", HELP),
            ("bench --help", HELP_BENCH),
            ("setup -h", HELP_SETUP),
            ("test --help", HELP_TEST),
            ("test --only fmt --help", HELP_TEST),
        ] {
            assert_eq!(
                parse_words(line).expect(line),
                Command::Help(expected),
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in [
            "",
            "tset",
            "--verbose",
            "test fmt",
            "test --only",
            "test --only nosuchstep",
            "test --verbose",
            "setup now",
            "bench one two",
        ] {
            assert!(parse_words(line).is_err(), "{line:?} was accepted");
        }
    }
}
