use std::{alloc::System, collections::HashMap, error::Error, io::Write};

use stats_alloc::StatsAlloc;

pub use self::callgrind::MOST_CALLS;
use self::{callgrind::Callgrind, figures::Figures, table::Table};
use crate::scenarios;

mod allocations;
mod callgrind;
mod figures;
mod rounds;
mod table;

/// Times every scenario in turns with its bare call, counts its allocations and its instructions, and writes all of it down
/// as one Markdown table. What was not measured is a dash.
///
/// # Errors
///
/// When the runtime or the program to be counted cannot be built, or `out` cannot be written to.
pub fn print(allocator: &StatsAlloc<System>, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let callgrind = Callgrind::new()?;
    let mut figures = HashMap::new();
    for scenario in scenarios() {
        let figure = Figures {
            medians: rounds::medians(&scenario)?,
            allocations: allocations::per_call(allocator, &scenario)?,
            instructions: callgrind
                .as_ref()
                .filter(|_| !scenario.is_bulk())
                .and_then(|it| it.per_call(&scenario)),
        };
        figures.insert((scenario.group(), scenario.name()), figure);
    }
    write!(out, "{}", Table::new(&figures))?;
    Ok(())
}
