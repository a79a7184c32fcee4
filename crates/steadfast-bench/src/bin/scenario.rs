//! Makes calls of one scenario, to be counted by callgrind: `scenario GROUP/NAME CALLS`.
//!
//! The same number of requests is made beforehand whatever the number of calls, and nothing is torn down at the end. So
//! the instructions of two runs differ by those of the calls alone.

use std::{env, error::Error, mem::ManuallyDrop};

use steadfast_bench::{MOST_CALLS, find, in_runtime};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (name, calls) = (arguments.next(), arguments.next());
    let (Some(name), Some(calls)) = (name, calls) else {
        return Err(format!("usage: scenario GROUP/NAME CALLS, at most {MOST_CALLS}").into());
    };
    let scenario = find(&name).ok_or("no such scenario")?;
    let calls = calls.parse::<usize>()?.min(MOST_CALLS);
    in_runtime(|| {
        let mut case = ManuallyDrop::new(scenario.case());
        case.prepare(MOST_CALLS);
        case.run(calls);
    })?;
    Ok(())
}
