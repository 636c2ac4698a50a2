//! The figures of a phase as a table, and the worst samples of all.

use super::paint::{TextPage, Tone};
use super::table;
use crate::format;
use crate::tables::figures::{self, FigureRow};
use crate::tables::{Cell, Column, Table};
use punctual_bundle::meta::is_latency;
use punctual_bundle::summary::{PhaseSummary, SeriesSummary, Summary, WorstSample};
use punctual_core::{Fact, Nanos};

const NAME_WIDTH: usize = 28;
/// The number of worst samples shown.
const WORST_SHOWN: usize = 5;

pub fn write(out: &mut TextPage, phase: &PhaseSummary) {
    write_heading(out, phase);
    if phase.series.is_empty() {
        out.push_line("  no series was recorded");
        return;
    }
    let rows = phase.series.iter().map(|series| FigureRow {
        name: series.name.clone(),
        summary: series,
        cut_off: false,
    });
    table::write_body(out, &figures::figure_table("latency", rows));
}

fn write_heading(out: &mut TextPage, phase: &PhaseSummary) {
    out.push_gap();
    let name = format!("phase {}", format::clip_name(&phase.name, NAME_WIDTH, out.options.ascii));
    let mut parts: Vec<String> =
        phase.duration.map(|ns| format::duration_text(Nanos(ns))).into_iter().collect();
    match &phase.cpu_load {
        Fact::Known(load) => {
            parts.push(format!("CPU {} busy", format::percent_text(load.all.busy)))
        }
        Fact::Unavailable(why) => {
            parts.push(format!("CPU load unavailable: {}", format::escape_unsafe(why)))
        }
        Fact::NotAsked => {}
    }
    parts.push(format!("latencies in {}", out.unit_name()));
    let between = out.choose_spelling(" · ", ", ");
    let (rest, painted) = (parts.join(between), out.paint(Tone::Strong, &name));
    let width = format::width_of(&name) + format::width_of(between) + format::width_of(&rest);
    if width > out.options.width {
        out.push_line(&painted);
        out.push_line(&format!("  {rest}"));
    } else {
        out.push_line(&format!("{painted}{between}{rest}"));
    }
}

/// The worst samples of the run over all phases.
pub(crate) fn write_worst(out: &mut TextPage, summary: &Summary) {
    let all_samples = summary.phases.iter().flat_map(|phase| {
        phase
            .series
            .iter()
            .filter(|series| is_latency(&series.workload, &series.name))
            .flat_map(move |series| series.worst.iter().map(move |sample| (phase, series, sample)))
    });
    let mut worst_samples: Vec<(&PhaseSummary, &SeriesSummary, &WorstSample)> =
        all_samples.collect();
    worst_samples.sort_by_key(|(_, _, sample)| std::cmp::Reverse(sample.latency));
    worst_samples.truncate(WORST_SHOWN);
    if worst_samples.is_empty() {
        return;
    }
    let columns = vec![
        Column::figures("latency", 0),
        Column::text("series", 0).at_most(2 * NAME_WIDTH),
        Column::figures("CPU", 1),
        Column::figures("sample", 0),
        Column::figures("due at (s on its clock)", 2),
    ];
    let rows = worst_samples.into_iter().map(|(phase, series, sample)| {
        vec![
            Cell::time(sample.latency).with_strong_tone(),
            Cell::name(format!("{}/{}", phase.name, series.name)),
            Cell::count(sample.cpu.into()),
            Cell::count(sample.seq),
            Cell::figure(sample.due as f64 / 1e9, format_seconds(sample.due)),
        ]
    });
    table::write_section(out, &Table::new("worst samples", columns).with_rows(rows));
}

/// Nanoseconds as exact seconds.
fn format_seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let size = ns.unsigned_abs();
    format!("{sign}{}.{:09}", size / 1_000_000_000, size % 1_000_000_000)
}
