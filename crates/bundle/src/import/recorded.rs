//! What a cyclictest-like tool recorded, whatever format told it, and how it becomes a series.

use super::Malformed;
use crate::state::MAX_BINS;
use punctual_core::series::record_hdr;
use punctual_core::{Clock, Finding, Losses, Nanos, SeriesData, SeriesShape, Severity};
use std::collections::BTreeMap;

/// The largest latency that is believed, in the tool's unit: 1000 s in µs.
pub const MAX_LATENCY: u64 = 1_000_000_000;
/// The largest count that is believed: 30 years at 1 kHz. As many of them as there are bins still add up in 64 bits.
pub const MAX_COUNT: u64 = 1_000_000_000_000;
/// Bins of all threads together: 512 MiB.
const MAX_CELLS: usize = 1 << 26;

/// A whole file.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The unit of all latencies.
    pub unit: Nanos,
    /// The threads in order.
    pub threads: Vec<Thread>,
    /// When it began and ended, where the file says.
    pub times: Option<(jiff::Timestamp, jiff::Timestamp)>,
    /// What stopped it: the name of the thread, and its latency.
    pub stopped: Option<(String, u64)>,
    /// The exit code, where it is not 0.
    pub failed: Option<i64>,
    /// The clock of the timers.
    pub clock: Clock,
    /// What else is known of all threads.
    pub details: BTreeMap<String, String>,
}

/// One measuring thread; latencies in the file's unit.
#[derive(Debug, Default)]
pub struct Thread {
    /// Its index.
    pub index: usize,
    /// Where it ran, where the file says.
    pub cpu: Option<u32>,
    /// The kernel's id.
    pub tid: Option<i32>,
    /// Priority; 0: time sharing; `None`: unknown.
    pub priority: Option<u8>,
    /// The policy's word, where it is known to be other than the tool's default.
    pub policy: Option<String>,
    /// Period in µs.
    pub interval: Option<u64>,
    /// Bins that are not empty, ascending.
    pub bins: Vec<(u64, u64)>,
    /// How many bins the tool kept, where the file says.
    pub range: Option<u64>,
    /// Cycles beyond the bins.
    pub overflows: u64,
    /// Cycles that are in no bin because the tool kept none.
    pub undistributed: u64,
    /// Smallest, mean, largest as the tool states them; meaningless without cycles.
    pub min: u64,
    pub mean: f64,
    pub max: u64,
    /// What else is known of it.
    pub details: BTreeMap<String, String>,
}

impl Recorded {
    /// Holds everything against the bounds; to be called before any [`Thread::data`].
    pub fn check_size(&self) -> Result<(), Malformed> {
        let cells: u64 = self.threads.iter().map(Thread::bins_kept).sum();
        if self.threads.is_empty() {
            return Err(Malformed::at(1, "there is no thread in it"));
        }
        if cells > MAX_CELLS as u64 {
            return Err(Malformed::at(1, format!("histograms of {cells} bins in all are more than fit ({MAX_CELLS})")));
        }
        Ok(())
    }

    /// What is doubtful about these figures because of how they were kept.
    pub fn findings(&self, phase: &str) -> Vec<Finding> {
        self.threads.iter().flat_map(|thread| thread.findings(phase, self.unit)).collect()
    }
}

impl Thread {
    /// Its name as a series.
    pub fn name(&self) -> String {
        format!("thread {}", self.index)
    }

    fn inside(&self) -> u64 {
        self.bins.iter().map(|(_, n)| n).sum()
    }

    /// All its cycles.
    pub fn cycles(&self) -> u64 {
        self.inside() + self.overflows + self.undistributed
    }

    /// The number of bins of its exact histogram: what the tool kept, or up to the last that is not empty.
    fn bins_kept(&self) -> u64 {
        let last = self.bins.last().map_or(0, |(bin, _)| *bin + 1);
        self.range.unwrap_or(last).max(last).clamp(1, MAX_BINS as u64)
    }

    /// Where a cycle beyond the bins is counted: the stated maximum, the only one of their values that is known.
    fn overflow_value(&self) -> u64 {
        self.max.max(self.bins_kept())
    }

