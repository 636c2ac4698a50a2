//! This program under the name hwlatdetect (rt-tests 2.4, src/hwlatdetect/hwlatdetect.py): the
//! workload `spin`, of whose gaps only what the operating system did not use is shown. The machine
//! is not stopped: all of the time is watched, on all of the CPUs at once.

use super::getopt::Takes::{Nothing, Value};
use super::getopt::{Known, cpus};
use super::{NamedTool, written};
use crate::exit::Failure;
use crate::output;
use punctual_bundle::Bundle;
use punctual_core::notes::{Cell, Table};
use punctual_core::{CauseKind, CpuSet, Nanos};
use punctual_plan::text::quoted;
use std::process::ExitCode;

const USAGE: &str = "usage: hwlatdetect [-h] [--duration DURATION] [--threshold THRESHOLD]
                   [--hardlimit HARDLIMIT] [--report REPORT] [--cpu-list CPULIST]
                   [--debug] [--quiet]
";
/// The threshold of the kernel's tracer, in µs (kernel/trace/trace_hwlat.c).
const THRESHOLD: u64 = 10;

#[derive(Default)]
pub struct Hwlatdetect {
    /// In seconds.
    duration: Option<u64>,
    /// In µs.
    threshold: Option<u64>,
    hard_limit: Option<u64>,
    report: Option<String>,
    cpus: Option<CpuSet>,
    cpu_list: Option<String>,
    quiet: bool,
    ends: bool,
    wrong: Option<String>,
}

const KNOWN: &[Known<Hwlatdetect>] = &[
    Known('h', "help", Nothing, |o, _| {
        let _ = output::print(USAGE);
        o.ends = true;
    }),
    Known(' ', "duration", Value, |o, text| {
        let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400), ("w", 7 * 86_400), ("", 1)];
        o.duration = o.read("seconds", text, &units);
    }),
    Known(' ', "threshold", Value, |o, text| o.threshold = o.read("microseconds", text, &MICROS)),
    Known(' ', "hardlimit", Value, |o, text| o.hard_limit = o.read("microseconds", text, &MICROS)),
    Known(' ', "report", Value, |o, path| o.report = Some(path.to_owned())),
    Known(' ', "cpu-list", Value, |o, text| match cpus(text) {
        Ok(cpus) => (o.cpus, o.cpu_list) = (Some(cpus), Some(text.to_owned())),
        Err(why) => o.wrong = Some(why),
    }),
    Known(' ', "debug", Nothing, |_, _| {}),
    Known(' ', "quiet", Nothing, |o, _| o.quiet = true),
];

/// Units of a time in µs; none is µs.
const MICROS: [(&str, u64); 4] = [("us", 1), ("ms", 1_000), ("s", 1_000_000), ("", 1)];

impl NamedTool for Hwlatdetect {
    const NAME: &'static str = "hwlatdetect";
    const KNOWN: &'static [&'static [Known<Hwlatdetect>]] = &[KNOWN];
    const REFUSED: &'static [&'static str] = &["width", "window", "watch"];

    /// As argparse and an exception of Python do.
    fn refuse(why: &str, is_unknown: bool) -> ExitCode {
        let Some(word) = why.strip_prefix("unrecognized option '").filter(|_| is_unknown) else {
            output::say(&format!("RuntimeError: {why}\n"));
            return ExitCode::from(if is_unknown { 2 } else { 1 });
        };
        let word = word.trim_end_matches('\'');
        output::say(&format!("{USAGE}hwlatdetect: error: unrecognized arguments: {word}\n"));
        ExitCode::from(2)
    }

    fn ends(&self) -> bool {
        self.ends
    }

    fn complete(&mut self, online: &CpuSet) -> Result<String, String> {
        self.cpus.get_or_insert_with(|| online.clone());
        self.wrong.take().map_or(Ok(String::new()), Err)
    }

    fn experiment(&self) -> String {
        format!(
            "[experiment]\nname = \"hwlatdetect\"\ndma_latency = \"0us\"\ncalibrate = false\n\n\
             [[measure]]\nname = \"hwlatdetect\"\nkind = \"spin\"\ncpus = {}\npolicy = \"other\"\n\
             duration = \"{}s\"\nthreshold = \"{}us\"\n",
            quoted(&self.cpus.clone().unwrap_or_default().to_string()),
            self.duration(),
            self.threshold(),
        )
    }

    fn begin(&self) -> String {
        if self.quiet {
            return String::new();
        }
        let none = || "None".to_owned();
        format!(
            "hwlatdetect:  test duration {} seconds\n   detector: punctual\n   parameters:\n\
             \x20       CPU list:          {}\n        Latency threshold: {}us\n\
             \x20       Sample window:     1000000us\n        Sample width:      1000000us\n\
             \x20    Non-sampling period:  0us\n        Output File:       {}\n\n\
             Starting test\n",
            self.duration(),
            self.cpu_list.clone().unwrap_or_else(none),
            self.threshold(),
            self.report.clone().unwrap_or_else(none),
        )
    }

    fn print(&self, bundle: &Bundle, _: &str) -> Result<ExitCode, Failure> {
        let Some(gaps) = UnusedTime::of(bundle, Nanos::MICRO * self.threshold() as i64) else {
            let why = "gaps could not be attributed here: run as root (CAP_PERFMON and tracefs)";
            return Err(Failure::failed(why));
        };
        let max = if gaps.count > 0 { gaps.longest.ns() / 1_000 } else { 0 };
        if !self.quiet {
            let shown = match gaps.count {
                0 => "Below threshold".to_owned(),
                _ => format!("{max}us"),
            };
            output::print(&format!(
                "test finished\nMax Latency: {shown}\nSamples recorded: {count}\nSamples \
                 exceeding threshold: {count}\n",
                count = gaps.count
            ))?;
        }
        if let Some(path) = &self.report {
            written(Some(path), |text| {
                gaps.samples.iter().try_for_each(|one| writeln!(text, "{one}"))
            })?;
            let count = gaps.samples.len();
            output::print(&format!("report saved to {path} ({count} samples)\n"))?;
        }
        if !self.quiet {
            written(None, |text| gaps.samples.iter().try_for_each(|one| writeln!(text, "{one}")))?;
        }
        if (gaps.samples.len() as u64) < gaps.count {
            let (shown, all) = (gaps.samples.len(), gaps.count);
            output::say(&format!("note: the longest {shown} of {all} samples are listed\n"));
        }
        let limit = self.hard_limit.unwrap_or(self.threshold());
        Ok(ExitCode::from(u8::from(max > limit as i64)))
    }
}

