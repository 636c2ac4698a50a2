//! The end of `rtla osnoise hist` and `rtla timerlat hist` as printed (tools/tracing/rtla/src,
//! osnoise_hist.c and timerlat_hist.c), of a run with a series for each CPU.

use punctual_bundle::{Bundle, Series};
use punctual_core::Nanos;
use std::io::{self, Write};

/// A run, and how its histogram is shown.
pub struct RtlaHistogram<'a> {
    pub bundle: &'a Bundle,
    /// `osnoise` or `timerlat`.
    pub tool: &'a str,
    /// The beginning of a column: `CPU`, or the part of the latency.
    pub column: &'a str,
    pub nanoseconds: bool,
    pub bucket: u64,
    pub entries: u64,
    pub hidden: HiddenParts,
    pub with_zeros: bool,
}

/// Parts that are not shown.
#[derive(Clone, Copy, Default, Debug)]
pub struct HiddenParts {
    pub header: bool,
    pub summary: bool,
    pub index: bool,
}

impl RtlaHistogram<'_> {
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        // CPUs without a sample have no column.
        let all = self.bundle.series().map(|(_, series)| series);
        let all: Vec<&Series> = all.filter(|series| series.state.data.count() > 0).collect();
        self.header(&all, out)?;
        let bins: Vec<Vec<u64>> = all.iter().map(|series| self.counts(series)).collect();
        let last = self.entries as usize;
        for row in 0..last {
            let counts = || bins.iter().map(|counts| counts[row]);
            if self.with_zeros || counts().any(|count| count > 0) {
                let name = (row as u64 * self.bucket).to_string();
                self.row(&name, counts().map(|count| count.to_string()), out)?;
            }
        }
        self.row("over:", bins.iter().map(|counts| counts[last].to_string()), out)?;
        if self.hidden.summary {
            return Ok(());
        }
        let data = || all.iter().map(|series| &series.state.data);
        let time = |of: Option<Nanos>| self.units(of.unwrap_or_default()).to_string();
        let mean = |of: Option<f64>| match self.tool {
            "osnoise" => format!("{:.2}", of.unwrap_or_default() / self.unit() as f64),
            _ => time(of.map(|mean| Nanos(mean as i64))),
        };
        self.row("count:", data().map(|of| of.count().to_string()), out)?;
        self.row("min:", data().map(|of| time(of.min)), out)?;
        self.row("avg:", data().map(|of| mean(of.mean())), out)?;
        self.row("max:", data().map(|of| time(of.max)), out)
    }

    fn header(&self, all: &[&Series], out: &mut dyn Write) -> io::Result<()> {
        if self.hidden.header {
            return Ok(());
        }
        let (unit, short) =
            if self.nanoseconds { ("nanoseconds", "ns") } else { ("microseconds", "us") };
        let phases = self.bundle.phases.iter();
        let seconds = phases.filter_map(|phase| phase.meta.duration).map(|of| of.ns()).sum::<i64>()
            / Nanos::SECOND.ns();
        let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
        writeln!(out, "# RTLA {} histogram\n# Time unit is {unit} ({short})", self.tool)?;
        let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
        writeln!(out, "# Duration: {days:3} {hours:02}:{minutes:02}:{seconds:02}")?;
        let cpu = |series: &&Series| series.meta.cpus.first().unwrap_or_default();
        let names = all.iter().map(|of| format!("   {}-{:03}", self.column, cpu(of)));
        let index = if self.hidden.index { "" } else { "Index" };
        writeln!(out, "{index}{}", names.collect::<String>())
    }

    fn row(
        &self,
        name: &str,
        values: impl Iterator<Item = String>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let values: String = values.map(|value| format!("{value:>9} ")).collect();
        match self.hidden.index {
            true => writeln!(out, "{values}"),
            false => writeln!(out, "{name:<6}{values}"),
        }
    }

    fn unit(&self) -> i64 {
        if self.nanoseconds { 1 } else { 1_000 }
    }

    fn units(&self, of: Nanos) -> u64 {
        (of.ns().max(0) / self.unit()) as u64
    }

    /// The count of each bucket, then of samples beyond the last one.
    fn counts(&self, series: &Series) -> Vec<u64> {
        let mut counts = vec![0; self.entries as usize + 1];
        let exact = &series.state.data.exact;
        counts[0] += exact.below;
        for (edge, count) in exact.occupied() {
            let bucket = self.units(edge) / self.bucket.max(1);
            counts[bucket.min(self.entries) as usize] += count;
        }
        counts[self.entries as usize] += exact.above;
        counts
    }
}
