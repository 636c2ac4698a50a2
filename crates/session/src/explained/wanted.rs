//! Which samples are to be explained.

use punctual_core::Nanos;

/// Which samples are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Series, by name or `phase/name`; none: all.
    pub series: Vec<String>,
    /// Pairs and functions of a recording instead of series.
    pub pairs: Vec<String>,
    /// At most so many of each series; `None`: as many as there are.
    pub worst: Option<usize>,
    pub min_latency: Nanos,
}

impl Wanted {
    /// Whether a series is wanted.
    pub fn wants(&self, phase: &str, series: &str) -> bool {
        self.series.is_empty() || self.series.iter().any(|name| is_called(name, phase, series))
    }
}

/// Whether a series has this name, alone or behind that of its phase.
pub fn is_called(name: &str, phase: &str, series: &str) -> bool {
    name == series
        || name.strip_suffix(series).and_then(|rest| rest.strip_suffix('/')) == Some(phase)
}
