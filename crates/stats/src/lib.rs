#![forbid(unsafe_code)]
//! Statistics of measurements, as pure functions: figures, verdicts on requirements, findings about
//! the figures, and data for plots. The same functions serve a current run and an old bundle.

pub mod account;
pub mod baseline;
pub mod calibration;
pub mod cluster;
pub mod coincidence;
pub mod compare;
pub mod counts;
mod dispersion;
pub mod distribution;
pub mod divergence;
pub mod effect;
pub mod exclude;
pub mod findings;
mod heat;
pub mod lab;
mod observed;
pub mod percentiles;
pub(crate) mod probability;
pub mod published;
pub mod random;
pub mod requirements;
pub mod summary;
pub mod tail;
#[cfg(test)]
mod testing;
pub mod timeline;
pub mod tune;
pub mod validity;
mod verdict;
pub mod violation;

pub use distribution::Distribution;
pub use random::Random;
#[cfg(test)]
pub(crate) use summary::summarize_series;
pub use summary::{PhaseView, RunView, SeriesView, phase_views, summarize_bundle, summarize_run};
pub use timeline::{Bucket, Timeline};
pub use validity::Validity;
pub use violation::{Violation, first_violation};

/// The middle of values in ascending order, or the mean of the two that are; `None` without any.
pub fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    Some(f64::midpoint(sorted[last / 2], sorted[sorted.len() / 2]))
}
