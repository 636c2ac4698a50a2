//! The loads on the system, and the CPU load.

use super::gather::PageSeries;
use super::table::{Cell, Column, Table};
use super::text::{clip, name};
use super::{ReportInput, text};
use crate::format::{counted, percent};
use crate::tables::lab_work::rate;
use punctual_bundle::PhaseMeta;
use punctual_bundle::load::{LoadWork, Shares};
use punctual_core::Fact;
use std::collections::BTreeSet;

/// With more CPUs than this, only the total and the busiest are shown.
const MAX_CPUS: usize = 16;
/// Rows beyond this are only counted.
const MAX_ROWS: usize = 200;

fn phases<'a>(inputs: &'a [ReportInput<'a>]) -> impl Iterator<Item = &'a PhaseMeta> {
    inputs.iter().flat_map(|input| input.bundle.phases.iter().map(|phase| &phase.meta))
}

/// CPU load, one row per phase; `None` if not recorded.
pub fn cpu_load(inputs: &[ReportInput<'_>], content: &PageSeries<'_>) -> Option<Table> {
    if phases(inputs).all(|phase| phase.cpu_load == Fact::NotAsked) {
        return None;
    }
    let known = phases(inputs).filter_map(|phase| phase.cpu_load.known());
    let cpus: BTreeSet<u32> = known.flat_map(|load| load.cpus.keys().copied()).collect();
    let each = cpus.len() <= MAX_CPUS;
    let mut columns = vec![Column::text("Phase"), Column::figures("All CPUs")];
    if each {
        columns.extend(cpus.iter().map(|cpu| Column::figures(&format!("CPU {cpu}"))));
    } else {
        columns.push(Column::figures("Busiest"));
    }
    let row = |(phase, group): (&PhaseMeta, &super::gather::PhaseGroup)| {
        let mut cells = vec![Cell::text(&group.name)];
        match &phase.cpu_load {
            Fact::Known(load) => {
                cells.push(shares(&load.all));
                let of = |cpu: &u32| load.cpus.get(cpu).map_or(Cell::missing("unknown"), shares);
                if each {
                    cells.extend(cpus.iter().map(of));
                } else {
                    let busiest = load.cpus.iter().max_by(|a, b| a.1.busy.total_cmp(&b.1.busy));
                    cells.push(busiest.map_or(Cell::missing("unknown"), |(cpu, s)| Cell {
                        text: format!("CPU {cpu}: {}", percent(s.busy)),
                        ..shares(s)
                    }));
                }
            }
            Fact::Unavailable(why) => cells.push(Cell::missing("unavailable").sub(name(why))),
            Fact::NotAsked => cells.push(Cell::missing("not recorded")),
        }
        cells.resize_with(columns.len(), Cell::default);
        cells
    };
    let rows = phases(inputs).zip(&content.groups).map(row).collect();
    Some(Table {
        caption: "Mean CPU load of each phase: the share of time that was not idle.".to_owned(),
        columns,
        rows,
        sortable: false,
    })
}

fn shares(shares: &Shares) -> Cell {
    let parts = [("irq", shares.interrupts), ("steal", shares.steal)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, share)| *share >= 0.0005)
        .map(|(what, share)| format!("{what} {}", percent(*share)))
        .collect();
    let sub = (!parts.is_empty()).then(|| parts.join(", "));
    Cell {
        sub,
        bar: Some(shares.busy.clamp(0.0, 1.0)),
        ..Cell::figure(percent(shares.busy), shares.busy)
    }
}

/// `pipe 236,903 (2 runs)`
fn work(of: &LoadWork) -> String {
    let rate = of.per_second().map_or("?".to_owned(), rate);
    format!("{} {rate} ({})", name(&of.what), counted(of.runs, "run"))
}

/// The commands that ran as loads; `None` if there were none.
pub fn commands(inputs: &[ReportInput<'_>], content: &PageSeries<'_>) -> Option<Table> {
    let mut columns = vec![
        Column::text("Load"),
        Column::text("Phase"),
        Column::text("Command"),
        Column::text("CPUs"),
        Column::figures("Starts").meaning("number of starts"),
        Column::figures("Failures").meaning("how often it exited with a failure"),
    ];
    let counts =
        phases(inputs).flat_map(|phase| &phase.loads).any(|load| !load.work.is_not_asked());
    if counts {
        columns.push(Column::text("Work a second"));
    }
    let all = || {
        phases(inputs)
            .zip(&content.groups)
            .flat_map(|(phase, group)| phase.loads.iter().map(move |load| (group, load)))
    };
    let row = |(group, load): (&super::gather::PhaseGroup, &punctual_bundle::meta::LoadMeta)| {
        let mut row = vec![
            Cell::text(name(&load.name)),
            Cell::text(&group.name),
            Cell {
                code: true,
                ..Cell::text(clip(
                    &text::visible(&shell_words::join(load.argv.iter().take(256))),
                    1_000,
                ))
            },
            Cell::text(clip(&load.cpus.to_string(), 60)),
            Cell::count(load.starts),
            Cell {
                class: if load.failures > 0 { "alert" } else { "" },
                ..Cell::count(load.failures)
            },
        ];
        row.extend(counts.then(|| match &load.work {
            Fact::Known(all) => Cell::text(all.iter().map(work).collect::<Vec<_>>().join(", ")),
            Fact::Unavailable(why) => Cell::missing("not known").sub(name(why)),
            Fact::NotAsked => Cell::missing("not asked"),
        }));
        row
    };
    let more = all().count().saturating_sub(MAX_ROWS);
    let more = if more > 0 { format!(" {more} more are not shown.") } else { String::new() };
    let rows: Vec<Vec<Cell>> = all().take(MAX_ROWS).map(row).collect();
    (!rows.is_empty()).then(|| Table {
        caption: format!("Loads.{more}"),
        columns,
        rows,
        sortable: false,
    })
}
