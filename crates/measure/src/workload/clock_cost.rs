//! The cost of reading the clock: a part of every sample, shown but never subtracted.

use crate::workload::measurement_loop::LoopClock;
use punctual_core::{ClockCost, Nanos};

/// Pairs of readings: enough for a 99th percentile, a millisecond in all.
const PAIRS: usize = 10_000;

/// Reads the clock twice in a row, many times. Allocates: must not run between samples.
pub fn clock_cost(ticks: &impl LoopClock) -> ClockCost {
    let mut spans: Vec<i64> = vec![0; PAIRS];
    for span in &mut spans {
        let begin = ticks.now();
        let end = ticks.now();
        *span = ticks.reading_to_ns(end) - ticks.reading_to_ns(begin);
    }
    spans.sort_unstable();
    let at = |share: f64| Nanos(spans[((PAIRS - 1) as f64 * share) as usize]);
    ClockCost {
        clock: ticks.clock_name().to_owned(),
        count: PAIRS as u64,
        min: at(0.0),
        median: at(0.5),
        p99: at(0.99),
        max: at(1.0),
    }
}
