//! The figures of a phase as a table, and the worst samples of all.

use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format;
use punctual_bundle::summary::{PhaseSummary, SeriesSummary, Summary, WorstSample};
use punctual_core::{Fact, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// Names are given at most this many columns.
const NAME_WIDTH: usize = 28;
/// How many of the worst samples are shown.
const WORST_SHOWN: usize = 5;

pub fn write(out: &mut Page, phase: &PhaseSummary) {
    heading(out, phase);
    if phase.series.is_empty() {
        out.line("  no series was recorded");
        return;
    }
    let percentiles = percentile_columns(&phase.series);
    let mut rows = Vec::new();
    for series in &phase.series {
        rows.push(row(out, series, &percentiles));
        rows.extend(corrected_row(out, series, &percentiles));
    }
    let left_out = table::write(out, columns(&percentiles), rows);
    footnotes(out, phase, &percentiles, &left_out);
}

fn heading(out: &mut Page, phase: &PhaseSummary) {
    out.gap();
    let mut parts = vec![out.paint(
        Tone::Strong,
        &format!("phase {}", format::clipped(&phase.name, NAME_WIDTH, out.options.ascii)),
    )];
    parts.extend(phase.duration.map(|ns| format::duration(Nanos(ns))));
    match &phase.cpu_load {
        Fact::Known(load) => parts.push(format!("CPU {} busy", format::percent(load.all.busy))),
        Fact::Unavailable(why) => {
            parts.push(format!("CPU load unavailable: {}", format::plain(why)))
        }
        Fact::NotAsked => {}
    }
    parts.push(format!("latencies in {}", out.unit()));
    let line = parts.join(out.either(" · ", ", "));
    out.line(&line);
}

/// The percentiles that at least one series supports, ascending.
fn percentile_columns(series: &[SeriesSummary]) -> Vec<String> {
    let all: BTreeSet<&String> = series.iter().flat_map(|s| s.percentiles.keys()).collect();
    let mut all: Vec<String> = all.into_iter().cloned().collect();
    // By number; a hostile summary may hold any text.
    all.sort_by(|a, b| a.parse().unwrap_or(f64::NAN).total_cmp(&b.parse().unwrap_or(f64::NAN)));
    all
}

/// The highest percentiles and those in common use stay longest.
fn columns(percentiles: &[String]) -> Vec<Column> {
    let mut columns = vec![
        Column::left("series", 0),
        Column::right("CPU", 6),
        Column::left("scheduling", 8),
        Column::right("samples", 0),
        Column::right("min", 0),
        Column::right("mean", 2),
    ];
    columns.extend(percentiles.iter().map(|p| {
        let dispensable = match p.as_str() {
            "75" | "95" => 9,
            "90" => 7,
            "99.99" => 5,
            "50" => 3,
            "99.9" => 4,
            _ => 1,
        };
        Column::right(&format!("p{}", format::clipped(p, 8, false)), dispensable)
    }));
    columns.extend([
        Column::right("max", 0),
        Column::right("stddev", 8),
        Column::right("overruns", 0),
        Column::right("lost", 0),
    ]);
    columns
}

fn row(out: &Page, series: &SeriesSummary, percentiles: &[String]) -> Vec<Cell> {
    let figure = |ns: Option<f64>| {
        Cell::plain(ns.map_or(out.either("–", "-").to_owned(), |ns| out.latency(ns)))
    };
    let whole = |ns: Option<i64>| figure(ns.map(|ns| ns as f64));
    let count = |n: u64| Cell(format::count(n), if n > 0 { Tone::Uncertain } else { Tone::Plain });
    let losses = |n: Option<u64>| n.map_or(Cell("unknown".into(), Tone::Faint), count);
    let scheduling_tone = if series.real_time { Tone::Plain } else { Tone::Bad };
    let mut cells = vec![
        Cell::plain(format::clipped(&series.name, NAME_WIDTH, out.options.ascii)),
        Cell::plain(format::clipped(&series.cpus, 12, out.options.ascii)),
        Cell(format::clipped(&series.scheduling, 18, out.options.ascii), scheduling_tone),
        Cell::plain(format::count(series.count)),
        whole(series.min),
        figure(series.mean),
    ];
    cells.extend(percentiles.iter().map(|p| whole(series.percentiles.get(p).copied())));
    let Cell(max, _) = whole(series.max);
    cells.extend([
        Cell(max, Tone::Strong),
        figure(series.stddev),
        losses(series.overruns),
        losses(series.lost),
    ]);
    cells
}

/// The second, labelled view, where it differs.
fn corrected_row(out: &Page, series: &SeriesSummary, percentiles: &[String]) -> Option<Vec<Cell>> {
    let corrected = series.corrected.as_ref()?;
    let faint = |text: String| Cell(text, Tone::Faint);
    let mut cells = vec![
        faint(out.either("  └ corrected", "  - corrected").to_owned()),
        faint(String::new()),
        faint(String::new()),
        faint(format::count(corrected.count)),
        faint(String::new()),
        faint(out.latency(corrected.mean)),
    ];
    let figure = |p: &String| {
        corrected.percentiles.get(p).map_or(String::new(), |ns| out.latency(*ns as f64))
    };
    cells.extend(percentiles.iter().map(|p| faint(figure(p))));
    cells.extend((0..4).map(|_| faint(String::new())));
    Some(cells)
}

fn footnotes(out: &mut Page, phase: &PhaseSummary, percentiles: &[String], left_out: &[String]) {
    let needs: BTreeMap<&String, &u64> =
        phase.series.iter().flat_map(|s| &s.unsupported_percentiles).collect();
    if !needs.is_empty() && phase.series.iter().any(|s| s.count > 0) {
        let mut needs: Vec<(&String, &u64)> = needs.into_iter().collect();
        needs.sort_by_key(|(_, n)| **n);
        let wants: Vec<String> = needs
            .iter()
            .map(|(p, n)| format!("p{} {}", format::plain(p), format::count(**n)))
            .collect();
        let missing = if percentiles.is_empty() { "percentiles" } else { "further percentiles" };
        let text = format!("too few samples for {missing}; needed: {}", wants.join(", "));
        out.paragraph("  ", "  ", Tone::Faint, &text);
    }
    if phase.series.iter().any(|s| s.corrected.is_some()) {
        let text = "corrected: with the latencies that a periodic task would have seen in the \
                    periods missed while late (coordinated omission)";
        out.paragraph("  ", "  ", Tone::Faint, text);
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

/// The worst samples of the run, whatever their phase.
pub fn write_worst(out: &mut Page, summary: &Summary) {
    let all = summary.phases.iter().flat_map(|phase| {
        phase
            .series
            .iter()
            .flat_map(move |series| series.worst.iter().map(move |sample| (phase, series, sample)))
    });
    let mut all: Vec<(&PhaseSummary, &SeriesSummary, &WorstSample)> = all.collect();
    all.sort_by_key(|(_, _, sample)| std::cmp::Reverse(sample.latency));
    all.truncate(WORST_SHOWN);
    if all.is_empty() {
        return;
    }
    let heading = format!("worst samples ({})", out.unit());
    out.heading(&heading);
    let columns = vec![
        Column::right("latency", 0),
        Column::left("series", 0),
        Column::right("CPU", 1),
        Column::right("sample", 0),
        Column::right("due at (s on its clock)", 2),
    ];
    let rows = all.into_iter().map(|(phase, series, sample)| {
        let name = format!("{}/{}", phase.name, series.name);
        vec![
            Cell(out.latency(sample.latency as f64), Tone::Strong),
            Cell::plain(format::clipped(&name, 2 * NAME_WIDTH, out.options.ascii)),
            Cell::plain(sample.cpu.to_string()),
            Cell::plain(format::count(sample.seq)),
            Cell::plain(seconds(sample.due)),
        ]
    });
    let rows = rows.collect();
    table::write(out, columns, rows);
}

/// Nanoseconds as exact seconds.
fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let size = ns.unsigned_abs();
    format!("{sign}{}.{:09}", size / 1_000_000_000, size % 1_000_000_000)
}
