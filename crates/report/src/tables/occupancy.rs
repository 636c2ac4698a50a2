//! CPU usage: CPUs, processes and their threads, interrupts. Shares are of the recorded time of
//! one CPU: those of a process with several threads, or of an interrupt on several CPUs, may add up
//! to more than 1.

use super::{Cell, Column, Table, Tone};
use crate::format::{clipped, percent, span};
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

fn whole(document: &OccupancyDocument) -> i64 {
    document.covered.ended.saturating_sub(document.covered.began).max(1)
}

fn share_of(ns: i64, whole: i64) -> f64 {
    ns as f64 / whole as f64
}

/// A share, with the time on hover.
fn time(ns: i64, whole: i64) -> Cell {
    Cell::share(share_of(ns, whole)).exact(format!("{}, {ns} ns", span(Nanos(ns))))
}

fn unknown(ns: i64, whole: i64) -> Cell {
    time(ns, whole).tone(if ns > 0 { Tone::Uncertain } else { Tone::Plain })
}

pub fn cpus(document: &OccupancyDocument) -> Table {
    let whole = whole(document);
    let columns = vec![
        Column::figures("CPU", 0),
        Column::figures("busy", 0).meaning("time of tasks, with their interrupts"),
        Column::figures("interrupts", 1).meaning("including those during idle"),
        Column::figures("idle", 0),
        Column::figures("unknown", 0).meaning("not covered by recorded events"),
        Column::figures("switches", 1),
        Column::text("largest shares", 2).wide(),
    ];
    let rows = document.cpus.iter().map(|cpu| {
        let tasks = cpu.tasks.iter().take(NAMED_TASKS).map(|ran| {
            format!("{} {}", clipped(&ran.who, NAME, false), percent(share_of(ran.ns, whole)))
        });
        let parts = [("running", cpu.busy), ("unknown", cpu.unknown), ("sleeping", cpu.idle)];
        let parts = parts.map(|(class, ns)| (class, share_of(ns, whole))).into();
        vec![
            Cell::figure(cpu.cpu.into(), cpu.cpu.to_string()),
            Cell { parts, ..time(cpu.busy, whole).strong() },
            time(cpu.interrupts, whole),
            time(cpu.idle, whole),
            unknown(cpu.unknown, whole),
            Cell::count(cpu.switches),
            Cell::text(tasks.collect::<Vec<_>>().join(", ")),
        ]
    });
    Table::new("CPUs: shares of the recorded time", columns).rows(rows).sortable()
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
pub fn tasks(document: &OccupancyDocument, which: OccupancyRows) -> Table {
    let whole = whole(document);
    let row = |name: Cell, id: Option<u32>, times: &ActivityTimes, longest: Option<f64>| {
        let id = id.map_or_else(|| Cell::absent("–"), |id| Cell::figure(id.into(), id.to_string()));
        let mut row = vec![Cell { parts: parts(times), ..name }, id];
        row.push(time(times.running, whole).strong());
        row.extend([times.ready, times.sleeping, times.blocked].map(|ns| time(ns, whole)));
        row.extend([time(times.other, whole), unknown(times.unknown, whole)]);
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
        Column::figures("ready", 0).meaning("runnable, waiting for a CPU"),
        Column::figures("sleeping", 3),
        Column::figures("blocked", 1)
            .meaning("uninterruptible sleep, or waiting for a lock with priority inheritance"),
        Column::figures("other", 7),
        Column::figures("unknown", 2),
        Column::figures("longest ready", 4).meaning("the longest wait for a CPU"),
        Column::figures("voluntary", 5).meaning("switches away because it waited for something"),
        Column::figures("involuntary", 5).meaning("switches away although it could have run"),
        Column::figures("migrations", 6),
    ];
    let rows = rows.into_iter().map(|(_, row)| row);
    Table::new(format!("{what}: shares of one CPU"), columns).rows(rows).sortable().shown(24, 120)
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
pub fn busiest(document: &OccupancyDocument) -> Table {
    let whole = whole(document);
    let rows = document.processes.iter().map(|process| {
        vec![
            Cell::name(&process.name),
            time(process.times.running, whole),
            time(process.times.ready, whole),
            Cell::time_or(longest_ready(process), "–"),
        ]
    });
    let columns = vec![
        Column::text("busiest processes", 0).at_most(NAME),
        Column::figures("running", 0),
        Column::figures("ready", 1).explained("runnable, waiting for a CPU"),
        Column::figures("longest ready (µs)", 1),
    ];
    let rows = rows.take(BUSIEST);
    Table::new("busiest processes: shares of one CPU", columns).rows(rows)
}

fn longest_ready(process: &ProcessOccupancy) -> Option<f64> {
    let longest = process.threads.iter().filter_map(|thread| thread.longest_ready).max();
    longest.map(|ns| ns as f64)
}

/// The distribution of the time of its threads, as shares of one bar.
fn parts(times: &ActivityTimes) -> Vec<(&'static str, f64)> {
    let parts = [
        ("running", times.running),
        ("ready", times.ready),
        ("blocked", times.blocked),
        ("other", times.other),
        ("unknown", times.unknown),
        ("sleeping", times.sleeping),
    ];
    let all = parts.iter().fold(0i64, |sum, (_, ns)| sum.saturating_add(*ns)).max(1);
    parts.map(|(class, ns)| (class, share_of(ns, all))).into()
}

/// Interrupts, the longest time first: the total of all CPUs and, if `each_cpu`, each CPU below it.
pub fn interrupts(document: &OccupancyDocument, each_cpu: bool) -> Table {
    let whole = whole(document);
    let mut kinds: BTreeMap<(&str, &str), Vec<&InterruptOccupancy>> = BTreeMap::new();
    for one in &document.interrupts {
        kinds.entry((&one.kind, &one.name)).or_default().push(one);
    }
    let mut kinds: Vec<_> =
        kinds.into_iter().map(|(of, each)| (of, InterruptSum::of(&each), each)).collect();
    kinds.sort_by_key(|(_, sum, _)| -sum.ns);
    let row = |kind: Cell, name: Cell, sum: &InterruptSum| {
        let mean = (sum.count > 0).then(|| sum.ns as f64 / sum.count as f64);
        vec![
            name,
            kind,
            Cell::text(sum.cpus.to_string()),
            Cell::count(sum.count),
            time(sum.ns, whole),
            Cell::time_or(mean, "–"),
            Cell::time(sum.max).strong(),
        ]
    };
    let mut rows = Vec::new();
    for ((kind, name), sum, each) in &kinds {
        rows.push(row(Cell::name(*kind), Cell::name(*name), sum));
        if each_cpu && each.len() > 1 {
            rows.extend(each.iter().map(|one| {
                let name = Cell::name(format!("\u{2003}{name}"));
                row(Cell::name(*kind), name, &InterruptSum::of(&[one]))
            }));
        }
    }
    let columns = vec![
        Column::text("name", 0).at_most(NAME),
        Column::text("kind", 0),
        Column::text("CPU", 1).at_most(12),
        Column::figures("count", 0).meaning("served to their end"),
        Column::figures("share", 0).explained("of one CPU, without nested interrupts"),
        Column::figures("mean", 0).meaning("without nested interrupts"),
        Column::figures("max", 0).explained("with nested interrupts"),
    ];
    Table::new("interrupts", columns).rows(rows).sortable().shown(24, 200)
}

/// One interrupt on some CPUs.
struct InterruptSum {
    cpus: CpuSet,
    count: u64,
    ns: i64,
    max: i64,
}

impl InterruptSum {
    fn of(each: &[&InterruptOccupancy]) -> InterruptSum {
        InterruptSum {
            cpus: each.iter().map(|one| usize::from(one.cpu)).collect(),
            count: each.iter().fold(0, |sum, one| sum.saturating_add(one.count)),
            ns: each.iter().fold(0, |sum, one| sum.saturating_add(one.ns)),
            max: each.iter().map(|one| one.max).max().unwrap_or_default(),
        }
    }
}

/// Contradictions in the switches, for outputs without room for columns.
pub fn contradictions(document: &OccupancyDocument) -> Vec<String> {
    let covered = &document.covered;
    let all = [
        (covered.lost, "missing from this recording: the time around them is unknown"),
        (document.contradictions, "contradicting earlier ones: the time between is unknown"),
        (covered.untracked, "of threads beyond the limit of tracked threads: in no figure"),
    ];
    let some = all.iter().filter(|(n, _)| *n > 0);
    some.map(|(n, what)| format!("{} {what}", crate::format::counted(*n, "event"))).collect()
}
