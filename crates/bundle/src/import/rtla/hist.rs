//! The histograms of `rtla timerlat hist` and `rtla osnoise hist`: a column per CPU and kind of
//! latency, a row per non-empty bin, then the latencies beyond, and figures. Title and column names
//! (`--no-header`) and figures (`--no-summary`) may be absent.

use super::{days_and_clock, series_name, unit_assumed};
use crate::import::recorded::{BINS, ImportedFile, Thread, file_warning};
use crate::import::scan::{
    MAX_COUNT, MAX_LATENCY, add_bin, clip_text, common_divisor, read_cpu, read_decimal,
    read_latency, read_number, read_numbers, refuse_second_run,
};
use crate::import::{Malformed, Tool};
use punctual_core::cpuset::MAX_CPUS;
use punctual_core::{Finding, Nanos};
use std::mem::replace;

/// The maximum number of columns: three kinds per CPU.
const MAX_COLUMNS: usize = 3 * MAX_CPUS;

#[derive(Default)]
pub(crate) struct Hist {
    unit: Option<Nanos>,
    duration: Option<Nanos>,
    columns: Vec<Thread>,
    /// The latency of the last row.
    last: Option<u64>,
    /// The greatest common divisor of all rows: the width of a bin, or a multiple of it.
    divisor: u64,
    over: Option<Vec<u64>>,
    count: Option<Vec<u64>>,
    /// Set once the figures of all CPUs together begin, of these kinds.
    all: Option<Vec<&'static str>>,
    /// Whether a title and a row with column names were read.
    titled: bool,
    headed: bool,
}

/// A row that names the columns: `Index   IRQ-000   Thr-000`.
pub(crate) fn recognize_header(line: &str) -> Option<Tool> {
    let first = line.strip_prefix("Index")?.split_ascii_whitespace().next()?;
    match first.split_once('-')?.0 {
        "CPU" => Some(Tool::Osnoise),
        "IRQ" | "Thr" | "Usr" => Some(Tool::Timerlat),
        _ => None,
    }
}

/// Recognises a histogram without title and header: it ends with the latencies beyond. Only
/// osnoise's means have decimals.
pub(crate) fn recognize_rows(text: &str) -> Option<Tool> {
    let figures = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name));
    let over = figures("over:")?;
    let is_number = |word: &str| word.parse::<u64>().is_ok();
    let mean = figures("avg:").unwrap_or_default();
    let has_some = !over.trim().is_empty() && over.split_ascii_whitespace().all(is_number);
    has_some.then_some(match mean.contains(['.', ',']) {
        true => Tool::Osnoise,
        false => Tool::Timerlat,
    })
}

impl Hist {
    pub fn is_seen(&self) -> bool {
        self.titled || self.headed || self.over.is_some()
    }

    pub fn read_line(&mut self, line: &str) -> Result<(), Malformed> {
        if let Some(comment) = line.strip_prefix('#') {
            return self.read_comment(comment.trim());
        }
        if let Some(columns) = line.strip_prefix("Index") {
            return self.read_header(columns);
        }
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match first.strip_suffix(':') {
            Some("ALL") => {
                self.all = Some(rest.split_ascii_whitespace().filter_map(part_of).collect());
                Ok(())
            }
            Some(name) if self.all.is_none() => self.read_figures(name, rest),
            None if first.starts_with(|c: char| c.is_ascii_digit()) && self.over.is_none() => {
                // Without a header, other text may precede it.
                let is_row = self.headed || read_numbers(line).is_ok_and(|all| all.len() > 1);
                if is_row { self.read_row(first, rest) } else { Ok(()) }
            }
            None if self.titled && !self.headed && part_of_column(first).is_some() => {
                Err("its rows have no latency: run rtla without --no-index".into())
            }
            _ => Ok(()),
        }
    }

    fn read_comment(&mut self, comment: &str) -> Result<(), Malformed> {
        if comment.starts_with("RTLA ") {
            refuse_second_run(replace(&mut self.titled, true))?;
        } else if let Some(unit) = comment.strip_prefix("Time unit is ") {
            let unit = match unit.split_ascii_whitespace().next() {
                Some("microseconds") => Nanos::MICRO,
                Some("nanoseconds") => Nanos(1),
                _ => return Err("the unit is neither microseconds nor nanoseconds".into()),
            };
            refuse_second_run(self.unit.replace(unit).is_some())?;
        } else if let Some(duration) = comment.strip_prefix("Duration:") {
            self.duration = days_and_clock(duration);
        }
        Ok(())
    }

    /// `   IRQ-000   Thr-000   Usr-000`, or `   CPU-000`.
    fn read_header(&mut self, columns: &str) -> Result<(), Malformed> {
        refuse_second_run(replace(&mut self.headed, true) || !self.columns.is_empty())?;
        for (index, word) in columns.split_ascii_whitespace().enumerate() {
            let (cpu, part) = part_of_column(word)
                .ok_or_else(|| format!("the column {:?} is not known", clip_text(word, 40)))?;
            if index >= MAX_COLUMNS {
                return Err("more columns than CPUs".into());
            }
            let name = Some(series_name(cpu, part));
            self.columns.push(Thread { index, cpu: Some(cpu), name, ..Thread::default() });
        }
        Ok(())
    }

