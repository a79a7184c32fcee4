//! The chores of the workspace, started with `cargo xtask`.
//!
//! `cargo xtask test` is what CI runs and what a newcomer runs after cloning: it installs the tools that are
//! missing, then checks and tests everything in named steps. `cargo xtask --help` lists the rest.
#![expect(
    clippy::print_stdout,
    reason = "a command-line tool talks to whoever started it"
)]
#![expect(
    clippy::print_stderr,
    reason = "a command-line tool reports its failures there"
)]

mod bench;
mod cli;
mod features;
mod fuzz;
mod invocation;
mod metadata;
mod peers;
mod step;
mod test;
mod tool;

use std::process::ExitCode;

use crate::cli::Command;

fn main() -> ExitCode {
    let outcome = match cli::parse(std::env::args_os().skip(1)) {
        Ok(Command::Bench { filter }) => bench::run(&filter),
        Ok(Command::Help(text)) => {
            print!("{text}");
            Ok(())
        }
        Ok(Command::List) => {
            test::list();
            Ok(())
        }
        Ok(Command::Setup) => test::set_up(),
        Ok(Command::Test { only }) => test::run(&only),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
