//! A line for each interval during a count.

use super::counters::RequestedCounters;
use super::request::WantedCount;
use crate::output;
use punctual_core::{MonotonicNs, Nanos, PerfEvent};
use punctual_report::terminal::{LiveCount, live_counts_header, live_counts_line};
use punctual_sys::clock;
use std::io;

/// Lines after which the heading is repeated, as of vmstat(8).
const HEADING: u64 = 20;

/// The last printed counts, and their time.
pub struct Live<'c> {
    counters: &'c RequestedCounters,
    every: Nanos,
    began: MonotonicNs,
    last: MonotonicNs,
    values: Vec<Option<u64>>,
    lines: u64,
}

impl<'c> Live<'c> {
    /// Starts intervals of this length.
    pub fn new(counters: &'c RequestedCounters, every: Nanos) -> Live<'c> {
        let now = clock::monotonic_now();
        let values = counters.current_values().map(|(_, value)| value).collect();
        Live { counters, every, began: now, last: now, values, lines: 0 }
    }

    /// Prints the interval if it is over.
    pub fn print_if_due(&mut self) {
        if clock::monotonic_now() - self.last >= self.every {
            self.print_interval();
        }
    }

    fn print_interval(&mut self) {
        let now = clock::monotonic_now();
        let seconds = (now - self.last).as_secs_f64();
        let count_interval = |((wanted, value), before): ((&WantedCount, _), &Option<u64>)| {
            let added =
                Option::zip(value, *before).map(|(now, then): (u64, u64)| now.saturating_sub(then));
            let count = LiveCount {
                name: wanted.name.clone(),
                per_second: added.map(|added| added as f64 / seconds),
                is_time: wanted.event.as_ref().is_some_and(PerfEvent::is_time),
            };
            (count, value)
        };
        let (counts, values): (Vec<LiveCount>, Vec<_>) =
            self.counters.current_values().zip(&self.values).map(count_interval).unzip();
        let width = output::terminal_size(io::stderr()).map(|(columns, _)| columns);
        if self.lines.is_multiple_of(HEADING) {
            output::print_stderr(&(live_counts_header(&counts, width) + "\n"));
        }
        output::print_stderr(&(live_counts_line(now - self.began, &counts, width) + "\n"));
        (self.last, self.values, self.lines) = (now, values, self.lines + 1);
    }
}
