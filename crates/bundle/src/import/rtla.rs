//! The histograms that `rtla timerlat hist` and `rtla osnoise hist` print (kernel,
//! tools/tracing/rtla): a column a CPU and kind of latency, a row a bin that is not empty, then
//! what lay beyond, and figures.

use super::numbers::{common_divisor, number, numbers, second_run};
use super::recorded::{self, MAX_COUNT, MAX_LATENCY, Recorded, Thread};
use super::{Malformed, Tool};
use punctual_core::cpuset::MAX_CPUS;
use punctual_core::{Finding, Nanos, Severity};

/// The tool whose histogram the text holds.
pub fn recognize(text: &str) -> Option<Tool> {
    text.lines().find_map(|line| match line.trim() {
        "# RTLA timerlat histogram" => Some(Tool::Timerlat),
        "# RTLA osnoise histogram" => Some(Tool::Osnoise),
        _ => None,
    })
}

/// Whether it is what `top` shows, which has no histogram.
pub fn is_top(text: &str) -> bool {
    text.lines().any(|line| {
        line.contains("  Timer Latency  ") || line.contains("  Operating System Noise  ")
    })
}

#[derive(Default)]
struct Reading {
    unit: Option<Nanos>,
    duration: Option<Nanos>,
    columns: Vec<Thread>,
    /// The latency of the last row.
    last: Option<u64>,
    /// The greatest common divisor of all rows: the width of a bin, or a multiple of it.
    divisor: u64,
    over: Option<Vec<u64>>,
    count: Option<Vec<u64>>,
    /// From here on there are the figures of all CPUs together.
    all: bool,
    /// Whether there was a title, and a row that names the columns.
    titled: bool,
    headed: bool,
    stopped: bool,
    /// The CPU that hit the threshold, where its auto-analysis names it.
    culprit: Option<u32>,
}

pub fn parse(text: &str, tool: Tool) -> Result<Recorded, Malformed> {
    let mut reading = Reading::default();
    let mut lines = 0;
    for (k, line) in text.lines().enumerate() {
        lines = k + 1;
        reading.line(lines, line.trim())?;
    }
    let source = if tool == Tool::Timerlat { "rtla timerlat hist" } else { "rtla osnoise hist" };
    reading.recorded(lines.max(1), Recorded::of(tool, source))
}

impl Reading {
    fn line(&mut self, at: usize, line: &str) -> Result<(), Malformed> {
        if let Some(comment) = line.strip_prefix('#') {
            return self.comment(at, comment.trim());
        }
        if line.ends_with("hit stop tracing") {
            self.stopped = true;
            return Ok(());
        }
        if let Some(columns) = line.strip_prefix("Index") {
            return self.header(at, columns);
        }
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match first.strip_suffix(':') {
            Some("ALL") => {
                self.all = true;
                Ok(())
            }
            Some(name) if !self.all => self.figures(at, name, rest),
            None if first.starts_with(|c: char| c.is_ascii_digit()) && !self.columns.is_empty() => {
                self.row(at, first, rest)
            }
            _ => Ok(()),
        }
    }

    fn comment(&mut self, at: usize, comment: &str) -> Result<(), Malformed> {
        // `## CPU 3 hit stop tracing, analyzing it ##` (timerlat_aa.c).
        if let Some((cpu, _)) = comment
            .trim_start_matches(['#', ' '])
            .strip_prefix("CPU ")
            .and_then(|rest| rest.split_once(" hit stop tracing"))
        {
            self.stopped = true;
            self.culprit = self.culprit.or(cpu.parse().ok());
        } else if comment.starts_with("RTLA ") {
            if std::mem::replace(&mut self.titled, true) {
                return Err(second_run(at));
            }
        } else if let Some(unit) = comment.strip_prefix("Time unit is ") {
            let unit = match unit.split_ascii_whitespace().next() {
                Some("microseconds") => Nanos::MICRO,
                Some("nanoseconds") => Nanos(1),
                _ => {
                    return Err(Malformed::at(
                        at,
                        "the unit is neither microseconds nor nanoseconds",
                    ));
                }
            };
            if self.unit.replace(unit).is_some() {
                return Err(second_run(at));
            }
        } else if let Some(duration) = comment.strip_prefix("Duration:") {
            self.duration = days_and_clock(duration);
        }
        Ok(())
    }

