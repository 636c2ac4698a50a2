//! The recording of another tool in any format, and its conversion to series.

use super::Malformed;
use super::Tool;
use crate::answer::Delays;
use crate::state::MAX_BINS;
use punctual_core::notes::{Cell, Column, Table};
use punctual_core::series::record_hdr;
use punctual_core::{Clock, Finding, Losses, Nanos, Notes, SeriesData, SeriesShape, Severity};
use std::collections::BTreeMap;

/// The maximum number of bins per thread.
pub const BINS: u64 = MAX_BINS as u64;
/// The maximum number of bins of all threads: 512 MiB.
const MAX_CELLS: usize = 1 << 26;

/// Bins for latencies known one by one; longer ones are kept separately.
const VALUE_BINS: u64 = 100_000;

/// The minimum of a thread if the source does not state it.
pub(crate) const UNKNOWN_MIN: u64 = u64::MAX;

/// The maximum number of latencies added to a series as correction for coordinated omission.
const MAX_CORRECTIONS: u64 = 1 << 20;

/// A whole file.
#[derive(Debug)]
pub struct ImportedFile {
    pub tool: Tool,
    /// The source, for messages: `cyclictest --json`.
    pub source: &'static str,
    /// The unit of all latencies.
    pub unit: Nanos,
    /// The width of a bin in that unit, which is the tool's resolution.
    pub step: u64,
    pub threads: Vec<Thread>,
    /// When the run began and ended, if recorded.
    pub times: Option<(jiff::Timestamp, jiff::Timestamp)>,
    /// The thread that ended the run, and its latency.
    pub stopped: Option<(String, Nanos)>,
    /// The exit code, unless 0.
    pub failed: Option<i64>,
    /// The clock of the timers.
    pub clock: Clock,
    /// The duration, if the file states no times.
    pub duration: Option<Nanos>,
    /// Findings about the whole file.
    pub findings: Vec<Finding>,
    /// Further details of all threads.
    pub details: BTreeMap<String, String>,
    /// The tool's statements on the causes of delay of a thread.
    pub delayed_by: Vec<Delays>,
    /// Its further figures and tables.
    pub notes: Notes,
}

/// One measuring thread; latencies in the file's unit.
#[derive(Debug, Default)]
pub struct Thread {
    /// As the file numbers its threads.
    pub index: usize,
    /// Its name, unless it is `thread 0`, …
    pub name: Option<String>,
    /// The CPU, if recorded.
    pub cpu: Option<u32>,
    pub tid: Option<i32>,
    /// Priority; 0: time sharing; `None`: unknown.
    pub priority: Option<u8>,
    /// The name of the policy, if known to differ from the tool's default.
    pub policy: Option<String>,
    /// Period in µs.
    pub interval: Option<u64>,
    /// Bins that are not empty, ascending: lower edge and count.
    pub bins: Vec<(u64, u64)>,
    /// Latencies beyond the bins that are known one by one, with counts.
    pub beyond: Vec<(u64, u64)>,
    /// The number of bins the tool kept, if recorded.
    pub range: Option<u64>,
    /// Cycles beyond the bins with unknown latencies.
    pub overflows: u64,
    /// Cycles in no bin, as the tool kept none.
    pub undistributed: u64,
    /// Skipped releases, if the tool counts them.
    pub overruns: Option<u64>,
    /// Smallest ([`UNKNOWN_MIN`]: not stated), mean and largest as stated by the tool; meaningless
    /// without cycles.
    pub min: u64,
    pub mean: f64,
    pub max: u64,
    /// Further details.
    pub details: BTreeMap<String, String>,
}

impl ImportedFile {
    /// An empty recording of a tool, in µs.
    pub fn new(tool: Tool, source: &'static str) -> ImportedFile {
        ImportedFile {
            tool,
            source,
            unit: Nanos::MICRO,
            step: 1,
            threads: Vec::new(),
            times: None,
            stopped: None,
            failed: None,
            clock: Clock::default(),
            duration: None,
            findings: Vec::new(),
            details: BTreeMap::new(),
            delayed_by: Vec::new(),
            notes: Notes::default(),
        }
    }

    /// The width of a bin.
    pub(crate) fn bin_width(&self) -> Nanos {
        self.unit * self.step as i64
    }

