//! The text that oslat prints at its end (rt-tests 2.4, src/oslat/oslat.c, `write_summary`), of a
//! run of `spin` with a series for each CPU. Latencies are rounded up to whole µs, as there.

use super::cyclictest::{Ordered, write_document};
use super::micros;
use punctual_bundle::{Bundle, Series};
use punctual_core::Nanos;
use punctual_core::notes::Cell;
use serde::Serialize;
use std::io::{self, Write};

/// A run, and how it is shown.
pub struct OslatOutput<'a> {
    pub bundle: &'a Bundle,
    pub buckets: usize,
    /// Whether buckets without a count are left out.
    pub omits_zeros: bool,
    pub command: &'a str,
}

/// A CPU's figures.
#[derive(Serialize)]
struct OslatThread {
    cpu: usize,
    freq: u64,
    min: u64,
    avg: f64,
    max: u64,
    duration: f64,
    histogram: Ordered<u64>,
    #[serde(skip)]
    counts: Vec<u64>,
}

/// In whole µs, rounded up.
fn up(of: Nanos) -> u64 {
    (of.ns().max(0) as u64).div_ceil(1_000)
}

impl OslatOutput<'_> {
    /// # Errors
    /// The bundle lacks the number of readings.
    fn threads(&self) -> io::Result<Vec<OslatThread>> {
        let lacks = || io::Error::other("the bundle does not say how often the clock was read");
        let thread = |(_, series): (&str, &Series)| self.thread(series).ok_or_else(lacks);
        self.bundle.series().map(thread).collect()
    }

    fn thread(&self, series: &Series) -> Option<OslatThread> {
        let phases = self.bundle.phases.iter();
        let mut tables =
            phases.flat_map(|phase| &phase.meta.measures).flat_map(|m| &m.notes.tables);
        let rows = &tables.find(|table| table.name == "readings")?.rows;
        let of = |row: &&Vec<Cell>| row.first() == Some(&Cell::from(series.meta.name.as_str()));
        let figure = |cell: &Cell| match cell {
            Cell::Number(number) => Some(*number),
            _ => None,
        };
        let [_, readings, watched, freq] = rows.iter().find(of)?.as_slice() else { return None };
        let (readings, watched) = (figure(readings)? as u64, figure(watched)?);
        let data = &series.state.data;
        let mut counts = vec![0; self.buckets];
        for (edge, count) in data.exact.occupied() {
            counts[micros::whole(edge).min(self.buckets as u64 - 1) as usize] += count;
        }
        counts[self.buckets - 1] += data.exact.above;
        // Distances below the threshold are no samples.
        let short = readings.saturating_sub(data.count());
        counts[0] += short;
        let sum = short as f64 + data.sum as f64 / 1_000.0;
        let occupied = counts.iter().zip(1..).filter(|(count, _)| **count > 0);
        Some(OslatThread {
            cpu: series.meta.cpus.first()?,
            freq: figure(freq)?.round() as u64,
            min: if short > 0 { 1 } else { up(data.min?) },
            avg: sum / readings.max(1) as f64,
            max: data.max.map_or(1, up).max(1),
            duration: (watched / 1e6).round() / 1e3,
            histogram: Ordered(occupied.map(|(count, us)| (us, *count)).collect()),
            counts,
        })
    }

    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let threads = self.threads()?;
        let mut line = |name: &str, of: &dyn Fn(&OslatThread) -> String, end: &str| {
            let values: String = threads.iter().map(|thread| format!(" {}", of(thread))).collect();
            writeln!(out, "{name:>12}:\t{values}{end}")
        };
        line("Core", &|of| of.cpu.to_string(), "")?;
        line("Counter Freq", &|of| of.freq.to_string(), " (Mhz)")?;
        let mut skipped = false;
        for bucket in 0..self.buckets {
            let is_last = bucket + 1 == self.buckets;
            if !is_last && self.omits_zeros && threads.iter().all(|of| of.counts[bucket] == 0) {
                skipped = true;
                continue;
            }
            let end = if is_last { " (including overflows)" } else { "" };
            // A line of its own, as there.
            let dots = if std::mem::take(&mut skipped) { "    ...\n" } else { "" };
            let name = format!("{:03} (us)", bucket + 1);
            let name = format!("{dots}{name:>12}");
            line(&name, &|of| of.counts[bucket].to_string(), end)?;
        }
        line("Minimum", &|of| of.min.to_string(), " (us)")?;
        line("Average", &|of| format!("{:.3}", of.avg), " (us)")?;
        line("Maximum", &|of| of.max.to_string(), " (us)")?;
        line("Max-Min", &|of| (of.max - of.min.min(of.max)).to_string(), " (us)")?;
        line("Duration", &|of| format!("{:.3}", of.duration), " (sec)")?;
        writeln!(out)
    }

    /// The file of `--json`.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        write_document(self.bundle, self.command, None, self.threads()?, out)
    }
}