impl Hwlatdetect {
    fn duration(&self) -> u64 {
        self.duration.unwrap_or(120)
    }

    fn threshold(&self) -> u64 {
        self.threshold.unwrap_or(THRESHOLD)
    }

    /// A number with one of these units.
    fn read(&mut self, of: &str, text: &str, units: &[(&str, u64)]) -> Option<u64> {
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let size = units.iter().find(|(known, _)| *known == unit).map(|(_, size)| size);
        let value = size.zip(number.parse::<u64>().ok()).and_then(|(size, n)| n.checked_mul(*size));
        if value.is_none_or(|value| value == 0) {
            self.wrong = Some(format!("invalid input for {of}: '{text}'"));
        }
        value
    }
}

/// The gaps of which a part was used by nothing that the kernel counts.
struct UnusedTime {
    count: u64,
    longest: Nanos,
    /// Lines of those that are kept, as hwlatdetect prints a sample.
    samples: Vec<String>,
}

impl UnusedTime {
    /// `None`: gaps were not attributed.
    fn of(bundle: &Bundle, threshold: Nanos) -> Option<UnusedTime> {
        let rows = |name: &str| {
            let measures = bundle.phases.iter().flat_map(|phase| &phase.meta.measures);
            let mut tables = measures.flat_map(|measure| &measure.notes.tables);
            tables.find(|table| table.name == name).map(Rows)
        };
        let mut found = UnusedTime { count: 0, longest: Nanos::ZERO, samples: Vec::new() };
        // Without a gap there is no table.
        let Some(causes) = rows("gaps-by-cause") else { return Some(found) };
        let is = |row: &Vec<Cell>, words: &str| match row.get(1) {
            Some(Cell::Text(cause)) => cause.starts_with(words),
            _ => false,
        };
        for row in &causes.0.rows {
            if is(row, "outside") {
                found.count += causes.number(row, "alone") as u64;
                found.longest = found.longest.max(Nanos(causes.number(row, "longest") as i64));
            } else if is(row, CauseKind::Unknown.words()) {
                return None;
            }
        }
        let Some(gaps) = rows("longest-gaps") else { return Some(found) };
        for row in &gaps.0.rows {
            let part = Nanos(gaps.number(row, "outside") as i64);
            let at = gaps.number(row, "began") as i64;
            let (seconds, rest) = (at / Nanos::SECOND.ns(), at % Nanos::SECOND.ns());
            let line = format!("ts: {seconds:010}.{rest:09}, inner:{}, outer:0", part.ns() / 1_000);
            found.samples.extend((part >= threshold).then_some(line));
        }
        Some(found)
    }
}

struct Rows<'a>(&'a Table);

impl Rows<'_> {
    /// The number in a column; 0 without.
    fn number(&self, row: &[Cell], column: &str) -> f64 {
        let place = self.0.columns.iter().position(|of| of.name == column);
        match place.and_then(|place| row.get(place)) {
            Some(Cell::Number(number)) => *number,
            _ => 0.0,
        }
    }
}