    /// For a run that ends at the first latency above a limit: takes the thread with the largest
    /// latency above it. The file does not record which thread ended the run.
    pub fn stop_above(&mut self, limit: Option<u64>) {
        let worst = self
            .threads
            .iter()
            .filter(|thread| thread.cycle_count() > 0)
            .max_by_key(|thread| thread.max);
        self.stopped = limit
            .zip(worst)
            .filter(|(limit, worst)| worst.max > *limit)
            .map(|(_, w)| (w.series_name(), self.unit * w.max as i64));
    }

    /// Checks all numbers against the bounds; call it before any [`Thread::to_series_data`].
    pub(crate) fn check_size(&self) -> Result<(), Malformed> {
        let cells: u64 = self.threads.iter().map(|thread| thread.bins_kept(self.step)).sum();
        if self.threads.is_empty() {
            return Err("there is no thread in it".into());
        }
        if cells > MAX_CELLS as u64 {
            let reason =
                format!("histograms of {cells} bins in all are more than fit ({MAX_CELLS})");
            return Err(reason.into());
        }
        Ok(())
    }

    /// Findings about these figures that follow from the tool's storage.
    pub(crate) fn file_findings(&self, phase: &str) -> Vec<Finding> {
        let with_subject =
            |finding: &Finding| Finding { subject: phase.to_owned(), ..finding.clone() };
        let of_all = self.findings.iter().map(with_subject);
        of_all
            .chain(self.threads.iter().flat_map(|thread| thread.thread_findings(phase, self)))
            .collect()
    }
}

