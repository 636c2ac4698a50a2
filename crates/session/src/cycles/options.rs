//! Options for the cycles of a program.

use punctual_core::cycle::CycleKind;
use punctual_core::{Nanos, SeriesRequirement};
use punctual_record::Backend;
use std::collections::BTreeMap;

/// Options for the cycles of a program.
#[derive(Default)]
pub struct CycleOptions {
    /// The phase of its series.
    pub phase: String,
    /// How its threads are watched: [`Backend::Auto`], or one of [`Backend::Btf`] and
    /// [`Backend::Tracefs`] alone.
    pub backend: Backend,
    /// No stack of the program is copied: no source lines.
    pub without_lines: bool,
    /// Only threads of this name.
    pub thread: Option<String>,
    pub kind: Option<CycleKind>,
    /// Response times above this are counted.
    pub deadline: Option<Nanos>,
    /// A response time above this ends it.
    pub stop_above: Option<Nanos>,
    pub requirements: Vec<SeriesRequirement>,
    /// Further details of each thread in the bundle.
    pub details: BTreeMap<String, String>,
}

/// The kind of workload in its series.
pub(crate) const WORKLOAD: &str = punctual_bundle::meta::ATTACHED_WORKLOAD;