    /// `   IRQ-000   Thr-000   Usr-000`, or `   CPU-000`.
    fn header(&mut self, at: usize, columns: &str) -> Result<(), Malformed> {
        if std::mem::replace(&mut self.headed, true) {
            return Err(second_run(at));
        }
        for (index, word) in columns.split_ascii_whitespace().enumerate() {
            let unknown = || {
                Malformed::at(
                    at,
                    format!(
                        "the column {:?} is not known",
                        word.chars().take(40).collect::<String>()
                    ),
                )
            };
            let (kind, cpu) = word.split_once('-').ok_or_else(unknown)?;
            let cpu: u32 =
                cpu.parse().ok().filter(|cpu| (*cpu as usize) < MAX_CPUS).ok_or_else(unknown)?;
            let part = match kind {
                "IRQ" => "/irq",
                "Thr" => "/thread",
                "Usr" => "/user",
                "CPU" => "",
                _ => return Err(unknown()),
            };
            if index >= 3 * MAX_CPUS {
                return Err(Malformed::at(at, "more columns than CPUs"));
            }
            let name = Some(format!("CPU {cpu}{part}"));
            self.columns.push(Thread { index, cpu: Some(cpu), name, ..Thread::default() });
        }
        Ok(())
    }

    fn row(&mut self, at: usize, latency: &str, counts: &str) -> Result<(), Malformed> {
        let latency = recorded::bounded(number(latency, at)?, MAX_LATENCY, "the latency", at)?;
        if self.last.is_some_and(|last| last >= latency) {
            return Err(Malformed::at(
                at,
                format!("the latency {latency} comes twice or out of order"),
            ));
        }
        self.last = Some(latency);
        self.divisor = common_divisor(self.divisor, latency);
        let counts = self.counts(at, numbers(counts, at)?)?;
        for (column, count) in self.columns.iter_mut().zip(counts) {
            let count = recorded::bounded(count, MAX_COUNT, "the count", at)?;
            if count > 0 {
                column.bins.push((latency, count));
            }
        }
        Ok(())
    }

    fn figures(&mut self, at: usize, name: &str, rest: &str) -> Result<(), Malformed> {
        if !["over", "count", "min", "avg", "max"].contains(&name) || !self.headed {
            return Ok(());
        }
        if name == "over" && self.over.is_some() {
            return Err(second_run(at));
        }
        // What has no sample is a dash; means of osnoise have decimals.
        let figure = |word: &str| match (word, name) {
            ("-", _) => Ok(0.0),
            (word, "avg") => word
                .parse()
                .ok()
                .filter(|mean: &f64| mean.is_finite() && *mean >= 0.0)
                .ok_or_else(|| {
                    Malformed::at(
                        at,
                        format!("{:?} is not a number", word.chars().take(40).collect::<String>()),
                    )
                }),
            (word, _) => number(word, at).map(|number| number as f64),
        };
        let figures: Vec<f64> =
            rest.split_ascii_whitespace().map(figure).collect::<Result<_, _>>()?;
        let bound = if matches!(name, "over" | "count") { MAX_COUNT } else { MAX_LATENCY };
        // Without a column there is nothing, or one zero.
        let nothing = self.columns.is_empty() && figures.iter().all(|figure| *figure == 0.0);
        let figures = if nothing { Vec::new() } else { self.counts(at, figures)? };
        if let Some(figure) = figures.iter().find(|figure| **figure > bound as f64) {
            return Err(Malformed::at(at, format!("{figure} is implausible (more than {bound})")));
        }
        match name {
            "over" => self.over = Some(figures.iter().map(|figure| *figure as u64).collect()),
            "count" => self.count = Some(figures.iter().map(|figure| *figure as u64).collect()),
            _ => {
                for (column, figure) in self.columns.iter_mut().zip(figures) {
                    match name {
                        "min" => column.min = figure as u64,
                        "avg" => column.mean = figure,
                        _ => column.max = figure as u64,
                    }
                }
            }
        }
        Ok(())
    }

