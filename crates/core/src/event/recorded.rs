//! What a recording is of, and what it lost.

use super::Group;
use crate::{CpuSet, Finding, Missing, MonotonicNs, Nanos};
use serde::{Deserialize, Serialize};

/// What one source gave and what it lost: a CPU's buffer, or a thread's ring of test points.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Source {
    /// `cpu 3`, or `points of name (tid 123)`.
    pub name: String,
    /// The CPU, for kernel events.
    pub cpu: Option<u16>,
    /// Events that the recording holds.
    pub recorded: u64,
    /// Events that found no space, or were overwritten before they were read.
    pub lost: u64,
    /// Records begun and never ended, because their writer died in them.
    pub torn: u64,
}

/// What a recording covers. What is not in `groups` was not requested, which is not the same as
/// "did not happen".
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Recorded {
    /// How kernel events came: `BPF (BTF tracepoints)`, `BPF (tracepoint formats)`, `tracefs`, or
    /// `none`.
    pub recorder: String,
    pub began: MonotonicNs,
    pub ended: MonotonicNs,
    /// CPUs whose events were recorded.
    pub cpus: CpuSet,
    pub groups: Vec<Group>,
    /// Tracepoints that were recorded by name, in the order of [`super::Names::tracepoints`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracepoints: Vec<String>,
    /// The processes that events were limited to; empty: all.
    pub pids: Vec<u32>,
    /// The task names that events were limited to; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comms: Vec<String>,
    /// What came from where and what was lost.
    pub sources: Vec<Source>,
    /// What else is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// How far an instant of a test point may be off CLOCK_MONOTONIC; `None` without test points.
    pub point_clock_error: Option<Nanos>,
    /// Limits of this recording, as findings with remedies.
    pub findings: Vec<Finding>,
}

impl Recorded {
    /// A recording without kernel events, which begins and ends at this instant.
    pub fn without_events(recorder: &str, at: MonotonicNs) -> Recorded {
        Recorded {
            recorder: recorder.to_owned(),
            began: at,
            ended: at,
            cpus: CpuSet::new(),
            groups: Vec::new(),
            tracepoints: Vec::new(),
            pids: Vec::new(),
            comms: Vec::new(),
            sources: Vec::new(),
            missing: Vec::new(),
            point_clock_error: None,
            findings: Vec::new(),
        }
    }
    /// All events that are missing.
    pub fn lost(&self) -> u64 {
        self.sources.iter().fold(0, |sum, source| sum.saturating_add(source.lost))
    }
    /// All that may hide something: lost events, and what else is missing.
    pub fn missing(&self) -> Vec<Missing> {
        let count = self.lost();
        let states = |one: &Missing| matches!(one, Missing::Lost { .. });
        let lost = Missing::Lost { count, at_least: false };
        let lost = (count > 0 && !self.missing.iter().any(states)).then_some(lost);
        lost.into_iter().chain(self.missing.iter().cloned()).collect()
    }
    /// Whether this group was recorded: only then is an absent event one that did not happen.
    pub fn covers(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }
}
