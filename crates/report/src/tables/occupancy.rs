//! CPU usage: CPUs, processes and their threads, interrupts. Shares are of the recorded time of
//! one CPU: those of a process with several threads, or of an interrupt on several CPUs, may add up
//! to more than 1.

use super::{Cell, Column, Table, Tone};
use crate::format::{clip_name, percent_text, span_text};
use punctual_bundle::intervals::{
    ActivityTimes, InterruptOccupancy, OccupancyDocument, ProcessOccupancy,
};
use punctual_core::{CpuSet, Nanos};
use std::collections::BTreeMap;

/// Names of tasks and interrupts in a terminal.
const NAME: usize = 24;
const BUSIEST: usize = 5;
/// Tasks named for each CPU.
const NAMED_TASKS: usize = 3;

fn covered_time(document: &OccupancyDocument) -> i64 {
    document.covered.ended.saturating_sub(document.covered.began).max(1)
}

fn share_of(ns: i64, whole: i64) -> f64 {
    ns as f64 / whole as f64
}

/// A share, with the time on hover.
fn time_cell(ns: i64, whole: i64) -> Cell {
    Cell::share(share_of(ns, whole)).with_exact(format!("{}, {ns} ns", span_text(Nanos(ns))))
}

fn unknown_cell(ns: i64, whole: i64) -> Cell {
    time_cell(ns, whole).with_tone(if ns > 0 { Tone::Uncertain } else { Tone::Plain })
}

pub(crate) fn cpu_table(document: &OccupancyDocument) -> Table {
    let whole = covered_time(document);
    let columns = vec![
        Column::figures("CPU", 0),
        Column::figures("busy", 0).with_meaning("time of tasks, with their interrupts"),
        Column::figures("interrupts", 1).with_meaning("including those during idle"),
        Column::figures("idle", 0),
        Column::figures("unknown", 0).with_meaning("not covered by recorded events"),
        Column::figures("switches", 1),
        Column::text("largest shares", 2).with_wide_texts(),
    ];
    let rows = document.cpus.iter().map(|cpu| {
        let tasks = cpu.tasks.iter().take(NAMED_TASKS).map(|ran| {
            format!(
                "{} {}",
                clip_name(&ran.who, NAME, false),
                percent_text(share_of(ran.ns, whole))
            )
        });
        let parts = [("running", cpu.busy), ("unknown", cpu.unknown), ("sleeping", cpu.idle)];
        let parts = parts.map(|(class, ns)| (class, share_of(ns, whole))).into();
        vec![
            Cell::figure(cpu.cpu.into(), cpu.cpu.to_string()),
            Cell { parts, ..time_cell(cpu.busy, whole).with_strong_tone() },
            time_cell(cpu.interrupts, whole),
            time_cell(cpu.idle, whole),
            unknown_cell(cpu.unknown, whole),
            Cell::count(cpu.switches),
            Cell::text(tasks.collect::<Vec<_>>().join(", ")),
        ]
    });
    Table::new("CPUs: shares of the recorded time", columns).with_rows(rows).with_sorting()
}

/// The rows in a table of processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OccupancyRows {
    Processes,
    Threads,
    /// Every process, followed by its threads.
    Both,
}

