//! What is asked of an attachment.

use crate::metrics::MetricsFile;
use punctual_core::cycle::CycleKind;
use punctual_core::{Nanos, SeriesRequirement};

/// What the user asked for.
pub struct Options {
    /// What releases a cycle.
    pub kind: Option<CycleKind>,
    /// Response times above this are counted.
    pub deadline: Option<Nanos>,
    /// A response time above this ends it.
    pub stop_above: Option<Nanos>,
    /// How long.
    pub duration: Option<Nanos>,
    /// What must hold.
    pub requirements: Vec<SeriesRequirement>,
    /// Whether the worst are explained.
    pub explain: bool,
    /// Where figures are written to while they are measured.
    pub metrics: Option<MetricsFile>,
    /// What sh(1) runs when a requirement is violated.
    pub on_violation: Option<String>,
}

/// The phase of a bundle of this kind.
pub const PHASE: &str = "attached";
/// The kind of workload in its series.
pub const WORKLOAD: &str = punctual_bundle::meta::ATTACHED_WORKLOAD;