    fn read_row(&mut self, latency: &str, counts: &str) -> Result<(), Malformed> {
        let latency = read_latency(latency)?;
        if self.last.is_some_and(|last| last >= latency) {
            return Err(format!("the latency {latency} comes twice or out of order").into());
        }
        self.last = Some(latency);
        self.divisor = common_divisor(self.divisor, latency);
        let counts = self.check_counts(read_numbers(counts)?)?;
        for (column, count) in self.columns.iter_mut().zip(counts) {
            add_bin(&mut column.bins, latency, count)?;
        }
        Ok(())
    }

    fn read_figures(&mut self, name: &str, rest: &str) -> Result<(), Malformed> {
        if !["over", "count", "min", "avg", "max"].contains(&name) {
            return Ok(());
        }
        refuse_second_run(name == "over" && self.over.is_some())?;
        // A column without a sample has a dash or the largest 64-bit number; osnoise's means have
        // decimals.
        let figure = |word: &str| match (word, name) {
            ("-" | "18446744073709551615", _) => Ok(0.0),
            (word, "avg") => read_decimal(word),
            (word, _) => read_number(word).map(|number| number as f64),
        };
        let figures: Vec<f64> =
            rest.split_ascii_whitespace().map(figure).collect::<Result<_, _>>()?;
        let limit = if matches!(name, "over" | "count") { MAX_COUNT } else { MAX_LATENCY };
        // Without columns the row is empty or has a single zero.
        let nothing = self.columns.is_empty() && figures.iter().all(|figure| *figure == 0.0);
        let figures = if nothing && self.headed { Vec::new() } else { self.check_counts(figures)? };
        if let Some(figure) = figures.iter().find(|figure| **figure > limit as f64) {
            return Err(format!("{figure} is implausible (more than {limit})").into());
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

    /// Checks that the list has one number per column. Without a header the first row determines
    /// their number.
    fn check_counts<T>(&mut self, list: Vec<T>) -> Result<Vec<T>, Malformed> {
        if !self.headed && self.columns.is_empty() && list.len() <= MAX_COLUMNS {
            let column = |index| Thread { index, ..Thread::default() };
            self.columns = (0..list.len()).map(column).collect();
        }
        if list.len() != self.columns.len() {
            let (numbers, columns) = (list.len(), self.columns.len());
            let reason = format!("{numbers} numbers in this row, {columns} columns in the header");
            return Err(reason.into());
        }
        Ok(list)
    }

    pub(crate) fn into_file(
        mut self,
        mut into: ImportedFile,
        nanoseconds: bool,
    ) -> Result<ImportedFile, Malformed> {
        let over = self.over.take();
        let over =
            over.ok_or("there is no row `over:`: it was cut off, or rtla ran with --no-index")?;
        into.unit = self.unit.unwrap_or(if nanoseconds { Nanos(1) } else { Nanos::MICRO });
        into.step = self.divisor.max(1);
        into.duration = self.duration;
        if self.unit.is_none() && !nanoseconds {
            into.findings.push(unit_assumed());
        }
        if !self.headed && !self.columns.is_empty() {
            into.findings.push(columns_not_named());
            let kinds = self.all.take().unwrap_or_default();
            for (k, column) in self.columns.iter_mut().enumerate() {
                let part = kinds.get(k % kinds.len().max(1)).copied().unwrap_or_default();
                column.name = Some(format!("column {}{part}", k + 1));
            }
        }
        let range = self.last.map(|last| last / into.step + 1);
        let count = self.count.take();
        for (k, (column, over)) in self.columns.iter_mut().zip(over).enumerate() {
            let inside = column.cycles_in_bins();
            (column.overflows, column.range) = (over, range);
            if column.bins.last().is_some_and(|(latency, _)| latency / into.step >= BINS) {
                return Err(
                    format!("the histogram of {} has too many bins", column.series_name()).into()
                );
            }
            match count.as_ref().and_then(|count| count.get(k)) {
                Some(count) if inside + over != *count => {
                    let name = column.series_name();
                    let reason =
                        format!("{name} has {inside} in its rows and {over} beyond, not {count}");
                    return Err(reason.into());
                }
                Some(_) => {}
                None if over > 0 => return Err(no_maximum(column, over).into()),
                None => column.figures_of_bins(into.step),
            }
        }
        // A CPU without a sample has no series.
        self.columns.retain(|column| column.cycle_count() > 0);
        into.threads = self.columns;
        Ok(into)
    }
}

/// `IRQ-003`: the CPU, and the suffix of the series' name.
fn part_of_column(word: &str) -> Option<(u32, &'static str)> {
    let (kind, cpu) = word.split_once('-')?;
    let cpu = read_cpu(cpu)?;
    Some((cpu, if kind == "CPU" { "" } else { part_of(kind)? }))
}

fn part_of(kind: &str) -> Option<&'static str> {
    match kind {
        "IRQ" => Some("/irq"),
        "Thr" => Some("/thread"),
        "Usr" => Some("/user"),
        _ => None,
    }
}

fn no_maximum(column: &Thread, over: u64) -> String {
    let name = column.series_name();
    format!(
        "{over} latencies of {name} lay beyond the histogram, and there is no row `max:`: run rtla \
         without --no-summary, or with more entries (-E)"
    )
}

fn columns_not_named() -> Finding {
    let message = "the text does not name its columns: which CPUs they are of is not known";
    file_warning("columns-not-named", message).with_remedy("run rtla without --no-header")
}