    /// The list, if it has one number for each column.
    fn counts<T>(&self, at: usize, list: Vec<T>) -> Result<Vec<T>, Malformed> {
        if list.len() != self.columns.len() {
            let why = format!(
                "{} numbers in this row, {} columns in the header",
                list.len(),
                self.columns.len()
            );
            return Err(Malformed::at(at, why));
        }
        Ok(list)
    }

    fn recorded(mut self, lines: usize, mut into: Recorded) -> Result<Recorded, Malformed> {
        if !self.headed {
            return Err(Malformed::at(
                lines,
                "there is no row `Index` that names the CPUs: run rtla without --no-header and \
                 --no-index",
            ));
        }
        let absent = |what: &str| {
            Malformed::at(
                lines,
                format!("there is no row `{what}:`: it was cut off, or rtla ran with --no-summary"),
            )
        };
        let over = self.over.take().ok_or_else(|| absent("over"))?;
        let count = self.count.take().ok_or_else(|| absent("count"))?;
        into.unit = self.unit.unwrap_or(Nanos::MICRO);
        into.step = self.divisor.max(1);
        into.duration = self.duration;
        let range = self.last.map(|last| last / into.step + 1);
        for ((column, over), count) in self.columns.iter_mut().zip(over).zip(count) {
            let inside: u64 = column.bins.iter().map(|(_, n)| n).sum();
            (column.overflows, column.range) = (over, range);
            if column.bins.last().is_some_and(|(latency, _)| latency / into.step >= recorded::BINS)
            {
                return Err(Malformed::at(
                    lines,
                    format!("the histogram of {} has too many bins", column.name()),
                ));
            }
            if inside + over != count {
                let why = format!(
                    "{} has {inside} in its rows and {over} beyond, not {count}",
                    column.name()
                );
                return Err(Malformed::at(lines, why));
            }
        }
        into.threads = self.columns;
        if into.threads.is_empty() {
            // Columns are those of CPUs with a sample: none had one.
            into.threads.push(Thread { name: Some("all CPUs".into()), ..Thread::default() });
            into.findings.push(nothing_recorded(into.tool, into.duration));
        }
        if self.stopped {
            into.stopped = self.culprit.and_then(|cpu| stopped_on(&into.threads, cpu));
        }
        if self.stopped && into.stopped.is_none() {
            // What it stopped for is not in the histogram's text; the largest is what it was.
            into.stop_above(Some(0));
        }
        Ok(into)
    }
}

/// The series of a CPU with its largest latency, and that latency.
fn stopped_on(threads: &[Thread], cpu: u32) -> Option<(String, u64)> {
    let own = threads.iter().filter(|thread| thread.cpu == Some(cpu) && thread.cycles() > 0);
    // Of equal ones the first: the interrupt's latency is part of the thread's.
    own.rev().max_by_key(|thread| thread.max).map(|thread| (thread.name(), thread.max))
}

fn nothing_recorded(tool: Tool, duration: Option<Nanos>) -> Finding {
    let what = match tool {
        Tool::Osnoise => "no noise above the tool's threshold was recorded",
        _ => "no latency was recorded",
    };
    let time = duration.map_or("not stated".to_owned(), Nanos::readable);
    Finding::new("nothing-recorded", Severity::Note, "", what)
        .evidence(format!("duration: {time}; the histogram has no CPU"))
}

/// `  0 00:00:03`: days, hours, minutes, seconds.
fn days_and_clock(text: &str) -> Option<Nanos> {
    let (days, clock) = text.trim().split_once(' ')?;
    let mut seconds: i64 = days.parse::<u16>().ok()?.into();
    let mut parts = 0;
    for (part, size) in clock.trim().split(':').zip([24, 60, 60]) {
        seconds = seconds * size + i64::from(part.parse::<u8>().ok()?);
        parts += 1;
    }
    (parts == 3).then_some(Nanos::SECOND * seconds)
}
