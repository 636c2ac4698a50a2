//! The programming of a thread, from its cycles and settings: the input of the lint.

use super::facts;
use punctual_core::cycle::{Cycle, CycleKind, DescriptorSet};
use punctual_core::{Finding, Nanos};
use punctual_explain::cycles::lint::{
    CycleStatistics, HostFacts, Subject, ThreadFacts, is_meant_real_time, lint_thread,
};
use punctual_explain::cycles::{CallNames, Inferred, MeasuredCycle};
use punctual_host::files::{Files, Root};
use punctual_sys::attributes::{self, Scheduling};
use std::collections::BTreeMap;

/// Observations of a thread while it is measured.
#[derive(Default)]
pub struct Practice {
    seen: CycleStatistics,
    facts: ThreadFacts,
    scheduling: Option<Scheduling>,
    /// The open flags of its descriptors at their first write.
    files: BTreeMap<u32, String>,
    looked_at: DescriptorSet,
}

impl Practice {
    /// Looks up descriptors that the thread wrote to, while they are open.
    pub fn look_at(&mut self, record: &Cycle) {
        let new = DescriptorSet(record.written.0 & !self.looked_at.0);
        self.looked_at = self.looked_at.union(new);
        for descriptor in new.iter().filter(|one| *one < DescriptorSet::OTHERS) {
            let link = format!("/proc/{}/fd/{descriptor}", record.tid);
            if let Ok(target) = Root::from_system().read_link(&link) {
                self.files.insert(descriptor, target);
            }
        }
    }

    pub fn add(&mut self, measured: &MeasuredCycle) {
        self.seen.add(measured);
    }

    /// Reads the settings again; those of an ended thread stay.
    pub(crate) fn refresh_facts(&mut self, tid: u32, inferred: &Inferred, calls: &CallNames) {
        if let Some(facts) = facts::of_thread(&Root::from_system(), tid, &inferred.site, calls) {
            // The refusal stays: a running program's limits and place change rarely.
            let is_real_time =
                facts.policy.known_value().is_some_and(|policy| policy.is_real_time());
            let refused = match self.scheduling {
                None if is_real_time => None,
                None => facts::real_time_refusal(&Root::from_system(), tid),
                Some(_) => self.facts.refused.take(),
            };
            self.facts = ThreadFacts { refused, ..facts };
            self.scheduling = attributes::read_scheduling(tid as i32).ok().or(self.scheduling);
        }
    }

    /// Whether the thread runs under a real-time policy.
    pub fn is_real_time(&self) -> bool {
        self.facts.policy.known_value().is_some_and(|policy| policy.is_real_time())
    }

    /// The findings about the thread `subject`. `others_are`: another one with cycles is real-time.
    pub(crate) fn into_findings(
        mut self,
        subject: &str,
        kind: CycleKind,
        has_deadline: bool,
        others_are: bool,
        host: &HostFacts,
        culprits: &[(String, Nanos)],
    ) -> Vec<Finding> {
        let policy = self.facts.policy.known_value().copied();
        if !is_meant_real_time(kind, policy, has_deadline, others_are, self.facts.asks) {
            return Vec::new();
        }
        self.facts.files = std::mem::take(&mut self.files);
        if let Some(own) = &self.scheduling {
            let awaited = self.seen.awaited.keys().copied();
            self.facts.lower = facts::lower_kernel_threads(&Root::from_system(), awaited, own);
        }
        let input = Subject { kind, seen: &self.seen, facts: &self.facts, host, culprits };
        lint_thread(subject, &input)
    }
}