/// Processes, threads, or both, the busiest first.
pub fn task_table(document: &OccupancyDocument, which: OccupancyRows) -> Table {
    let whole = covered_time(document);
    let row = |name: Cell, id: Option<u32>, times: &ActivityTimes, longest: Option<f64>| {
        let id = id.map_or_else(|| Cell::absent("–"), |id| Cell::figure(id.into(), id.to_string()));
        let mut row = vec![Cell { parts: time_parts(times), ..name }, id];
        row.push(time_cell(times.running, whole).with_strong_tone());
        row.extend([times.ready, times.sleeping, times.blocked].map(|ns| time_cell(ns, whole)));
        row.extend([time_cell(times.other, whole), unknown_cell(times.unknown, whole)]);
        row.push(Cell::time_or(longest, "–"));
        row.extend([times.voluntary, times.involuntary, times.migrations].map(Cell::count));
        (times.running, row)
    };
    let mut rows = Vec::new();
    for process in &document.processes {
        let several = process.threads.len() > 1;
        if which != OccupancyRows::Threads {
            let longest = longest_ready(process);
            rows.push(row(process_name(process, which), process.process, &process.times, longest));
        }
        if which == OccupancyRows::Threads || which == OccupancyRows::Both && several {
            let indent = if which == OccupancyRows::Both { "\u{2003}" } else { "" };
            rows.extend(process.threads.iter().map(|thread| {
                let name = Cell::name(format!("{indent}{}", thread.name));
                row(name, Some(thread.tid), &thread.times, thread.longest_ready.map(|ns| ns as f64))
            }));
        }
    }
    if which != OccupancyRows::Both {
        rows.sort_by_key(|(running, _)| -running);
    }
    let (what, id) = match which {
        OccupancyRows::Processes => ("processes", "PID"),
        OccupancyRows::Threads => ("threads", "TID"),
        OccupancyRows::Both => ("processes and their threads", "PID, TID"),
    };
    let columns = vec![
        Column::text("name", 0).at_most(NAME),
        Column::figures(id, 0),
        Column::figures("running", 0),
        Column::figures("ready", 0).with_meaning("runnable, waiting for a CPU"),
        Column::figures("sleeping", 3),
        Column::figures("blocked", 1)
            .with_meaning("uninterruptible sleep, or waiting for a lock with priority inheritance"),
        Column::figures("other", 7),
        Column::figures("unknown", 2),
        Column::figures("longest ready", 4).with_meaning("the longest wait for a CPU"),
        Column::figures("voluntary", 5)
            .with_meaning("switches away because it waited for something"),
        Column::figures("involuntary", 5).with_meaning("switches away although it could have run"),
        Column::figures("migrations", 6),
    ];
    let rows = rows.into_iter().map(|(_, row)| row);
    Table::new(format!("{what}: shares of one CPU"), columns)
        .with_rows(rows)
        .with_sorting()
        .with_row_limit(24, 120)
}

fn process_name(process: &ProcessOccupancy, which: OccupancyRows) -> Cell {
    let threads = process.threads.len();
    match (process.process, which) {
        (None, OccupancyRows::Both) => Cell::text("threads of unknown processes"),
        (_, OccupancyRows::Both) if threads > 1 => {
            Cell::name(&process.name).sub(format!("{threads} threads"))
        }
        _ if threads > 1 => Cell::name(format!("{} ({threads} threads)", process.name)),
        _ => Cell::name(&process.name),
    }
}

/// The processes that ran longest, in short.
pub(crate) fn busiest_table(document: &OccupancyDocument) -> Table {
    let whole = covered_time(document);
    let rows = document.processes.iter().map(|process| {
        vec![
            Cell::name(&process.name),
            time_cell(process.times.running, whole),
            time_cell(process.times.ready, whole),
            Cell::time_or(longest_ready(process), "–"),
        ]
    });
    let columns = vec![
        Column::text("busiest processes", 0).at_most(NAME),
        Column::figures("running", 0),
        Column::figures("ready", 1).with_explanation("runnable, waiting for a CPU"),
        Column::figures("longest ready (µs)", 1),
    ];
    let rows = rows.take(BUSIEST);
    Table::new("busiest processes: shares of one CPU", columns).with_rows(rows)
}

fn longest_ready(process: &ProcessOccupancy) -> Option<f64> {
    let longest = process.threads.iter().filter_map(|thread| thread.longest_ready).max();
    longest.map(|ns| ns as f64)
}

