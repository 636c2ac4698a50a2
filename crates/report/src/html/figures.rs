//! The table of figures and the table of their details.

use super::gather::{PageSeries, SeriesLine};
use super::table::Table;
use super::text::{clip, name};
use crate::format::{count, micros_f64};
use crate::tables::figures::{self, FigureRow, is_detail};
use crate::tables::requirements::{self, RequirementRow};
use crate::tables::{self, Cell, Column, percentiles};
use punctual_bundle::state::ThreadUsage;
use punctual_bundle::summary::SeriesSummary;
use punctual_core::Fact;

/// The figures, one row per series.
pub fn summary(content: &PageSeries<'_>, cut_off: impl Fn(usize) -> bool) -> Table {
    let rows = content.lines.iter().map(|line| FigureRow {
        name: line.full.clone(),
        summary: line.summary,
        cut_off: cut_off(content.groups[line.group].bundle),
    });
    figures::table("latency", rows).into()
}

/// Each requirement on each series, open ones first; `None` if there are none.
pub fn requirements(content: &PageSeries<'_>) -> Option<Table> {
    let all = content.lines.iter().flat_map(|line| {
        let stated = |result| RequirementRow { series: line.full.clone(), result };
        line.summary.requirements.iter().map(stated)
    });
    requirements::each(all.collect()).unless_empty().map(Table::from)
}

/// Details for judging the figures, one row per series, at most `rows`.
pub fn details(content: &PageSeries<'_>, rows: usize) -> Table {
    let keys = content.lines.iter().flat_map(|line| {
        let s = line.summary;
        s.percentiles.keys().chain(s.unsupported_percentiles.keys())
    });
    let mut common = percentiles::sorted(keys);
    common.retain(|p| is_detail(p));
    let mut columns = vec![Column::text("series", 0), Column::figures("period", 0)];
    columns.extend(common.iter().map(|p| percentiles::column(p)));
    columns.extend([
        Column::figures("mode", 0)
            .meaning("the fullest bin of the exact histogram, its lower edge"),
        Column::figures("bin width", 0),
        Column::figures("beyond range", 0)
            .meaning("samples beyond the exact histogram; every other figure includes them"),
        Column::figures("negative", 0).meaning("events that came before they were due"),
        Column::figures("expected", 0).meaning("samples + skipped + lost"),
        Column::figures("kept", 0).meaning("samples in the log"),
        Column::figures("page faults", 0).meaning("of the measuring thread: without and with I/O"),
        Column::figures("preempted", 0)
            .meaning("involuntary context switches of the measuring thread"),
        Column::text("workload", 0).wide(),
    ]);
    let row = |line: &SeriesLine<'_>| {
        let s = line.summary;
        let mut cells = vec![Cell::name(&line.full), period(s)];
        let of =
            |p: &String| percentiles::cell(p, &s.percentiles, &s.unsupported_percentiles, s.count);
        cells.extend(common.iter().map(of));
        cells.extend([
            modes(s),
            Cell::from(tables::Value::Span(s.resolution)),
            Cell::losses(Some(s.above_range)),
            Cell::losses(Some(s.negative)),
            s.expected.map_or_else(|| tables::Value::Unknown.into(), Cell::count),
            Cell::count(line.series.state.samples_kept),
            usage(s, |u| {
                let both = u.minor_faults.saturating_add(u.major_faults) as f64;
                let words = format!("{} + {}", count(u.minor_faults), count(u.major_faults));
                Cell::figure(both, words)
            }),
            usage(s, |u| Cell::losses(Some(u.involuntary_switches))),
            Cell::text(workload(line)),
        ]);
        cells
    };
    let mut table = tables::Table::new("details of the series", columns)
        .rows(content.lines.iter().map(row))
        .shown(0, rows);
    table.sortable = content.lines.len() > 1;
    table.into()
}

fn usage(s: &SeriesSummary, of: fn(&ThreadUsage) -> Cell) -> Cell {
    match &s.usage {
        Fact::Known(usage) => of(usage),
        Fact::Unavailable(why) => Cell::absent("unavailable").exact(why),
        Fact::NotAsked => Cell::absent("not recorded"),
    }
}

fn period(s: &SeriesSummary) -> Cell {
    s.period.map_or_else(|| Cell::absent("none"), |ns| tables::Value::Span(ns).into())
}

fn modes(s: &SeriesSummary) -> Cell {
    let Some(first) = s.modes.first() else { return Cell::absent("none") };
    let shown: Vec<String> = s.modes.iter().take(3).map(|ns| micros_f64(*ns as f64)).collect();
    let more = if s.modes.len() > 3 { ", …" } else { "" };
    Cell::figure(*first as f64, shown.join(", ") + more)
}

/// `timer: CLOCK_MONOTONIC, method absolute`.
fn workload(line: &SeriesLine<'_>) -> String {
    let meta = &line.series.meta;
    // The period has a column of its own.
    let details = meta
        .details
        .iter()
        .filter(|(key, _)| *key != "period")
        .take(8)
        .map(|(key, value)| format!(", {} {}", name(key), name(value)));
    clip(&format!("{}: {}{}", name(&meta.workload), meta.clock, details.collect::<String>()), 240)
}
