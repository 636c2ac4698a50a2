//! Who had the CPUs: CPUs, processes with their busiest threads, interrupts.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format;
use punctual_bundle::intervals::{InterruptOccupancy, OccupancyDocument, Ran, Times};
use std::collections::BTreeMap;

const NAME_WIDTH: usize = 24;
/// Rows of a table; the rest is counted.
const ROWS: usize = 24;
/// Of those that had a CPU, this many are named.
const NAMED: usize = 3;

/// The whole page; `threads` shows every thread instead of their processes.
pub fn occupancy(document: &OccupancyDocument, threads: bool, options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    let span = document.covered.ended.saturating_sub(document.covered.began).max(1);
    write_cpus(&mut out, document, span);
    write_tasks(&mut out, document, threads, span);
    write_interrupts(&mut out, &document.interrupts, span);
    write_warnings(&mut out, document);
    if !document.findings.is_empty() {
        super::findings::write(&mut out, &document.findings);
    }
    out.finish()
}

fn share(ns: i64, span: i64) -> String {
    format::percent(ns as f64 / span as f64)
}

fn unknown(ns: i64, span: i64) -> Cell {
    Cell(share(ns, span), if ns > 0 { Tone::Uncertain } else { Tone::Plain })
}

fn write_cpus(out: &mut Page, document: &OccupancyDocument, span: i64) {
    out.heading("CPUs (shares of the recording)");
    let columns = vec![
        Column::right("CPU", 0),
        Column::right("busy", 0),
        Column::right("interrupts", 1),
        Column::right("idle", 0),
        Column::right("unknown", 0),
        Column::right("switches", 1),
        Column::left("mostly", 2),
    ];
    let mostly = |tasks: &[Ran]| {
        let one = |ran: &Ran| {
            format!(
                "{} {}",
                format::clipped(&ran.who, NAME_WIDTH, out.options.ascii),
                share(ran.ns, span)
            )
        };
        tasks.iter().take(NAMED).map(one).collect::<Vec<_>>().join(", ")
    };
    let rows = document.cpus.iter().map(|cpu| {
        vec![
            Cell::plain(cpu.cpu.to_string()),
            Cell(share(cpu.busy, span), Tone::Strong),
            Cell::plain(share(cpu.interrupts, span)),
            Cell::plain(share(cpu.idle, span)),
            unknown(cpu.unknown, span),
            Cell::plain(format::count(cpu.switches)),
            Cell::plain(mostly(&cpu.tasks)),
        ]
    });
    let rows = rows.collect();
    table::write(out, columns, rows);
}

fn write_tasks(out: &mut Page, document: &OccupancyDocument, threads: bool, span: i64) {
    let mut all: Vec<(String, String, &Times)> = Vec::new();
    for process in &document.processes {
        if threads {
            all.extend(
                process
                    .threads
                    .iter()
                    .map(|thread| (thread.name.clone(), thread.tid.to_string(), &thread.times)),
            );
        } else {
            let pid = process
                .process
                .map_or_else(|| out.either("–", "-").to_owned(), |pid| pid.to_string());
            let count = process.threads.len();
            let name = if count > 1 {
                format!("{} ({count} threads)", process.name)
            } else {
                process.name.clone()
            };
            all.push((name, pid, &process.times));
        }
    }
    all.sort_by_key(|(_, _, times)| -times.running);
    out.heading(if threads {
        "threads (shares of one CPU)"
    } else {
        "processes (shares of one CPU)"
    });
    let columns = vec![
        Column::left("name", 0),
        Column::right(if threads { "tid" } else { "pid" }, 0),
        Column::right("running", 0),
        Column::right("ready", 0),
        Column::right("sleeping", 3),
        Column::right("blocked", 1),
        Column::right("other", 6),
        Column::right("unknown", 2),
        Column::right("voluntary", 4),
        Column::right("involuntary", 4),
        Column::right("migrations", 5),
    ];
    let rows = all.iter().take(ROWS).map(|(name, id, times)| {
        let shares = [times.ready, times.sleeping, times.blocked, times.other];
        let counts = [times.voluntary, times.involuntary, times.migrations];
        let mut row = vec![
            Cell::plain(format::clipped(name, NAME_WIDTH, out.options.ascii)),
            Cell::plain(id.clone()),
            Cell(share(times.running, span), Tone::Strong),
        ];
        row.extend(shares.map(|ns| Cell::plain(share(ns, span))));
        row.push(unknown(times.unknown, span));
        row.extend(counts.map(|n| Cell::plain(format::count(n))));
        row
    });
    let rows = rows.collect();
    let left_out = table::write(out, columns, rows);
    if all.len() > ROWS {
        out.paragraph(
            "  ",
            "  ",
            Tone::Faint,
            &format!("and {} more: see --json", all.len() - ROWS),
        );
    }
    if !left_out.is_empty() {
        out.paragraph(
            "  ",
            "  ",
            Tone::Faint,
            &format!("hidden: terminal too narrow: {}", left_out.join(", ")),
        );
    }
}

fn write_interrupts(out: &mut Page, interrupts: &[InterruptOccupancy], span: i64) {
    if interrupts.is_empty() {
        return;
    }
    // One row a kind, whatever the CPU.
    let mut sums: BTreeMap<(&str, &str), (u64, i64, i64)> = BTreeMap::new();
    for one in interrupts {
        let sum = sums.entry((&one.kind, &one.name)).or_default();
        *sum = (sum.0 + one.count, sum.1.saturating_add(one.ns), sum.2.max(one.max));
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (_, ns, _))| -ns);
    let heading = format!("interrupts (times in {})", out.unit());
    out.heading(&heading);
    let columns = vec![
        Column::left("kind", 0),
        Column::left("name", 0),
        Column::right("count", 0),
        Column::right("of one CPU", 0),
        Column::right("mean", 0),
        Column::right("max", 0),
    ];
    let rows = sums.iter().take(ROWS).map(|((kind, name), (count, ns, max))| {
        vec![
            Cell::plain(format::plain(kind)),
            Cell::plain(format::clipped(name, NAME_WIDTH, out.options.ascii)),
            Cell::plain(format::count(*count)),
            Cell::plain(share(*ns, span)),
            Cell::plain(if *count > 0 {
                out.latency(*ns as f64 / *count as f64)
            } else {
                String::new()
            }),
            Cell(out.latency(*max as f64), Tone::Strong),
        ]
    });
    let rows = rows.collect();
    table::write(out, columns, rows);
    let text = "of one CPU, mean: without the interrupts that interrupted it; max: with them";
    out.paragraph("  ", "  ", Tone::Faint, text);
}

fn write_warnings(out: &mut Page, document: &OccupancyDocument) {
    let covered = &document.covered;
    let sentence = [
        (covered.lost, "missing from this recording: what they would have told is unknown"),
        (
            document.contradictions,
            "contradicting what was known before: the time between is unknown",
        ),
        (covered.untracked, "of more threads than are followed, in no figure"),
    ];
    let sentence: Vec<String> = sentence
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} {what}", format::counted(*n, "event")))
        .collect();
    if !sentence.is_empty() {
        out.gap();
        sentence.iter().for_each(|text| out.paragraph("", "", Tone::Uncertain, text));
    }
}