impl Thread {
    /// Its name as a series.
    pub fn series_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("thread {}", self.index))
    }

    /// A thread with all latencies known.
    pub(crate) fn of_values(index: usize, values: impl IntoIterator<Item = u64>) -> Thread {
        let mut value_counts = BTreeMap::new();
        values.into_iter().for_each(|value| *value_counts.entry(value).or_insert(0u64) += 1);
        let (first, last) = (value_counts.first_key_value(), value_counts.last_key_value());
        let (min, max) =
            (first.map_or(0, |(value, _)| *value), last.map_or(0, |(value, _)| *value));
        let count: u64 = value_counts.values().sum();
        let mean = value_counts.iter().map(|(value, n)| *value as f64 * *n as f64).sum::<f64>()
            / count.max(1) as f64;
        let beyond = value_counts.split_off(&VALUE_BINS).into_iter().collect();
        Thread {
            index,
            bins: value_counts.into_iter().collect(),
            beyond,
            min,
            mean,
            max,
            ..Thread::default()
        }
    }

    /// Takes smallest, mean and largest from the bins, if nothing lay beyond them.
    pub(crate) fn figures_of_bins(&mut self, step: u64) {
        self.min = self.bins.first().map_or(0, |(bin, _)| *bin);
        self.max = self.bins.last().map_or(0, |(bin, _)| *bin + step - 1);
        let sum: f64 = self.bins.iter().map(|(bin, n)| *bin as f64 * *n as f64).sum();
        self.mean = sum / self.cycles_in_bins().max(1) as f64;
    }

    /// Cycles in bins, or known one by one.
    pub(crate) fn cycles_in_bins(&self) -> u64 {
        self.bins.iter().chain(&self.beyond).map(|(_, n)| n).sum()
    }

    pub(crate) fn cycle_count(&self) -> u64 {
        self.cycles_in_bins() + self.overflows + self.undistributed
    }

    /// The number of bins of its exact histogram: those the tool kept, or up to the last non-empty
    /// one.
    fn bins_kept(&self, step: u64) -> u64 {
        let last = self.bins.last().map_or(0, |(bin, _)| *bin / step + 1);
        self.range.unwrap_or(last).max(last).clamp(1, MAX_BINS as u64)
    }

    /// The value that cycles beyond the bins are counted at: the stated maximum, the only such
    /// latency that is known.
    fn overflow_value(&self, step: u64) -> u64 {
        self.max.max(self.bins_kept(step) * step)
    }

    /// The number of longer samples at the resolution of the bins; `None` if unknown.
    pub(crate) fn longer_than(&self, bound: Nanos, unit: Nanos, step: u64) -> Option<u64> {
        let is_longer = |value: u64| unit * value as i64 > bound;
        if self.cycle_count() == 0 || !is_longer(self.largest_latency(step)) {
            return Some(0);
        }
        let of_overflows = self.overflows <= 1 || is_longer(self.bins_kept(step) * step);
        (self.undistributed == 0 && of_overflows).then(|| {
            let known_values = self.bins.iter().chain(&self.beyond);
            known_values.filter(|(value, _)| is_longer(*value)).map(|(_, n)| n).sum::<u64>()
                + self.overflows
        })
    }

    /// The statistics as a series. A bin counts at its lower edge, as the tool truncates latencies
    /// to whole units.
    pub(crate) fn to_series_data(&self, unit: Nanos, step: u64) -> SeriesData {
        let resolution = unit * step as i64;
        let range = resolution * (self.bins_kept(step) - 1) as i64;
        let period = self.interval.map(|us| Nanos::MICRO * us as i64);
        let mut data = SeriesData::new(SeriesShape { range, resolution, period });
        let beyond = (self.overflow_value(step), self.overflows);
        for (value, n) in
            self.bins.iter().chain(&self.beyond).copied().chain([beyond]).filter(|(_, n)| *n > 0)
        {
            let latency = unit * value as i64;
            data.exact.record_n(latency, n);
            record_hdr(&mut data.whole, latency, n);
        }
        let cycles = self.cycle_count();
        let skipped = self.overruns.unwrap_or(0);
        data.losses = Losses { recorded: cycles, skipped, ..Losses::default() };
        self.add_corrections(&mut data, unit);
        data.sum_squares = None;
        if cycles > 0 {
            let smallest = Some(self.smallest_latency(step)).filter(|min| *min != UNKNOWN_MIN);
            data.min = smallest.map(|min| unit * min as i64);
            data.max = Some(unit * self.largest_latency(step) as i64);
            data.sum = self.latency_sum(unit);
        }
        data
    }

    /// Adds the latencies of the periods that passed during a longer one, if the histogram holds
    /// every latency (as `SeriesData::record_missed` does for single samples).
    fn add_corrections(&self, data: &mut SeriesData, unit: Nanos) {
        let Some(period) = data.period.filter(|_| self.overruns.is_some_and(|n| n > 0)) else {
            return;
        };
        let longer = || self.bins.iter().chain(&self.beyond).map(|(v, n)| (unit * *v as i64, *n));
        let missed = |latency: Nanos| (latency.ns() - 1).max(0) / period.ns().max(1);
        let missed_count: u64 = longer().map(|(latency, _)| missed(latency) as u64).sum();
        if self.overflows + self.undistributed > 0
            || missed_count == 0
            || missed_count > MAX_CORRECTIONS
        {
            return;
        }
        let mut corrected = data.whole.clone();
        for (latency, n) in longer() {
            (1..=missed(latency)).for_each(|k| record_hdr(&mut corrected, latency - period * k, n));
        }
        data.corrected = Some(corrected);
    }

    /// The stated minimum, unless a bin wholly below it is not empty.
    fn smallest_latency(&self, step: u64) -> u64 {
        self.bins
            .first()
            .map_or(self.min, |(bin, _)| if bin + step > self.min { self.min } else { *bin })
    }

    fn largest_latency(&self, step: u64) -> u64 {
        let last = self.bins.iter().chain(&self.beyond).last().map_or(0, |(bin, _)| *bin);
        let beyond = if self.overflows > 0 { self.overflow_value(step) } else { 0 };
        let smallest = Some(self.smallest_latency(step)).filter(|min| *min != UNKNOWN_MIN);
        self.max.max(last).max(beyond).max(smallest.unwrap_or(0))
    }

    /// The sum of the latencies in ns: exactly that of the bins if they hold every cycle, else by
    /// the stated mean.
    fn latency_sum(&self, unit: Nanos) -> i128 {
        let unit = i128::from(unit.ns());
        if self.overflows == 0 && self.undistributed == 0 {
            return self
                .bins
                .iter()
                .chain(&self.beyond)
                .map(|(bin, n)| i128::from(*bin) * i128::from(*n) * unit)
                .sum();
        }
        // At most 1e9 units and 1e12 cycles: a float of 53 bits is exact enough for a mean with 2
        // decimals.
        (self.mean * unit as f64 * self.cycle_count() as f64).round() as i128
    }

    fn thread_findings(&self, phase: &str, all: &ImportedFile) -> Vec<Finding> {
        let subject = format!("{phase}/{}", self.series_name());
        let (unit, step) = (all.unit, all.step);
        let mut findings = Vec::new();
        if self.overflows > 1 {
            let share = share_below(self.cycles_in_bins(), self.cycle_count());
            let message = "cycles lay beyond the histogram and the file has only the largest of \
                           them: all are counted as that, so that high percentiles are upper \
                           bounds";
            findings.push(
                Finding::new("overflow-values-unknown", Severity::Warning, &subject, message)
                    .with_evidence(format!(
                        "{} of {} cycles; percentiles above p{share}",
                        self.overflows,
                        self.cycle_count()
                    ))
                    .with_remedy(format!(
                        "let the tool keep a larger histogram ({})",
                        all.tool.histogram_option()
                    )),
            );
        }
        if let Some(evidence) = self.find_contradiction(unit, step) {
            let message = "the file's histogram, minimum, mean and maximum do not agree";
            findings.push(
                Finding::new("source-inconsistent", Severity::Warning, &subject, message)
                    .with_evidence(evidence)
                    .with_remedy("check whether the file was edited or assembled from several"),
            );
        }
        findings
    }

    /// The contradiction between the stated figures and the file's own histogram, if any.
    fn find_contradiction(&self, unit: Nanos, step: u64) -> Option<String> {
        let format_value = |value: u64| (unit * value as i64).to_readable();
        let (smallest, largest) = (self.smallest_latency(step), self.largest_latency(step));
        // A bin states its lower edge.
        let slack = step - 1;
        if self.cycle_count() == 0 {
            None
        } else if (smallest < self.min && self.min != UNKNOWN_MIN) || largest > self.max + slack {
            Some(format!(
                "stated {} to {}, histogram {} to {}: the wider range is taken",
                format_value(self.min),
                format_value(self.max),
                format_value(smallest),
                format_value(largest)
            ))
        } else if (self.min != UNKNOWN_MIN && self.mean + 1.0 < self.min as f64)
            || self.mean > self.max as f64 + 1.0
        {
            let mean = Nanos((self.mean * unit.ns() as f64) as i64).to_readable();
            Some(format!(
                "the stated mean of {mean} is not between {} and {}",
                format_value(self.min),
                format_value(self.max)
            ))
        } else {
            None
        }
    }
}

