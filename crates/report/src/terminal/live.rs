//! The plain lines of a run whose output is not a terminal: one line per thread at each refresh, in
//! the columns of systress.

use crate::format;
use punctual_core::{Nanos, SeriesData};

/// The line of a thread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LiveFigures {
    /// The index of the series in its phase.
    pub index: usize,
    pub tid: i32,
    pub samples: u64,
    /// The smallest latency; like the others `None` before the first sample.
    pub min: Option<Nanos>,
    pub max: Option<Nanos>,
    pub current: Option<Nanos>,
    /// The mean in ns.
    pub mean: Option<f64>,
}

impl LiveFigures {
    /// The figures of a series, whose newest sample is not among them.
    pub fn from_series(
        index: usize,
        tid: Option<i32>,
        data: &SeriesData,
        current: Option<Nanos>,
    ) -> LiveFigures {
        LiveFigures {
            index,
            tid: tid.unwrap_or_default(),
            samples: data.sample_count(),
            min: data.min,
            max: data.max,
            current,
            mean: data.mean(),
        }
    }
}

/// The heading of [`live_line`]s; latencies are in µs.
pub fn live_header() -> String {
    format!(
        "{:>5} {:>8} {:>12} {:>9} {:>9} {:>9} {:>9}  name (latencies in us)",
        "Index", "TID", "Samples", "L_min", "L_max", "L_cur", "L_avg"
    )
}

/// One line for a thread.
pub fn live_line(figures: &LiveFigures, name: &str) -> String {
    let cell = |latency: Option<Nanos>| latency.map_or("-".to_owned(), format::micros_text);
    let mean = figures.mean.map_or("-".to_owned(), format::micros_f64);
    format!(
        "{:>5} {:>8} {:>12} {:>9} {:>9} {:>9} {:>9}  {}",
        figures.index,
        figures.tid,
        figures.samples,
        cell(figures.min),
        cell(figures.max),
        cell(figures.current),
        mean,
        format::escape_unsafe(name)
    )
}
