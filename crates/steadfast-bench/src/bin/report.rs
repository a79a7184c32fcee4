//! Prints time, allocations and instructions of each kind of call as one Markdown table.

use std::{alloc::System, error::Error, io};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> Result<(), Box<dyn Error>> {
    steadfast_bench::print(ALLOCATOR, &mut io::stdout().lock())
}
