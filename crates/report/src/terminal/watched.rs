//! A run in progress as its bundle shows it.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::table;
use crate::format::{duration_text, escape_unsafe};
use crate::tables::{Cell, Column, Table};
use punctual_bundle::{Bundle, Outcome, Series};
use punctual_core::Nanos;
use punctual_stats::{Distribution, first_violation, percentiles, phase_views};

/// The state of the run.
#[derive(Clone, PartialEq, Debug)]
pub enum RunState {
    /// It last saved its figures this short time ago.
    GoesOn(Nanos),
    /// It has no ending, and has saved nothing for this time.
    Silent(Option<Nanos>),
    /// It has no ending, and its writer is gone.
    Killed,
    Ended(Outcome),
}

/// Its name and state, one line per series, and violated requirements.
pub fn show_watched(bundle: &Bundle, state: &RunState, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    let name = out.paint(Tone::Strong, &escape_unsafe(&bundle.manifest.experiment));
    out.push_line(&format!("{name}  {}", describe_state(bundle, state)));
    let columns = vec![
        Column::text("series (latencies in µs)", 0).with_shrinking(),
        Column::figures("samples", 1),
        Column::figures("lost", 2),
        Column::figures("overruns", 4),
        Column::figures("p50", 5),
        Column::figures("p99", 3),
        Column::figures("p99.9", 4),
        Column::figures("max", 0),
        Column::figures("max, last 5 min", 6),
    ];
    let rows = bundle.all_series().map(|(phase, series)| series_row(phase, series));
    let table =
        Table::new("series", columns).with_rows(rows).with_row_limit(usize::MAX, usize::MAX);
    table::write_body(&mut out, &table);
    for phase in phase_views(bundle) {
        for view in &phase.series {
            if let Some(found) = first_violation(view, false) {
                let text = format!(
                    "violated  {}/{}: {}",
                    escape_unsafe(&phase.meta.name),
                    escape_unsafe(&view.meta.name),
                    found.requirement
                );
                let text = out.paint(Tone::Bad, &text);
                out.push_line(&text);
            }
        }
    }
    for damage in &bundle.damage {
        out.push_line(&escape_unsafe(damage));
    }
    out.finish()
}

fn describe_state(bundle: &Bundle, state: &RunState) -> String {
    let since = bundle.manifest.created.strftime("%Y-%m-%d %H:%M:%S");
    match state {
        RunState::GoesOn(ago) => {
            format!("running since {since} UTC; saved {:.1} s ago", ago.as_secs_f64())
        }
        RunState::Silent(Some(ago)) => format!(
            "started {since} UTC; no recorded end, and nothing saved for {}: it was killed, or the \
             system stopped",
            duration_text(*ago)
        ),
        RunState::Silent(None) => format!("started {since} UTC; nothing saved yet"),
        RunState::Killed => {
            format!("began {since} UTC; KILLED: no end was recorded, and the writer is gone")
        }
        RunState::Ended(outcome) => {
            format!("{}; began {since} UTC", escape_unsafe(&outcome.to_string()))
        }
    }
}

fn series_row(phase: &str, series: &Series) -> Vec<Cell> {
    let data = &series.state.data;
    let distribution = Distribution::from_series(data);
    let time_cell =
        |latency: Option<Nanos>| Cell::time_or(latency.map(|ns| ns.ns() as f64), "none");
    let percentile = |p: f64| {
        let supported = data.sample_count() >= percentiles::samples_needed(p);
        time_cell(distribution.percentile(p).filter(|_| supported))
    };
    let last = series.load_lines().ok().and_then(|lines| lines.last()?.max);
    vec![
        Cell::text(format!("{phase}/{}", series.meta.name)),
        Cell::count(data.sample_count()),
        Cell::count(data.losses.dropped),
        Cell::count(data.losses.skipped),
        percentile(50.0),
        percentile(99.0),
        percentile(99.9),
        time_cell(data.longest_latency()).with_strong_tone(),
        time_cell(last),
    ]
}
