use std::{alloc::System, io};

use stats_alloc::{Region, StatsAlloc};

use crate::{Scenario, in_runtime};

const CALLS: u32 = 256;

/// How often a call asks the allocator for memory.
pub(super) fn per_call(allocator: &StatsAlloc<System>, scenario: &Scenario) -> io::Result<f64> {
    let calls = CALLS as usize;
    let counted = in_runtime(|| {
        let mut case = scenario.case();
        // What is made once, by whoever comes first, is no call's.
        case.prepare(calls);
        case.run(calls);
        case.prepare(calls);
        let region = Region::new(allocator);
        case.run(calls);
        let change = region.change();
        change.allocations + change.reallocations
    })?;
    let counted = u32::try_from(counted).unwrap_or(u32::MAX);
    Ok(f64::from(counted) / f64::from(CALLS))
}
