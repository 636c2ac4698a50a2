//! Who had the CPUs, and what threads did the rest of the time.

use crate::format::{count, duration, micros};
use crate::html::table::{Cell, Column, Table};
use crate::html::text::{name, percent};
use punctual_bundle::intervals::{OccupancyDocument, Times};
use punctual_core::Nanos;

/// Tasks named for each CPU.
const MAX_TASKS: usize = 4;
/// Rows of interrupts.
const MAX_INTERRUPTS: usize = 100;

/// CPUs; `None` where nothing is known of any.
pub fn cpus(document: &OccupancyDocument) -> Option<Table> {
    let row = |cpu: &punctual_bundle::intervals::CpuOccupancy| {
        let all = cpu.busy.saturating_add(cpu.idle).saturating_add(cpu.unknown);
        let share = |ns: i64| ns as f64 / all.max(1) as f64;
        let task = |ran: &punctual_bundle::intervals::Ran| {
            format!("{} {}", name(&ran.who), percent(share(ran.ns)))
        };
        let tasks: Vec<String> = cpu.tasks.iter().take(MAX_TASKS).map(task).collect();
        let parts = vec![
            ("running", share(cpu.busy)),
            ("unknown", share(cpu.unknown)),
            ("sleeping", share(cpu.idle)),
        ];
        vec![
            Cell::figure(cpu.cpu.to_string(), f64::from(cpu.cpu)),
            Cell { parts, ..Cell::figure(percent(share(cpu.busy)), share(cpu.busy)) },
            Cell::figure(percent(share(cpu.interrupts)), share(cpu.interrupts)),
            Cell::figure(percent(share(cpu.idle)), share(cpu.idle)),
            Cell::figure(percent(share(cpu.unknown)), share(cpu.unknown)),
            Cell::count(cpu.switches),
            Cell { class: "wide", ..Cell::text(tasks.join(", ")) },
        ]
    };
    let rows: Vec<Vec<Cell>> = document.cpus.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        caption: "CPUs: shares of the recorded time.".to_owned(),
        columns: vec![
            Column::figures("CPU"),
            Column::figures("Busy").meaning("time of tasks, with their interrupts"),
            Column::figures("Interrupts").meaning("including those during idle"),
            Column::figures("Idle"),
            Column::figures("Unknown").meaning("not covered by recorded events"),
            Column::figures("Switches"),
            Column::text("CPU usage"),
        ],
        rows,
        sortable: true,
    })
}

/// Processes and their threads, the busiest first, at most `limit` rows.
pub fn threads(document: &OccupancyDocument, limit: usize) -> Option<Table> {
    let mut rows = Vec::new();
    let mut left_out = 0;
    for process in &document.processes {
        let title = match process.process {
            Some(pid) => format!("{} ({pid})", name(&process.name)),
            None => "threads of unknown processes".to_owned(),
        };
        let mut add = |first: Cell, times: &Times, longest: Option<i64>| {
            if rows.len() < limit { rows.push(row(first, times, longest)) } else { left_out += 1 }
        };
        if let [only] = process.threads.as_slice() {
            add(Cell::text(title), &only.times, only.longest_ready);
            continue;
        }
        let longest = process.threads.iter().filter_map(|thread| thread.longest_ready).max();
        let threads = format!("{} threads", process.threads.len());
        add(Cell::text(title).sub(threads), &process.times, longest);
        for thread in &process.threads {
            let title = format!("\u{2003}{} ({})", name(&thread.name), thread.tid);
            add(Cell::text(title), &thread.times, thread.longest_ready);
        }
    }
    let more = if left_out > 0 {
        format!(" {left_out} less busy ones are not shown.")
    } else {
        String::new()
    };
    (!rows.is_empty()).then(|| Table {
        caption: format!("Processes and their threads.{more}"),
        columns: vec![
            Column::text("Process, thread"),
            Column::figures("Running"),
            Column::figures("Ready").meaning("runnable, waiting for a CPU"),
            Column::figures("Sleeping"),
            Column::figures("Blocked")
                .meaning("uninterruptible sleep, or waiting for a lock with priority inheritance"),
            Column::figures("Other"),
            Column::figures("Unknown"),
            Column::figures("Longest ready, µs").meaning("the longest wait for a CPU"),
            Column::figures("Switches").meaning("voluntary + involuntary"),
            Column::figures("Migrations"),
        ],
        rows,
        sortable: true,
    })
}

fn row(first: Cell, times: &Times, longest: Option<i64>) -> Vec<Cell> {
    let Times { running, ready, sleeping, blocked, other, unknown, .. } = *times;
    let all = [running, ready, sleeping, blocked, other, unknown]
        .iter()
        .fold(0i64, |sum, ns| sum.saturating_add(*ns));
    let share = |ns: i64| ns as f64 / all.max(1) as f64;
    let parts = [
        ("running", running),
        ("ready", ready),
        ("blocked", blocked),
        ("other", other),
        ("unknown", unknown),
        ("sleeping", sleeping),
    ];
    let parts = parts.map(|(class, ns)| (class, share(ns))).into();
    let time = |ns: i64| Cell {
        exact: Some(format!("{ns} ns, {}", percent(share(ns)))),
        ..Cell::figure(if ns == 0 { "0".to_owned() } else { length(Nanos(ns)) }, ns as f64)
    };
    let switches = times.voluntary.saturating_add(times.involuntary);
    let switches = Cell::figure(
        format!("{} + {}", count(times.voluntary), count(times.involuntary)),
        switches as f64,
    );
    let longest =
        longest.map_or_else(|| Cell::missing("–"), |ns| Cell::figure(micros(Nanos(ns)), ns as f64));
    vec![
        Cell { parts, ..first },
        time(running),
        time(ready),
        time(sleeping),
        time(blocked),
        time(other),
        time(unknown),
        longest,
        switches,
        Cell::count(times.migrations),
    ]
}

fn length(span: Nanos) -> String {
    if span.ns() < 1_000_000_000 { crate::html::text::span(span) } else { duration(span) }
}

/// What interrupts took, the most first.
pub fn interrupts(document: &OccupancyDocument) -> Option<Table> {
    let row = |interrupt: &punctual_bundle::intervals::InterruptOccupancy| {
        vec![
            Cell::text(name(&interrupt.name)).sub(name(&interrupt.kind)),
            Cell::figure(interrupt.cpu.to_string(), f64::from(interrupt.cpu)),
            Cell::count(interrupt.count),
            Cell::figure(length(Nanos(interrupt.ns)), interrupt.ns as f64),
            Cell::figure(micros(Nanos(interrupt.max)), interrupt.max as f64),
        ]
    };
    let rows: Vec<Vec<Cell>> = document.interrupts.iter().take(MAX_INTERRUPTS).map(row).collect();
    let more = document.interrupts.len().saturating_sub(MAX_INTERRUPTS);
    let more = if more > 0 { format!(" {more} more took less.") } else { String::new() };
    (!rows.is_empty()).then(|| Table {
        caption: format!("Interrupts and softirqs, by the time they took.{more}"),
        columns: vec![
            Column::text("Interrupt"),
            Column::figures("CPU"),
            Column::figures("Served"),
            Column::figures("Time").meaning("without nested interrupts"),
            Column::figures("Longest, µs").meaning("with nested interrupts"),
        ],
        rows,
        sortable: true,
    })
}
