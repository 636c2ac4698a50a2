//! What cyclictest prints at its end (rt-tests 2.4, `print_stat`, `print_hist`, `write_stats`), of
//! a run with a series for each of its threads.

use super::cyclictest::{HistogramTable, bin_counts, write_json_of};
use super::full_name;
use crate::terminal::LiveFigures;
use punctual_bundle::{Bundle, Series};
use punctual_core::Nanos;
use std::io::{self, Write};

/// A run, and how it is shown.
pub struct CyclictestOutput<'a> {
    pub bundle: &'a Bundle,
    /// By the number of the thread: its series is the one of that place.
    pub threads: Vec<ShownThread>,
    /// Whether times are in ns.
    pub nanoseconds: bool,
    /// The rows of the histogram.
    pub rows: u64,
    /// Whether the histogram has a column of all threads.
    pub of_all: bool,
    /// The command line.
    pub command: &'a str,
}

/// A thread as it was asked for.
pub struct ShownThread {
    pub priority: u8,
    /// In µs.
    pub interval: u64,
}

fn to_output_unit(of: Option<Nanos>, nanoseconds: bool) -> i64 {
    of.map_or(0, |of| if nanoseconds { of.ns() } else { of.ns() / 1_000 })
}

impl ShownThread {
    /// Its line in the table, also of a live one.
    pub fn write_line(
        &self,
        of: &LiveFigures,
        nanoseconds: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let width = if nanoseconds { 8 } else { 5 };
        let mean = of.mean.map(|mean| Nanos(mean as i64));
        writeln!(
            out,
            "T:{index:2} ({tid:5}) P:{priority:2} I:{interval} C:{count:7} Min:{min:7} \
             Act:{act:width$} Avg:{mean:width$} Max:{max:8}",
            index = of.index,
            tid = of.tid,
            priority = self.priority,
            interval = self.interval,
            count = of.samples,
            min = to_output_unit(of.min, nanoseconds),
            act = to_output_unit(of.current, nanoseconds),
            mean = to_output_unit(mean, nanoseconds),
            max = to_output_unit(of.max, nanoseconds),
        )
    }
}

impl CyclictestOutput<'_> {
    fn threads_with_series(&self) -> impl Iterator<Item = (&ShownThread, &Series)> {
        self.threads.iter().zip(self.bundle.all_series().map(|(_, series)| series))
    }

    fn to_unit(&self, of: Option<Nanos>) -> i64 {
        to_output_unit(of, self.nanoseconds)
    }

    /// A line for each thread.
    pub fn write_threads(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, (thread, series)) in self.threads_with_series().enumerate() {
            let last = series.load_log().ok().and_then(|log| log.samples.last().copied());
            let last = last.map(|sample| sample.latency());
            let figures =
                LiveFigures::from_series(number, series.meta.tid, &series.state.data, last);
            thread.write_line(&figures, self.nanoseconds, out)?;
        }
        Ok(())
    }

    /// A line for each sample: thread, cycle, latency.
    pub fn write_samples(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, (_, series)) in self.threads_with_series().enumerate() {
            let log = series.load_log().map_err(io::Error::other)?;
            for sample in log.samples {
                let latency = self.to_unit(Some(sample.latency()));
                writeln!(out, "{number:8}:{:8}:{latency:8}", sample.seq)?;
            }
        }
        Ok(())
    }

    /// The histogram, with as many rows as were asked for.
    pub fn write_histogram(&self, out: &mut dyn Write) -> io::Result<()> {
        let all_series: Vec<&Series> =
            self.threads_with_series().map(|(_, series)| series).collect();
        let bins: Vec<_> =
            all_series.iter().map(|series| bin_counts(series, self.nanoseconds)).collect();
        writeln!(out, "# Histogram")?;
        let (fine, of_all) = (self.nanoseconds, self.of_all);
        let table = HistogramTable { all: &all_series, bins: &bins, end: self.rows, fine, of_all };
        table.write(0..self.rows, out)?;
        writeln!(out)
    }

    /// The lines of a run that a latency ended: `series` has it.
    pub fn write_break(&self, series: &str, latency: Nanos, out: &mut dyn Write) -> io::Result<()> {
        let tid = |series: &Series| series.meta.tid.unwrap_or_default();
        let ids = self.threads_with_series().map(|(_, series)| format!("{:05}", tid(series)));
        let breaking_series =
            self.bundle.all_series().find(|(phase, one)| full_name(phase, one) == series);
        writeln!(out, "# Thread Ids: {}", ids.collect::<Vec<_>>().join(" "))?;
        writeln!(out, "# Break thread: {}", breaking_series.map_or(0, |(_, series)| tid(series)))?;
        writeln!(out, "# Break value: {}", self.to_unit(Some(latency)))
    }

    /// The file of `--json`.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        write_json_of(self.bundle, self.command, self.nanoseconds, out)
    }
}
