//! What cyclictest prints at its end (rt-tests 2.4, `print_stat`, `print_hist`, `write_stats`), of
//! a run with a series for each of its threads.

use super::cyclictest::{overflowed, overflows, with_negative, write_json_of};
use super::micros;
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

impl CyclictestOutput<'_> {
    fn series(&self) -> impl Iterator<Item = (&ShownThread, &Series)> {
        self.threads.iter().zip(self.bundle.series().map(|(_, series)| series))
    }

    fn time(&self, of: Option<Nanos>) -> i64 {
        of.map_or(0, |of| if self.nanoseconds { of.ns() } else { of.ns() / 1_000 })
    }

    /// A line for each thread.
    pub fn threads(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = if self.nanoseconds { 8 } else { 5 };
        for (number, (thread, series)) in self.series().enumerate() {
            let data = &series.state.data;
            let last = series.log().ok().and_then(|log| log.samples.last().copied());
            let act = self.time(last.map(|sample| sample.latency()));
            let mean = self.time(data.mean().map(|mean| Nanos(mean as i64)));
            writeln!(
                out,
                "T:{number:2} ({tid:5}) P:{priority:2} I:{interval} C:{count:7} Min:{min:7} \
                 Act:{act:width$} Avg:{mean:width$} Max:{max:8}",
                tid = series.meta.tid.unwrap_or_default(),
                priority = thread.priority,
                interval = thread.interval,
                count = data.count(),
                min = self.time(data.min),
                max = self.time(data.max),
            )?;
        }
        Ok(())
    }

    /// A line for each sample: thread, cycle, latency.
    pub fn verbose(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, (_, series)) in self.series().enumerate() {
            let log = series.log().map_err(io::Error::other)?;
            for sample in log.samples {
                let latency = self.time(Some(sample.latency()));
                writeln!(out, "{number:8}:{:8}:{latency:8}", sample.seq)?;
            }
        }
        Ok(())
    }

    /// The histogram, with as many rows as were asked for.
    pub fn histogram(&self, out: &mut dyn Write) -> io::Result<()> {
        let all: Vec<&Series> = self.series().map(|(_, series)| series).collect();
        let bins: Vec<Vec<(u64, u64)>> = all.iter().map(|series| self.bins(series)).collect();
        writeln!(out, "# Histogram")?;
        let mut next: Vec<_> = bins.iter().map(|bins| bins.iter().copied().peekable()).collect();
        for row in 0..self.rows {
            let mut counts: Vec<u64> = next
                .iter_mut()
                .map(|bins| bins.next_if(|(bin, _)| *bin == row).map_or(0, |(_, n)| n))
                .collect();
            counts.extend(self.of_all.then(|| counts.iter().sum::<u64>()));
            let counts: Vec<String> = counts.iter().map(|count| format!("{count:06}")).collect();
            writeln!(out, "{row:06} {}", counts.join("\t"))?;
        }
        let inside = |bins: &Vec<(u64, u64)>| -> u64 {
            bins.iter().filter(|(bin, _)| *bin < self.rows).map(|(_, n)| n).sum()
        };
        let inside: Vec<u64> = bins.iter().map(inside).collect();
        let over: Vec<u64> =
            all.iter().zip(&inside).map(|(series, inside)| overflows(series, *inside)).collect();
        let with_sum = |mut values: Vec<u64>| {
            values.extend(self.of_all.then(|| values.iter().sum::<u64>()));
            values
        };
        let line = |out: &mut dyn Write, name: &str, width: usize, values: &[u64]| {
            let values: Vec<String> = values.iter().map(|of| format!("{of:0width$}")).collect();
            writeln!(out, "# {name}: {}", values.join(" "))
        };
        let times = |of: &dyn Fn(&Series) -> Option<Nanos>| -> Vec<u64> {
            all.iter().map(|series| self.time(of(series)).max(0) as u64).collect()
        };
        line(out, "Total", 9, &with_sum(inside.clone()))?;
        line(out, "Min Latencies", 5, &times(&|series| series.state.data.min))?;
        let mean = |series: &Series| series.state.data.mean().map(|mean| Nanos(mean as i64));
        line(out, "Avg Latencies", 5, &times(&mean))?;
        let mut maxima = times(&|series| series.state.data.max);
        maxima.extend(self.of_all.then(|| maxima.iter().copied().max().unwrap_or_default()));
        line(out, "Max Latencies", 5, &maxima)?;
        line(out, "Histogram Overflows", 5, &with_sum(over.clone()))?;
        writeln!(out, "# Histogram Overflow at cycle number:")?;
        for (number, (series, over)) in all.iter().zip(over).enumerate() {
            let unit = if self.nanoseconds { 1 } else { 1_000 };
            let cycles = overflowed(series, Nanos(self.rows as i64 * unit), over);
            writeln!(out, "# Thread {number}:{cycles}")?;
        }
        writeln!(out)
    }

    fn bins(&self, series: &Series) -> Vec<(u64, u64)> {
        let exact = &series.state.data.exact;
        let bins = match self.nanoseconds {
            true => exact.occupied().map(|(edge, n)| (edge.ns().max(0) as u64, n)).collect(),
            false => micros::occupied(exact),
        };
        with_negative(bins, exact.below)
    }

    /// The lines of a run that a latency ended: `series` has it.
    pub fn stopped(&self, series: &str, latency: Nanos, out: &mut dyn Write) -> io::Result<()> {
        let tid = |series: &Series| series.meta.tid.unwrap_or_default();
        let ids = self.series().map(|(_, series)| format!("{:05}", tid(series)));
        let own = self.bundle.series().find(|(phase, one)| {
            series.strip_prefix(*phase).and_then(|rest| rest.strip_prefix('/'))
                == Some(one.meta.name.as_str())
        });
        writeln!(out, "# Thread Ids: {}", ids.collect::<Vec<_>>().join(" "))?;
        writeln!(out, "# Break thread: {}", own.map_or(0, |(_, series)| tid(series)))?;
        writeln!(out, "# Break value: {}", self.time(Some(latency)))
    }

    /// The file of `--json`.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        write_json_of(self.bundle, self.command, self.nanoseconds, out)
    }
}
