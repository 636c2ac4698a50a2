//! The loads on the system, and the CPU load.

use super::gather::PageSeries;
use super::table::{Cell, Column, Table};
use super::text::{clip_text, format_name};
use super::{ReportInput, text};
use crate::format::{count_with_noun, percent_text};
use crate::tables::lab_work::format_rate;
use punctual_bundle::PhaseMeta;
use punctual_bundle::load::{LoadWork, Shares};
use punctual_core::Fact;
use std::collections::BTreeSet;

/// With more CPUs than this, only the total and the busiest are shown.
const MAX_CPUS: usize = 16;
/// Rows beyond this are only counted.
const MAX_ROWS: usize = 200;

fn phase_metas<'a>(inputs: &'a [ReportInput<'a>]) -> impl Iterator<Item = &'a PhaseMeta> {
    inputs.iter().flat_map(|input| input.bundle.phases.iter().map(|phase| &phase.meta))
}

/// CPU load, one row per phase; `None` if not recorded.
pub fn cpu_load(inputs: &[ReportInput<'_>], content: &PageSeries<'_>) -> Option<Table> {
    if phase_metas(inputs).all(|phase| phase.cpu_load == Fact::NotAsked) {
        return None;
    }
    let known_loads = phase_metas(inputs).filter_map(|phase| phase.cpu_load.known_value());
    let cpus: BTreeSet<u32> = known_loads.flat_map(|load| load.cpus.keys().copied()).collect();
    let has_cpu_columns = cpus.len() <= MAX_CPUS;
    let mut columns = vec![Column::text("Phase"), Column::figures("All CPUs")];
    if has_cpu_columns {
        columns.extend(cpus.iter().map(|cpu| Column::figures(&format!("CPU {cpu}"))));
    } else {
        columns.push(Column::figures("Busiest"));
    }
    let row = |(phase, group): (&PhaseMeta, &super::gather::PhaseGroup)| {
        let mut cells = vec![Cell::text(&group.name)];
        match &phase.cpu_load {
            Fact::Known(load) => {
                cells.push(share_cell(&load.all));
                let cell_of_cpu = |cpu: &u32| {
                    load.cpus.get(cpu).map_or(Cell::missing_value("unknown"), share_cell)
                };
                if has_cpu_columns {
                    cells.extend(cpus.iter().map(cell_of_cpu));
                } else {
                    let busiest = load.cpus.iter().max_by(|a, b| a.1.busy.total_cmp(&b.1.busy));
                    cells.push(busiest.map_or(Cell::missing_value("unknown"), |(cpu, s)| Cell {
                        text: format!("CPU {cpu}: {}", percent_text(s.busy)),
                        ..share_cell(s)
                    }));
                }
            }
            Fact::Unavailable(why) => {
                cells.push(Cell::missing_value("unavailable").sub(format_name(why)))
            }
            Fact::NotAsked => cells.push(Cell::missing_value("not recorded")),
        }
        cells.resize_with(columns.len(), Cell::default);
        cells
    };
    let rows = phase_metas(inputs).zip(&content.groups).map(row).collect();
    Some(Table {
        caption: "Mean CPU load of each phase: the share of time that was not idle.".to_owned(),
        columns,
        rows,
        sortable: false,
    })
}

fn share_cell(shares: &Shares) -> Cell {
    let parts = [("irq", shares.interrupts), ("steal", shares.steal)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, share)| *share >= 0.0005)
        .map(|(what, share)| format!("{what} {}", percent_text(*share)))
        .collect();
    let sub = (!parts.is_empty()).then(|| parts.join(", "));
    Cell {
        sub,
        bar: Some(shares.busy.clamp(0.0, 1.0)),
        ..Cell::figure(percent_text(shares.busy), shares.busy)
    }
}

/// `pipe 236,903 (2 runs)`
fn format_work(of: &LoadWork) -> String {
    let rate = of.per_second().map_or("?".to_owned(), format_rate);
    format!("{} {rate} ({})", format_name(&of.what), count_with_noun(of.runs, "run"))
}

/// The commands that ran as loads; `None` if there were none.
pub(crate) fn command_table(inputs: &[ReportInput<'_>], content: &PageSeries<'_>) -> Option<Table> {
    let mut columns = vec![
        Column::text("Load"),
        Column::text("Phase"),
        Column::text("Command"),
        Column::text("CPUs"),
        Column::figures("Starts").with_meaning("number of starts"),
        Column::figures("Failures").with_meaning("how often it exited with a failure"),
    ];
    let counts =
        phase_metas(inputs).flat_map(|phase| &phase.loads).any(|load| !load.work.is_not_asked());
    if counts {
        columns.push(Column::text("Work a second"));
    }
    let all_loads = || {
        phase_metas(inputs)
            .zip(&content.groups)
            .flat_map(|(phase, group)| phase.loads.iter().map(move |load| (group, load)))
    };
    let row = |(group, load): (&super::gather::PhaseGroup, &punctual_bundle::meta::LoadMeta)| {
        let mut row = vec![
            Cell::text(format_name(&load.name)),
            Cell::text(&group.name),
            Cell {
                code: true,
                ..Cell::text(clip_text(
                    &text::escape_hidden(&shell_words::join(load.argv.iter().take(256))),
                    1_000,
                ))
            },
            Cell::text(clip_text(&load.cpus.to_string(), 60)),
            Cell::count(load.starts),
            Cell {
                class: if load.failures > 0 { "alert" } else { "" },
                ..Cell::count(load.failures)
            },
        ];
        row.extend(counts.then(|| match &load.work {
            Fact::Known(all) => {
                Cell::text(all.iter().map(format_work).collect::<Vec<_>>().join(", "))
            }
            Fact::Unavailable(why) => Cell::missing_value("not known").sub(format_name(why)),
            Fact::NotAsked => Cell::missing_value("not asked"),
        }));
        row
    };
    let further_loads = all_loads().count().saturating_sub(MAX_ROWS);
    let further_note = if further_loads > 0 {
        format!(" {further_loads} more are not shown.")
    } else {
        String::new()
    };
    let rows: Vec<Vec<Cell>> = all_loads().take(MAX_ROWS).map(row).collect();
    (!rows.is_empty()).then(|| Table {
        caption: format!("Loads.{further_note}"),
        columns,
        rows,
        sortable: false,
    })
}
