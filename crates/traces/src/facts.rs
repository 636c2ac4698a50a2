//! The properties of a trace: format, content and gaps.

use crate::{TraceClock, TraceFormat};
use punctual_core::event::{Names, Recorded};
use std::collections::BTreeMap;

/// The finding for system calls without names, as their numbers are of a machine that the trace
/// does not name.
pub const NO_MACHINE: &str = "trace-machine";

/// The number of records of a tracepoint in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TracepointCount {
    pub seen: u64,
    /// Records that became an event.
    pub used: u64,
}

/// The properties of a trace. Names and counts are complete once its last event is read.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceFacts {
    /// The recognised format.
    pub format: TraceFormat,
    /// The producer as named in the file: `trace-cmd 3.1.6`.
    pub producer: Option<String>,
    /// The traced kernel: `6.12.0-rt`.
    pub kernel: Option<String>,
    /// Its architecture: `x86_64`.
    pub machine: Option<String>,
    pub clock: TraceClock,
    /// Its coverage and losses, in the form of our own recordings. `groups` has those whose events
    /// are present or were enabled, so that an absence is significant.
    pub recorded: Recorded,
    /// The names of the numbers in its events.
    pub names: Names,
    /// Its tracepoints by name, `SYSTEM:NAME` if the file has the system. An enabled tracepoint
    /// without records is listed with count 0.
    pub tracepoints: BTreeMap<String, TracepointCount>,
    /// Whether the file states which tracepoints were enabled. Otherwise a tracepoint without
    /// records may have been enabled or not.
    pub states_enabled: bool,
    /// Unreadable lines or records.
    pub unreadable: u64,
    /// Records older than an event already returned, which were dropped.
    pub out_of_order: u64,
}

impl TraceFacts {
    /// Whether the tracepoint was enabled: it has records, or the file says so.
    pub fn has_tracepoint(&self, name: &str) -> bool {
        self.tracepoints.keys().any(|full| full.rsplit(':').next() == Some(name))
    }
}
