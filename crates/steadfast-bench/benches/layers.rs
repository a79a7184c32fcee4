//! Times every scenario.

use std::time::Duration;

use criterion::{
    Criterion, criterion_main,
    measurement::{Measurement as _, WallTime},
};
use steadfast_bench::{BATCH, Scenario, in_runtime, scenarios};

fn benches() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let ran = in_runtime(|| {
        for scenario in scenarios() {
            time(&mut criterion, &scenario);
        }
    });
    ran.expect("a runtime without I/O");
    criterion.final_summary();
}

fn time(criterion: &mut Criterion, scenario: &Scenario) {
    // Built for the first measurement, so that a filter leaves the others alone.
    let mut case = None;
    let mut group = criterion.benchmark_group(scenario.group());
    group.bench_function(scenario.name(), |bencher| {
        let case = case.get_or_insert_with(|| scenario.case());
        bencher.iter_custom(|iterations| {
            let mut left = usize::try_from(iterations).expect("fewer than fit into memory");
            let mut elapsed = WallTime.zero();
            while left > 0 {
                let batch = left.min(BATCH);
                case.prepare(batch);
                let start = WallTime.start();
                case.run(batch);
                elapsed = WallTime.add(&elapsed, &WallTime.end(start));
                left -= batch;
            }
            elapsed
        });
    });
    group.finish();
}

criterion_main!(benches);
