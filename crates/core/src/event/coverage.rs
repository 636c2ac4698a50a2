//! The coverage and the losses of a recording.

use super::{Group, TraceMoment};
use crate::{CpuSet, Finding, Missing, MonotonicNs, Nanos};
use serde::{Deserialize, Serialize};

/// A source with its losses: a CPU's buffer, or a thread's ring of test points.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RecordedSource {
    /// `cpu 3`, or `points of name (tid 123)`.
    pub name: String,
    /// The CPU, for kernel events.
    pub cpu: Option<u16>,
    /// Events that the recording holds.
    pub recorded: u64,
    /// Events dropped for lack of space, or overwritten before they were read.
    pub lost: u64,
    /// Unfinished records, as their writer died.
    pub torn: u64,
}

/// The coverage of a recording. Events of other groups than `groups` were not requested, and may
/// have occurred.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Recorded {
    /// The recorder of kernel events: `BPF (BTF tracepoints)`, `BPF (tracepoint formats)`,
    /// `tracefs`, or `none`.
    pub recorder: String,
    pub began: MonotonicNs,
    pub ended: MonotonicNs,
    /// The recorded CPUs.
    pub cpus: CpuSet,
    pub groups: Vec<Group>,
    /// Tracepoints recorded by name, in the order of [`super::Names::tracepoints`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracepoints: Vec<String>,
    /// The processes that events were limited to; empty: all.
    pub pids: Vec<u32>,
    /// The task names that events were limited to; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comms: Vec<String>,
    /// The sources with their events and losses.
    pub sources: Vec<RecordedSource>,
    /// Other gaps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// The maximum error of a test point's instant on CLOCK_MONOTONIC; `None` without test points.
    pub point_clock_error: Option<Nanos>,
    /// Limits of this recording, as findings with remedies.
    pub findings: Vec<Finding>,
    /// Moments that a trace of another tool points at itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moments: Vec<TraceMoment>,
}

impl Recorded {
    /// A recording without kernel events that begins and ends at this instant.
    pub fn without_events(recorder: &str, at: MonotonicNs) -> Recorded {
        Recorded { recorder: recorder.to_owned(), began: at, ended: at, ..Recorded::default() }
    }
    /// The total number of missing events.
    pub fn lost_count(&self) -> u64 {
        self.sources.iter().fold(0, |sum, source| sum.saturating_add(source.lost))
    }
    /// All gaps: lost events and others.
    pub fn missing_parts(&self) -> Vec<Missing> {
        let count = self.lost_count();
        let states = |one: &Missing| matches!(one, Missing::Lost { .. });
        let lost = Missing::Lost { count, at_least: false };
        let lost = (count > 0 && !self.missing.iter().any(states)).then_some(lost);
        lost.into_iter().chain(self.missing.iter().cloned()).collect()
    }
    /// Whether this group was recorded: only then does an absent event mean that it did not occur.
    pub fn has_group(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }
}
