//! A run in progress as its bundle shows it.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::table;
use crate::format::{duration, plain};
use crate::tables::{Cell, Column, Table};
use punctual_bundle::{Bundle, Outcome, Series};
use punctual_core::Nanos;
use punctual_stats::{Distribution, first_violation, percentiles, views};

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
pub fn watched(bundle: &Bundle, state: &RunState, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    let name = out.paint(Tone::Strong, &plain(&bundle.manifest.experiment));
    out.line(&format!("{name}  {}", describe(bundle, state)));
    let columns = vec![
        Column::text("series (latencies in µs)", 0).shrinking(),
        Column::figures("samples", 1),
        Column::figures("lost", 2),
        Column::figures("overruns", 4),
        Column::figures("p50", 5),
        Column::figures("p99", 3),
        Column::figures("p99.9", 4),
        Column::figures("max", 0),
        Column::figures("max, last 5 min", 6),
    ];
    let rows = bundle.series().map(|(phase, series)| row(phase, series));
    let table = Table::new("series", columns).rows(rows).shown(usize::MAX, usize::MAX);
    table::body(&mut out, &table);
    for phase in views(bundle) {
        for view in &phase.series {
            if let Some(found) = first_violation(view, false) {
                let text = format!(
                    "violated  {}/{}: {}",
                    plain(&phase.meta.name),
                    plain(&view.meta.name),
                    found.requirement
                );
                let text = out.paint(Tone::Bad, &text);
                out.line(&text);
            }
        }
    }
    for damage in &bundle.damage {
        out.line(&plain(damage));
    }
    out.finish()
}

fn describe(bundle: &Bundle, state: &RunState) -> String {
    let since = bundle.manifest.created.strftime("%Y-%m-%d %H:%M:%S");
    match state {
        RunState::GoesOn(ago) => {
            format!("running since {since} UTC; saved {:.1} s ago", ago.as_secs_f64())
        }
        RunState::Silent(Some(ago)) => format!(
            "started {since} UTC; no recorded end, and nothing saved for {}: it was killed, or the \
             system stopped",
            duration(*ago)
        ),
        RunState::Silent(None) => format!("started {since} UTC; nothing saved yet"),
        RunState::Killed => {
            format!("began {since} UTC; KILLED: no end was recorded, and the writer is gone")
        }
        RunState::Ended(outcome) => format!("{}; began {since} UTC", plain(&outcome.to_string())),
    }
}

fn row(phase: &str, series: &Series) -> Vec<Cell> {
    let data = &series.state.data;
    let distribution = Distribution::of(data);
    let shown = |latency: Option<Nanos>| Cell::time_or(latency.map(|ns| ns.ns() as f64), "none");
    let percentile = |p: f64| {
        let supported = data.count() >= percentiles::needed(p);
        shown(distribution.percentile(p).filter(|_| supported))
    };
    let last = series.lines().ok().and_then(|lines| lines.last()?.max);
    vec![
        Cell::text(format!("{phase}/{}", series.meta.name)),
        Cell::count(data.count()),
        Cell::count(data.losses.dropped),
        Cell::count(data.losses.skipped),
        percentile(50.0),
        percentile(99.0),
        percentile(99.9),
        shown(data.longest()).strong(),
        shown(last),
    ]
}
