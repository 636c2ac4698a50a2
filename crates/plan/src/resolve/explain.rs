//! `[explain]`: the kernel events that explain the worst samples.

use super::{Resolver, place_or};
use crate::experiment::{ExplainResolved, ExplainSpec};
use crate::kinds::WorkloadKind;
use crate::plan::{ExplainPlan, PhasePlan};
use crate::problem::ProblemKind;
use punctual_core::event::Group;
use std::collections::BTreeSet;

impl ExplainPlan {
    /// The default for measures of these kinds.
    pub fn with_default_events(kinds: impl IntoIterator<Item = WorkloadKind>) -> ExplainPlan {
        ExplainSpec::default().to_plan(usual_events(kinds))
    }

    /// The default for the measures of these phases.
    pub fn usual_of(phases: &[PhasePlan]) -> ExplainPlan {
        ExplainPlan::with_default_events(kinds_of(phases))
    }
}

fn kinds_of(phases: &[PhasePlan]) -> impl Iterator<Item = WorkloadKind> {
    let measures = phases.iter().flat_map(|phase| &phase.measures);
    // Entries are explained by their own events.
    measures.map(|measure| measure.workload.kind()).filter(|kind| *kind != WorkloadKind::Entries)
}

fn usual_events(kinds: impl IntoIterator<Item = WorkloadKind>) -> ExplainResolved {
    let kinds: BTreeSet<WorkloadKind> = kinds.into_iter().collect();
    let timers_only = kinds.iter().eq([&WorkloadKind::Timer]);
    ExplainResolved { events: explaining_groups(&kinds, timers_only), timers_only }
}

/// The groups of events that show the causes of samples of these kinds. Scheduling and interrupts
/// always belong to them; the waits of a measure depend on its kind. Beside timers, only those
/// system calls matter that an interrupt finds running, which the flight recorder shows with it:
/// one event less in the measured wake-up.
fn explaining_groups(kinds: &BTreeSet<WorkloadKind>, timers_only: bool) -> Vec<Group> {
    let mut groups: BTreeSet<Group> =
        Group::USUAL.into_iter().chain([Group::Hrtimer, Group::Fault, Group::Idle]).collect();
    groups.extend(kinds.iter().flat_map(|kind| kind.explained_by()));
    // Recording entry and exit lengthens each system call of a CPU: too much if calls are measured.
    if !timers_only && !kinds.iter().any(|kind| kind.times_calls()) {
        groups.insert(Group::Syscall);
    }
    groups.into_iter().collect()
}

impl Resolver<'_> {
    pub(super) fn resolve_explain(&mut self, phases: &[PhasePlan]) -> Option<ExplainPlan> {
        let spec = self.experiment.explain.as_ref()?;
        let mut resolved = usual_events(kinds_of(phases));
        if let Some(written) = &spec.events {
            let mut events: Vec<Group> = written.value.iter().map(|at| at.value).collect();
            events.sort();
            events.dedup();
            // A plan that is written out names the default ones.
            resolved.timers_only &= events == resolved.events;
            resolved.events = events;
        }
        let plan = spec.to_plan(resolved);
        if !plan.events.contains(&Group::Sched) {
            let message = "without the events of `sched` the recording does not show what ran";
            let span = place_or(&spec.events, spec.span);
            self.note_error(
                ProblemKind::Combination,
                span,
                message,
                "add `sched`, or leave `events` out",
            );
        }
        Some(plan)
    }
}
