//! Figures of the osnoise tracer by CPU, and the tables that the kernel's osnoise and timerlat
//! tracers print themselves (`cat trace`; kernel/trace/trace_output.c).
//!
//! ```text
//! <...>-4102 [002] ....  1893.612204: 1000000  1312  99.86880  14  0  0  1003  31  0
//! <idle>-0   [000] d.h1    54.029328: #1     context    irq timer_latency       932 ns
//! ```

use super::recorded::{ImportedFile, Thread, UNKNOWN_MIN, make_table};
use super::scan::{
    MAX_COUNT, MAX_LATENCY, check_bound, read_bounded, read_count, read_cpu, read_decimal,
    read_number, scan_lines,
};
use super::{Malformed, TextReader, Tool, hwlatdetect};
use punctual_core::notes::Cell;
use punctual_core::{Finding, Nanos, Severity};
use std::collections::BTreeMap;

pub(super) const READER: TextReader = TextReader {
    what: "table of the osnoise or timerlat tracer",
    recognize: |text| recognize_tracer(text).filter(|tool| *tool != Tool::Hwlatdetect),
    parse: |text, tool, _| parse(text, tool),
    may_lack_unit: false,
};

/// The number of lines at the beginning of a trace that decide whether it is such a table.
const LOOKED_AT: usize = 200;
/// The possible tick frequencies of a kernel.
const TICKS: [u64; 4] = [100, 250, 300, 1000];

/// Noise of a CPU in µs, and the number of interferences.
#[derive(Clone, Copy, Default)]
pub struct OsnoiseRow {
    pub periods: u64,
    runtime: u64,
    noise: u64,
    /// The largest noise of a period and of a single interference.
    pub max_noise: u64,
    max_single: u64,
    /// By hardware, NMIs, interrupts, softirqs and threads; `rtla hwnoise` has the first two.
    counts: [Option<u64>; 5],
}

impl OsnoiseRow {
    /// Reads the columns after CPU and periods in a row of rtla: runtime, noise, share, the two
    /// maxima, and counts.
    pub fn read(rest: &str) -> Result<OsnoiseRow, Malformed> {
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let [runtime, noise, share, noises, single, counts @ ..] = words.as_slice() else {
            return Err("a row with too few figures".into());
        };
        let mut row = OsnoiseRow::with_counts(counts)?;
        read_decimal(share)?;
        row.runtime = read_bounded(runtime, MAX_COUNT, "the runtime")?;
        row.noise = read_bounded(noise, MAX_COUNT, "the noise")?;
        row.max_noise = read_bounded(noises, MAX_LATENCY, "the noise")?;
        row.max_single = read_bounded(single, MAX_LATENCY, "the noise")?;
        Ok(row)
    }

    /// A period as printed by the kernel: it has no maximum over several periods.
    fn of_period(rest: &str) -> Result<OsnoiseRow, Malformed> {
        let mut words: Vec<&str> = rest.split_ascii_whitespace().collect();
        if let Some(noise) = words.get(1).copied() {
            words.insert(3.min(words.len()), noise);
        }
        OsnoiseRow::read(&words.join(" ")).map(|row| OsnoiseRow { periods: 1, ..row })
    }

    fn with_counts(words: &[&str]) -> Result<OsnoiseRow, Malformed> {
        let mut row = OsnoiseRow::default();
        for (count, word) in row.counts.iter_mut().zip(words) {
            *count = Some(read_count(word)?);
        }
        Ok(row)
    }

    fn add(&mut self, other: &OsnoiseRow) {
        self.periods += other.periods;
        self.runtime += other.runtime;
        self.noise += other.noise;
        self.max_noise = self.max_noise.max(other.max_noise);
        self.max_single = self.max_single.max(other.max_single);
        for (own, count) in self.counts.iter_mut().zip(other.counts) {
            *own = own.zip(count).map(|(own, count)| own + count);
        }
    }

    /// The tick, if every interference is an interrupt or the softirq that it raised, and their
    /// number is that of the ticks. The figures prove no more.
    fn tick_finding(&self, cpu: u32) -> Option<Finding> {
        let [Some(0), Some(0), Some(irqs), Some(softirqs), Some(0)] = self.counts else {
            return None;
        };
        let rate = (irqs.max(softirqs) == irqs && self.runtime >= 1_000_000)
            .then(|| irqs as f64 * 1e6 / self.runtime as f64)?;
        let is_tick = |hz: &u64| (rate - *hz as f64).abs() <= (*hz as f64 / 100.0).max(2.0);
        let hz = TICKS.into_iter().find(is_tick)?;
        let mean_noise = self.noise as f64 / (irqs + softirqs).max(1) as f64;
        let message = format!(
            "{rate:.0} interrupts a second of about {:.1} us: the tick at HZ={hz}, probably",
            (mean_noise * 10.0).floor() / 10.0
        );
        Some(
            Finding::new("noise-of-the-tick", Severity::Note, format!("CPU {cpu}"), message)
                .with_evidence("osnoise counts interferences; it does not name them")
                .with_remedy(
                    "`punctual attach --cpus` names each; nohz_full stops the tick where one task \
                     runs",
                ),
        )
    }

    fn format_cells(&self, cpu: u32) -> Vec<Cell> {
        let us = |us: u64| Cell::from(Nanos::MICRO * us as i64);
        let share = self.noise as f64 / self.runtime.max(1) as f64;
        let mut cells = vec![
            Cell::from(cpu.to_string()),
            self.periods.into(),
            us(self.runtime),
            us(self.noise),
            Cell::Number(share),
            us(self.max_single),
        ];
        cells.extend(self.counts.map(|count| count.map_or(Cell::Nothing, Cell::from)));
        cells
    }
}

