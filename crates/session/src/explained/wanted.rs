//! The request of an explanation.

use punctual_core::Nanos;

/// The samples to explain.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Series, by name or `phase/name`; none: all.
    pub series: Vec<String>,
    /// Pairs and functions of a recording instead of series.
    pub pairs: Vec<String>,
    /// The maximum number of samples of each series; `None`: all.
    pub worst: Option<usize>,
    pub min_latency: Nanos,
}

impl Wanted {
    /// Whether a series is requested.
    pub fn wants(&self, phase: &str, series: &str) -> bool {
        self.series.is_empty() || self.series.iter().any(|name| is_called(name, phase, series))
    }
}

/// Whether a series has this name, with or without its phase.
pub fn is_called(name: &str, phase: &str, series: &str) -> bool {
    name == series
        || name.strip_suffix(series).and_then(|rest| rest.strip_suffix('/')) == Some(phase)
}