/// A finding about the whole file.
pub(crate) fn file_note(id: &'static str, message: impl Into<String>) -> Finding {
    Finding::new(id, Severity::Note, "", message)
}

/// The same, of what may make its figures wrong.
pub(crate) fn file_warning(id: &'static str, message: impl Into<String>) -> Finding {
    Finding::new(id, Severity::Warning, "", message)
}

/// A table of these columns, each a name and a unit.
pub(crate) fn make_table(
    name: &str,
    title: &str,
    columns: &[(&str, &str)],
    rows: Vec<Vec<Cell>>,
) -> Table {
    let columns = columns.iter().map(|(name, unit)| Column::new(name, unit)).collect();
    Table { name: name.into(), title: title.into(), columns, rows }
}

/// The share in percent, truncated to as many decimals as distinguish it from 100: `99.9`,
/// `99.9999997`.
fn share_below(some: u64, all: u64) -> String {
    let (some, all) = (u128::from(some), u128::from(all.max(1)));
    let mut decimals = 3;
    // Stops once the difference to 100 % has a digit.
    while decimals < 15 && (all - some.min(all)) * 100 * 10u128.pow(decimals) < all {
        decimals += 1;
    }
    let scale = 10u128.pow(decimals);
    let share = some * 100 * scale / all;
    format!("{}.{:0width$}", share / scale, share % scale, width = decimals as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_below_100_percent_is_never_rounded_up_to_it() {
        assert_eq!(share_below(999, 1_000), "99.900");
        assert_eq!(share_below(1_000_000_000 - 3, 1_000_000_000), "99.9999997");
        assert_eq!(share_below(0, 5), "0.000");
        assert_eq!(share_below(u64::MAX - 1, u64::MAX), "99.999999999999999");
        assert_eq!(share_below(2, 3), "66.666");
    }
}