/// The distribution of the time of its threads, as shares of one bar.
fn time_parts(times: &ActivityTimes) -> Vec<(&'static str, f64)> {
    let parts = [
        ("running", times.running),
        ("ready", times.ready),
        ("blocked", times.blocked),
        ("other", times.other),
        ("unknown", times.unknown),
        ("sleeping", times.sleeping),
    ];
    let total = parts.iter().fold(0i64, |sum, (_, ns)| sum.saturating_add(*ns)).max(1);
    parts.map(|(class, ns)| (class, share_of(ns, total))).into()
}

/// Interrupts, the longest time first: the total of all CPUs and, if `each_cpu`, each CPU below it.
pub(crate) fn interrupt_table(document: &OccupancyDocument, each_cpu: bool) -> Table {
    let whole = covered_time(document);
    let mut kinds: BTreeMap<(&str, &str), Vec<&InterruptOccupancy>> = BTreeMap::new();
    for one in &document.interrupts {
        kinds.entry((&one.kind, &one.name)).or_default().push(one);
    }
    let mut kinds: Vec<_> =
        kinds.into_iter().map(|(of, each)| (of, InterruptSum::from_cpus(&each), each)).collect();
    kinds.sort_by_key(|(_, sum, _)| -sum.ns);
    let row = |kind: Cell, name: Cell, sum: &InterruptSum| {
        let mean = (sum.count > 0).then(|| sum.ns as f64 / sum.count as f64);
        vec![
            name,
            kind,
            Cell::text(sum.cpus.to_string()),
            Cell::count(sum.count),
            time_cell(sum.ns, whole),
            Cell::time_or(mean, "–"),
            Cell::time(sum.max).with_strong_tone(),
        ]
    };
    let mut rows = Vec::new();
    for ((kind, name), sum, each) in &kinds {
        rows.push(row(Cell::name(*kind), Cell::name(*name), sum));
        if each_cpu && each.len() > 1 {
            rows.extend(each.iter().map(|one| {
                let name = Cell::name(format!("\u{2003}{name}"));
                row(Cell::name(*kind), name, &InterruptSum::from_cpus(&[one]))
            }));
        }
    }
    let columns = vec![
        Column::text("name", 0).at_most(NAME),
        Column::text("kind", 0),
        Column::text("CPU", 1).at_most(12),
        Column::figures("count", 0).with_meaning("served to their end"),
        Column::figures("share", 0).with_explanation("of one CPU, without nested interrupts"),
        Column::figures("mean", 0).with_meaning("without nested interrupts"),
        Column::figures("max", 0).with_explanation("with nested interrupts"),
    ];
    Table::new("interrupts", columns).with_rows(rows).with_sorting().with_row_limit(24, 200)
}

/// One interrupt on some CPUs.
struct InterruptSum {
    cpus: CpuSet,
    count: u64,
    ns: i64,
    max: i64,
}

impl InterruptSum {
    fn from_cpus(each: &[&InterruptOccupancy]) -> InterruptSum {
        InterruptSum {
            cpus: each.iter().map(|one| usize::from(one.cpu)).collect(),
            count: each.iter().fold(0, |sum, one| sum.saturating_add(one.count)),
            ns: each.iter().fold(0, |sum, one| sum.saturating_add(one.ns)),
            max: each.iter().map(|one| one.max).max().unwrap_or_default(),
        }
    }
}

/// Contradictions in the switches, for outputs without room for columns.
pub(crate) fn list_contradictions(document: &OccupancyDocument) -> Vec<String> {
    let covered = &document.covered;
    let all_contradictions = [
        (covered.lost, "missing from this recording: the time around them is unknown"),
        (document.contradictions, "contradicting earlier ones: the time between is unknown"),
        (covered.untracked, "of threads beyond the limit of tracked threads: in no figure"),
    ];
    let present = all_contradictions.iter().filter(|(n, _)| *n > 0);
    present
        .map(|(n, what)| format!("{} {what}", crate::format::count_with_noun(*n, "event")))
        .collect()
}
