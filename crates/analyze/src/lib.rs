#![forbid(unsafe_code)]
//! Statistics of measurements, as pure functions: figures, verdicts on requirements, findings about
//! the figures, and data for plots. The same functions serve a current run and an old bundle.

pub mod account;
pub mod answer;
pub mod baseline;
pub mod calibration;
pub mod compare;
pub mod counts;
pub mod cycles;
pub mod distribution;
pub mod divergence;
pub mod entries;
pub mod equivalence;
pub mod event_counts;
pub mod exact;
pub mod explain;
pub mod explained;
pub mod findings;
pub mod functions;
pub mod gaps;
pub mod incidents;
pub mod intervals;
pub mod lab;
pub mod moments;
mod observed;
pub mod occupancy;
pub mod pairs;
pub mod percentiles;
pub mod probes;
pub mod published;
pub mod requirements;
pub mod scopes;
pub mod stats;
pub mod steal;
pub mod summary;
pub mod tail;
#[cfg(test)]
mod testing;
pub mod threads;
pub mod timeline;
pub mod truth;
pub mod tune;
pub mod validity;
pub mod values;
mod verdict;
pub mod violation;

pub use distribution::Distribution;
pub use event_counts::EventCounts;
pub use explained::{Explained, Explanations};
pub use summary::{
    PhaseView, RunView, SeriesView, summarize, summarize_run, summarize_series, views,
};
pub use timeline::{Bucket, Timeline};
pub use validity::Validity;
pub use violation::{Violation, first_violation};