    /// The statistics of a series from it. A bin counts at its lower edge, as the tool cut its latencies down to whole units.
    pub fn data(&self, unit: Nanos) -> SeriesData {
        let range = unit * (self.bins_kept() - 1) as i64;
        let period = self.interval.map(|us| Nanos::MICRO * us as i64);
        let mut data = SeriesData::new(SeriesShape { range, resolution: unit, period });
        let beyond = (self.overflow_value(), self.overflows);
        for (value, n) in self.bins.iter().copied().chain([beyond]).filter(|(_, n)| *n > 0) {
            let latency = unit * value as i64;
            data.exact.record_n(latency, n);
            record_hdr(&mut data.whole, latency, n);
        }
        let cycles = self.cycles();
        data.losses = Losses { recorded: cycles, overruns: 0, dropped: 0 };
        data.sum_squares = None;
        if cycles > 0 {
            data.min = Some(unit * self.smallest() as i64);
            data.max = Some(unit * self.largest() as i64);
            data.sum = self.sum(unit);
        }
        data
    }

    fn smallest(&self) -> u64 {
        self.bins.first().map_or(self.min, |(bin, _)| self.min.min(*bin))
    }

    fn largest(&self) -> u64 {
        let last = self.bins.last().map_or(0, |(bin, _)| *bin);
        let beyond = if self.overflows > 0 { self.overflow_value() } else { 0 };
        self.max.max(last).max(beyond).max(self.smallest())
    }

    /// The sum of the latencies in ns: exactly that of the bins where they hold every cycle, else by the stated mean.
    fn sum(&self, unit: Nanos) -> i128 {
        let unit = i128::from(unit.ns());
        if self.overflows == 0 && self.undistributed == 0 {
            return self.bins.iter().map(|(bin, n)| i128::from(*bin) * i128::from(*n) * unit).sum();
        }
        // At most 1e9 units and 1e12 cycles: the product is exact enough in a float of 53 bits for a mean that has 2 decimals.
        (self.mean * unit as f64 * self.cycles() as f64).round() as i128
    }

    fn findings(&self, phase: &str, unit: Nanos) -> Vec<Finding> {
        let subject = format!("{phase}/{}", self.name());
        let mut findings = Vec::new();
        if self.overflows > 1 {
            let share = self.inside() as f64 / self.cycles() as f64 * 100.0;
            let message = "cycles lay beyond the histogram and the file tells only the largest of them: all are counted as late as that, \
                           so that high percentiles are upper bounds";
            findings.push(
                Finding::new("overflow-values-unknown", Severity::Warning, &subject, message)
                    .evidence(format!("{} of {} cycles; percentiles above p{share:.3}", self.overflows, self.cycles()))
                    .remedy("let the tool keep a larger histogram (cyclictest: -h)"),
            );
        }
        if self.cycles() > 0 && (self.smallest() != self.min || self.largest() != self.max) {
            let (min, max) = (unit * self.smallest() as i64, unit * self.largest() as i64);
            let stated = (unit * self.min as i64, unit * self.max as i64);
            findings.push(
                Finding::new(
                    "source-inconsistent",
                    Severity::Warning,
                    &subject,
                    "the file's histogram and its minimum or maximum disagree",
                )
                .evidence(format!(
                    "stated {} to {}, histogram {} to {}: the wider range is taken",
                    stated.0.readable(),
                    stated.1.readable(),
                    min.readable(),
                    max.readable()
                ))
                .remedy("look whether the file was edited or put together from several"),
            );
        }
        findings
    }
}

/// A number of the file, held against its bound.
pub fn bounded(number: u64, bound: u64, what: &str, line: usize) -> Result<u64, Malformed> {
    if number > bound {
        return Err(Malformed::at(line, format!("{what} {number} is beyond belief (more than {bound})")));
    }
    Ok(number)
}

/// The number of a bin.
pub fn bin(number: u64, line: usize) -> Result<u64, Malformed> {
    bounded(number, MAX_BINS as u64 - 1, "the latency", line)
}
