//! The table of figures and the table of their details.

use super::gather::{PageSeries, SeriesLine};
use super::table::Table;
use super::text::{clip_text, format_name};
use crate::format::{count_text, micros_f64};
use crate::tables::figures::{self, FigureRow, is_detail};
use crate::tables::requirements::{self, RequirementRow};
use crate::tables::{self, Cell, Column, percentiles};
use punctual_bundle::state::ThreadUsage;
use punctual_bundle::summary::SeriesSummary;
use punctual_core::Fact;

/// The figures, one row per series.
pub(crate) fn latency_table(content: &PageSeries<'_>, cut_off: impl Fn(usize) -> bool) -> Table {
    let rows = content.lines.iter().map(|line| FigureRow {
        name: line.full.clone(),
        summary: line.summary,
        cut_off: cut_off(content.groups[line.group].bundle),
    });
    figures::figure_table("latency", rows).into()
}

/// Each requirement on each series, open ones first; `None` if there are none.
pub(crate) fn requirement_table(content: &PageSeries<'_>) -> Option<Table> {
    let requirement_rows = content.lines.iter().flat_map(|line| {
        let stated = |result| RequirementRow { series: line.full.clone(), result };
        line.summary.requirements.iter().map(stated)
    });
    requirements::requirement_table(requirement_rows.collect()).unless_empty().map(Table::from)
}

/// Details for judging the figures, one row per series, at most `rows`.
pub(crate) fn detail_table(content: &PageSeries<'_>, rows: usize) -> Table {
    let keys = content.lines.iter().flat_map(|line| {
        let s = line.summary;
        s.percentiles.keys().chain(s.unsupported_percentiles.keys())
    });
    let mut common = percentiles::sort_keys(keys);
    common.retain(|p| is_detail(p));
    let mut columns = vec![Column::text("series", 0), Column::figures("period", 0)];
    columns.extend(common.iter().map(|p| percentiles::percentile_column(p)));
    columns.extend([
        Column::figures("mode", 0)
            .with_meaning("the fullest bin of the exact histogram, its lower edge"),
        Column::figures("bin width", 0),
        Column::figures("beyond range", 0)
            .with_meaning("samples beyond the exact histogram; every other figure includes them"),
        Column::figures("negative", 0).with_meaning("events that came before they were due"),
        Column::figures("expected", 0).with_meaning("samples + skipped + lost"),
        Column::figures("kept", 0).with_meaning("samples in the log"),
        Column::figures("page faults", 0)
            .with_meaning("of the measuring thread: without and with I/O"),
        Column::figures("preempted", 0)
            .with_meaning("involuntary context switches of the measuring thread"),
        Column::text("workload", 0).with_wide_texts(),
    ]);
    let row = |line: &SeriesLine<'_>| {
        let s = line.summary;
        let mut cells = vec![Cell::name(&line.full), period_cell(s)];
        let percentile_cell = |p: &String| {
            percentiles::percentile_cell(p, &s.percentiles, &s.unsupported_percentiles, s.count)
        };
        cells.extend(common.iter().map(percentile_cell));
        cells.extend([
            modes_cell(s),
            Cell::from(tables::Value::Span(s.resolution)),
            Cell::loss_count(Some(s.above_range)),
            Cell::loss_count(Some(s.negative)),
            s.expected.map_or_else(|| tables::Value::Unknown.into(), Cell::count),
            Cell::count(line.series.state.samples_kept),
            usage_cell(s, |u| {
                let total_faults = u.minor_faults.saturating_add(u.major_faults) as f64;
                let words =
                    format!("{} + {}", count_text(u.minor_faults), count_text(u.major_faults));
                Cell::figure(total_faults, words)
            }),
            usage_cell(s, |u| Cell::loss_count(Some(u.involuntary_switches))),
            Cell::text(format_workload(line)),
        ]);
        cells
    };
    let mut table = tables::Table::new("details of the series", columns)
        .with_rows(content.lines.iter().map(row))
        .with_row_limit(0, rows);
    table.sortable = content.lines.len() > 1;
    table.into()
}

fn usage_cell(s: &SeriesSummary, of: fn(&ThreadUsage) -> Cell) -> Cell {
    match &s.usage {
        Fact::Known(usage) => of(usage),
        Fact::Unavailable(why) => Cell::absent("unavailable").with_exact(why),
        Fact::NotAsked => Cell::absent("not recorded"),
    }
}

fn period_cell(s: &SeriesSummary) -> Cell {
    s.period.map_or_else(|| Cell::absent("none"), |ns| tables::Value::Span(ns).into())
}

fn modes_cell(s: &SeriesSummary) -> Cell {
    let Some(first) = s.modes.first() else { return Cell::absent("none") };
    let shown_modes: Vec<String> =
        s.modes.iter().take(3).map(|ns| micros_f64(*ns as f64)).collect();
    let ellipsis = if s.modes.len() > 3 { ", …" } else { "" };
    Cell::figure(*first as f64, shown_modes.join(", ") + ellipsis)
}

/// `timer: CLOCK_MONOTONIC, method absolute`.
fn format_workload(line: &SeriesLine<'_>) -> String {
    let meta = &line.series.meta;
    // The period has a column of its own.
    let details = meta
        .details
        .iter()
        .filter(|(key, _)| *key != "period")
        .take(8)
        .map(|(key, value)| format!(", {} {}", format_name(key), format_name(value)));
    clip_text(
        &format!("{}: {}{}", format_name(&meta.workload), meta.clock, details.collect::<String>()),
        240,
    )
}
