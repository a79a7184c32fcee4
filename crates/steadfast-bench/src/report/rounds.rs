#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "here real time is measured"
)]

use std::{
    io,
    time::{Duration, Instant},
};

use crate::{BATCH, Case, Scenario, find, in_runtime};

/// Whichever comes first.
const ROUNDS: usize = 4_000;
const LONGEST: Duration = Duration::from_secs(3);

/// The medians of a call and of its bare call, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Medians {
    pub(super) own: f64,
    pub(super) bare: Option<f64>,
}

/// Times a scenario in turns with its bare call, a batch each: what disturbs the machine for a while disturbs both, and
/// the difference stays true.
pub(super) fn medians(scenario: &Scenario) -> io::Result<Medians> {
    let bare = scenario
        .bare()
        .and_then(|bare| find(&format!("{}/{bare}", scenario.group())));
    in_runtime(|| {
        let mut own = Turns::new(scenario);
        let mut bare = bare.as_ref().map(Turns::new);
        let started = Instant::now();
        for _ in 0..ROUNDS {
            if started.elapsed() > LONGEST {
                break;
            }
            own.take();
            if let Some(bare) = &mut bare {
                bare.take();
            }
        }
        Medians {
            own: own.median(),
            bare: bare.map(Turns::median),
        }
    })
}

struct Turns {
    case: Box<dyn Case>,
    times: Vec<Duration>,
}

impl Turns {
    fn new(scenario: &Scenario) -> Self {
        Self {
            case: scenario.case(),
            times: Vec::with_capacity(ROUNDS),
        }
    }

    fn take(&mut self) {
        self.case.prepare(BATCH);
        let start = Instant::now();
        self.case.run(BATCH);
        self.times.push(start.elapsed());
    }

    fn median(mut self) -> f64 {
        self.times.sort_unstable();
        let batch = self.times[self.times.len() / 2];
        batch.as_secs_f64() * 1e9 / BATCH as f64
    }
}