/// Adds noise by CPU: a series of the noise per period, the table, and findings from the counts.
pub(crate) fn add_noise(rows: BTreeMap<u32, OsnoiseRow>, into: &mut ImportedFile) {
    for (cpu, row) in rows.iter().filter(|(_, row)| row.periods > 0) {
        into.threads.push(Thread {
            index: into.threads.len(),
            name: Some(format!("CPU {cpu}/noise")),
            cpu: Some(*cpu),
            undistributed: row.periods,
            min: UNKNOWN_MIN,
            mean: row.noise as f64 / row.periods as f64,
            max: row.max_noise,
            ..Thread::default()
        });
    }
    add_table(&rows, into);
}

fn add_table(rows: &BTreeMap<u32, OsnoiseRow>, into: &mut ImportedFile) {
    if rows.is_empty() {
        return;
    }
    let columns = [
        ("cpu", ""),
        ("periods", "count"),
        ("runtime", "ns"),
        ("noise", "ns"),
        ("share", "ratio"),
        ("largest single", "ns"),
        ("hardware", "count"),
        ("NMIs", "count"),
        ("interrupts", "count"),
        ("softirqs", "count"),
        ("threads", "count"),
    ];
    let cells = rows.iter().map(|(cpu, row)| row.format_cells(*cpu)).collect();
    let title = "noise of each CPU, and its interferences";
    into.notes.tables.push(make_table("osnoise", title, &columns, cells));
    into.findings.extend(rows.iter().filter_map(|(cpu, row)| row.tick_finding(*cpu)));
}

/// A line of the kernel's own table.
enum OsnoiseLine {
    Period(OsnoiseRow),
    /// A kind of latency, in ns.
    Latency(&'static str, u64),
}

/// The tool of a tracer's table, including hwlat's: the first lines of the text that are not
/// comments are rows of it.
pub(crate) fn recognize_tracer(text: &str) -> Option<Tool> {
    let mut tool = None;
    for line in text.lines().take(LOOKED_AT) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("=>") {
            continue;
        }
        let row_tool = match read_row(line) {
            Some(Ok((_, OsnoiseLine::Period(_)))) => Tool::Osnoise,
            Some(Ok((_, OsnoiseLine::Latency(..)))) => Tool::Timerlat,
            // A line truncated by the read limit decides nothing.
            Some(Err(_)) => break,
            None if line.contains(hwlatdetect::TRACER) => Tool::Hwlatdetect,
            None if line.ends_with("<stack trace>") => continue,
            None => return None,
        };
        if tool.replace(row_tool).is_some_and(|before| before != row_tool) {
            return None;
        }
    }
    tool
}

/// CPU and content of a row; `None` for another line.
fn read_row(line: &str) -> Option<Result<(u32, OsnoiseLine), Malformed>> {
    let (head, rest) = line.rsplit_once(": ")?;
    let (_, after) = head.rsplit_once('[')?;
    let cpu = read_cpu(after.split_once(']')?.0)?;
    if let Some((_, latency)) = rest.split_once(" timer_latency ") {
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let part = match words.get(1..3)? {
            ["context", "irq"] => "/irq",
            ["context", "thread"] => "/thread",
            ["context", _] => "/user",
            _ => return None,
        };
        let ns = latency.trim().strip_suffix("ns").unwrap_or(latency);
        return Some(read_number(ns.trim()).map(|ns| (cpu, OsnoiseLine::Latency(part, ns))));
    }
    let is_period = rest.split_ascii_whitespace().count() == 9
        && rest.bytes().all(|c| c.is_ascii_digit() || b" \t.,".contains(&c));
    is_period.then(|| OsnoiseRow::of_period(rest).map(|row| (cpu, OsnoiseLine::Period(row))))
}

/// Reads the kernel's table.
fn parse(text: &str, tool: Tool) -> Result<ImportedFile, Malformed> {
    let source = match tool {
        Tool::Timerlat => "the timerlat tracer's table",
        _ => "the osnoise tracer's table",
    };
    let mut into = ImportedFile::new(tool, source);
    let mut rows: BTreeMap<u32, OsnoiseRow> = BTreeMap::new();
    let mut values: BTreeMap<(u32, &str), Vec<u64>> = BTreeMap::new();
    scan_lines(text, |line| {
        let line = line.trim();
        let Some((cpu, of)) = read_row(line).filter(|_| !line.starts_with('#')).transpose()? else {
            return Ok(());
        };
        let mut add = |part, value| values.entry((cpu, part)).or_default().push(value);
        match of {
            OsnoiseLine::Latency(part, ns) => {
                add(part, check_bound(ns, MAX_LATENCY * 1_000, "the latency")?);
            }
            OsnoiseLine::Period(row) => {
                add("/noise", row.noise);
                add("/single", row.max_single);
                rows.entry(cpu).and_modify(|before| before.add(&row)).or_insert(row);
            }
        }
        Ok(())
    })?;
    if tool == Tool::Timerlat {
        into.unit = Nanos(1);
    }
    for ((cpu, part), values) in values {
        let name = Some(format!("CPU {cpu}{part}"));
        let thread = Thread::of_values(into.threads.len(), values);
        into.threads.push(Thread { cpu: Some(cpu), name, ..thread });
    }
    add_table(&rows, &mut into);
    Ok(into)
}
