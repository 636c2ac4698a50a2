//! What is asked of an attachment.

use crate::baseline::Baseline;
use crate::cycles::CycleOptions;
use crate::metrics::MetricsFile;
use punctual_bundle::PhaseMeta;
use punctual_core::Nanos;
use punctual_sys::clock;

/// What the user asked for.
pub struct Options {
    /// Of the cycles, in the phase [`PHASE`].
    pub cycles: CycleOptions,
    pub duration: Option<Nanos>,
    /// Whether the worst are explained.
    pub explain: bool,
    /// Whether what measuring costs is measured first.
    pub calibrate: bool,
    /// Where figures are written to while they are measured.
    pub metrics: Option<MetricsFile>,
    /// What sh(1) runs when a requirement is violated.
    pub on_violation: Option<String>,
    /// The runs that it is held against.
    pub baseline: Option<Baseline>,
}

/// The phase of a bundle of this kind.
pub const PHASE: &str = "attached";

/// The phase, of which nothing is known yet but its start.
pub(super) fn begun_phase() -> PhaseMeta {
    PhaseMeta {
        started_monotonic: clock::monotonic().ns(),
        ..PhaseMeta::new(PHASE, jiff::Timestamp::now())
    }
}
