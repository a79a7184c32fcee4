//! Prints how much memory of this process an entry of the replay guard's store takes.

use std::{
    error::Error,
    io::{self, Write as _},
};

fn main() -> Result<(), Box<dyn Error>> {
    writeln!(io::stdout(), "{}", steadfast_bench::memory_of_entries()?)?;
    Ok(())
}
