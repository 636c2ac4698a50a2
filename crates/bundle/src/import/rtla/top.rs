//! The tables of `rtla timerlat top`, `rtla osnoise top` and `rtla hwnoise`: a row per CPU, printed
//! repeatedly unless `-q` is given. The last ones count.

use super::{OsnoiseRow, add_noise, days_and_clock, series_name, unit_assumed};
use crate::import::recorded::{ImportedFile, Thread, UNKNOWN_MIN, file_note};
use crate::import::scan::{
    MAX_COUNT, MAX_LATENCY, ThreadProgress, check_bound, read_cpu, read_number, refuse_second_run,
};
use crate::import::{Malformed, Tool};
use punctual_core::{Finding, Nanos};
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Top {
    is_seen: bool,
    unit: Option<Nanos>,
    duration: Option<Nanos>,
    timerlat: BTreeMap<u32, Timerlat>,
    osnoise: BTreeMap<u32, OsnoiseRow>,
}

/// A CPU of timerlat: interrupts, and smallest, mean, largest of each kind of latency.
struct Timerlat {
    count: u64,
    parts: [Option<[u64; 3]>; 3],
}

/// The tool that prints such a row.
pub(crate) fn recognize_row(line: &str) -> Option<Tool> {
    let (_, _, rest) = read_row(line)?;
    match rest.strip_prefix('|') {
        Some(_) => Some(Tool::Timerlat),
        None => (rest.split_ascii_whitespace().count() >= 7).then_some(Tool::Osnoise),
    }
}

/// `  0 #12322     |   1   0   1   13 | …`: CPU, count, and what follows.
fn read_row(line: &str) -> Option<(u32, u64, &str)> {
    let (cpu, rest) = line.trim().split_once(" #")?;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    let cpu = read_cpu(cpu.trim())?;
    Some((cpu, rest[..end].parse().ok()?, rest[end..].trim_start()))
}

impl Top {
    pub fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// Takes a line if it belongs to such a table.
    pub fn read_line(&mut self, line: &str) -> Result<bool, Malformed> {
        let titles = ["Timer Latency", "Operating System Noise", "Hardware-related Noise"];
        if titles.contains(&line) {
            self.is_seen = true;
        } else if let Some((duration, rest)) = line.split_once("|") {
            if let Some((cpu, count, rest)) = read_row(line) {
                return self.read_timerlat(cpu, count, rest).map(|()| true);
            }
            let duration = duration.trim().trim_start_matches("duration:");
            if !rest.contains("Timer Latency (") && !rest.contains("time is in") {
                return Ok(line.starts_with("CPU COUNT") || line.starts_with("ALL #"));
            }
            self.unit = Some(if rest.contains("(ns)") { Nanos(1) } else { Nanos::MICRO });
            let duration = days_and_clock(duration);
            refuse_second_run(duration < self.duration)?;
            self.duration = duration;
        } else if line.starts_with("CPU Period") || line.starts_with("---------------|") {
            return Ok(true);
        } else if let Some((cpu, count, rest)) =
            read_row(line).filter(|_| recognize_row(line).is_some())
        {
            return self.read_osnoise(cpu, count, rest).map(|()| true);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn read_timerlat(&mut self, cpu: u32, count: u64, rest: &str) -> Result<(), Malformed> {
        self.is_seen = true;
        let mut parts = [None; 3];
        let cells = rest.trim_start_matches('|').split('|');
        for (place, cells) in parts.iter_mut().zip(cells) {
            let cells: Vec<&str> = cells.split_ascii_whitespace().collect();
            let [_, figures @ ..] = cells.as_slice() else { continue };
            if figures.len() != 3 {
                return Err("a row with more or fewer than four figures".into());
            }
            if figures.contains(&"-") {
                continue;
            }
            let mut min_mean_max = [0; 3];
            for (k, word) in figures.iter().enumerate() {
                // The largest 64-bit number means *never measured*.
                min_mean_max[k] = match read_number(word)? {
                    u64::MAX if k == 0 => UNKNOWN_MIN,
                    figure => check_bound(figure, MAX_LATENCY, "the latency")?,
                };
            }
            *place = Some(min_mean_max);
        }
        let now = Timerlat { count: check_bound(count, MAX_COUNT, "the count")?, parts };
        if let Some(before) = self.timerlat.insert(cpu, now) {
            let now = &self.timerlat[&cpu];
            now.thread_progress().check_same_run(&before.thread_progress())?;
        }
        Ok(())
    }

    fn read_osnoise(&mut self, cpu: u32, count: u64, rest: &str) -> Result<(), Malformed> {
        self.is_seen = true;
        let mut now = OsnoiseRow::read(rest)?;
        now.periods = check_bound(count, MAX_COUNT, "the count")?;
        if let Some(before) = self.osnoise.get(&cpu) {
            let progress = |of: &OsnoiseRow| ThreadProgress {
                cycles: Some(of.periods),
                max: Some(of.max_noise as i64),
                ..ThreadProgress::default()
            };
            progress(&now).check_same_run(&progress(before))?;
        }
        self.osnoise.insert(cpu, now);
        Ok(())
    }

    pub(crate) fn into_file(self, mut into: ImportedFile, nanoseconds: bool) -> ImportedFile {
        let stated = self.unit;
        into.unit = stated.unwrap_or(if nanoseconds { Nanos(1) } else { Nanos::MICRO });
        into.duration = self.duration;
        for (cpu, of) in self.timerlat {
            for (part, figures) in ["/irq", "/thread", "/user"].into_iter().zip(of.parts) {
                let Some([min, mean, max]) = figures.filter(|_| of.count > 0) else { continue };
                into.threads.push(Thread {
                    index: into.threads.len(),
                    name: Some(series_name(cpu, part)),
                    cpu: Some(cpu),
                    undistributed: of.count,
                    min,
                    mean: mean as f64,
                    max,
                    ..Thread::default()
                });
            }
        }
        if into.tool == Tool::Timerlat
            && into.threads.iter().any(|of| !of.series_name().ends_with("/irq"))
        {
            into.findings.push(counts_of_interrupts());
        }
        add_noise(self.osnoise, &mut into);
        if stated.is_none() && !nanoseconds {
            into.findings.push(unit_assumed());
        }
        into
    }
}

impl Timerlat {
    fn thread_progress(&self) -> ThreadProgress {
        let max = self.parts.iter().flatten().map(|[_, _, max]| *max as i64).max();
        ThreadProgress { cycles: Some(self.count), max, ..ThreadProgress::default() }
    }
}

fn counts_of_interrupts() -> Finding {
    let message = "rtla top counts interrupts alone: threads have at most that number of latencies";
    file_note("counts-of-interrupts", message)
        .with_remedy("rtla timerlat hist counts each kind, and keeps the distribution")
}
