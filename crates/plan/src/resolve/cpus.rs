//! CPUs: checks that the requested ones exist, and are on one side of a partition.

use super::{Resolver, place_or};
use crate::context::ResolveContext;
use crate::experiment::PartitionResolved;
use crate::plan::PartitionPlan;
use crate::problem::ProblemKind;
use crate::text::{At, Setting, Span};
use crate::words::CpuChoice;
use punctual_core::CpuSet;

/// The online CPUs, divided by a partition.
pub(super) struct Zones {
    pub(super) online: CpuSet,
    /// The isolated CPUs; empty without a partition.
    pub(super) partition: CpuSet,
    /// All others.
    pub(super) housekeeping: CpuSet,
}

impl Zones {
    pub(super) fn new(context: &ResolveContext, partition: Option<&PartitionPlan>) -> Zones {
        let partition = partition.map(|partition| partition.cpus.clone()).unwrap_or_default();
        Zones {
            online: context.online.clone(),
            housekeeping: context.online.difference(&partition),
            partition,
        }
    }
    /// The default CPUs to measure.
    pub(super) fn measured_cpus(&self) -> &CpuSet {
        if self.partition.is_empty() { &self.online } else { &self.partition }
    }
}

impl Resolver<'_> {
    pub(super) fn resolve_partition(&mut self) -> Option<PartitionPlan> {
        let spec = self.experiment.partition.as_ref()?;
        let written = spec.cpus.as_ref()?;
        let cpus = self.that_are_there(&written.value, written.span);
        if self.context.online.is_subset(&cpus) {
            let message = format!("a partition of CPUs {cpus} leaves no CPU for everything else");
            let help = format!("leave one of {} out", self.context.online);
            self.note_error(ProblemKind::NotHere, written.span, message, &help);
        }
        Some(spec.to_plan(PartitionResolved { cpus }))
    }

    /// The CPUs of a setting, or the default.
    pub(super) fn resolve_cpus(&mut self, choice: &Setting<CpuChoice>, default: &CpuSet) -> CpuSet {
        match choice {
            None => default.clone(),
            Some(At { value: CpuChoice::All, .. }) => self.context.online.clone(),
            Some(At { value: CpuChoice::Listed(cpus), span }) => self.that_are_there(cpus, *span),
        }
    }

    /// Rejects tasks with CPUs on both sides of a partition: a cpuset keeps a task on one side.
    pub(super) fn check_one_side(
        &mut self,
        choice: &Setting<CpuChoice>,
        section: Span,
        cpus: &CpuSet,
        zones: &Zones,
    ) {
        if !zones.partition.is_empty()
            && !cpus.is_subset(&zones.partition)
            && !cpus.is_subset(&zones.housekeeping)
        {
            let message = format!(
                "CPUs {cpus} are partly in the partition ({}) and partly not",
                zones.partition
            );
            let help = format!("choose from {} or from {}", zones.partition, zones.housekeeping);
            self.note_error(ProblemKind::Combination, place_or(choice, section), message, &help);
        }
    }

    /// The CPUs of the controller thread: as written, else those without a measure, else all
    /// outside a partition.
    pub(super) fn controller_cpus(
        &mut self,
        choice: &Setting<CpuChoice>,
        zones: &Zones,
        measured: &CpuSet,
    ) -> CpuSet {
        let quiet = zones.housekeeping.difference(measured);
        let default = if quiet.is_empty() { &zones.housekeeping } else { &quiet };
        let cpus = self.resolve_cpus(choice, default);
        self.check_one_side(choice, Span::default(), &cpus, zones);
        cpus
    }

    /// The online ones of these CPUs; the others are errors.
    fn that_are_there(&mut self, cpus: &CpuSet, span: Span) -> CpuSet {
        let online = &self.context.online;
        let missing = cpus.difference(&self.context.present.union(online));
        let offline = cpus.difference(online).difference(&missing);
        let format_cpus = |set: &CpuSet| {
            if set.len() == 1 { format!("CPU {set}") } else { format!("CPUs {set}") }
        };
        let verb = |set: &CpuSet, one: &str, many: &str| {
            if set.len() == 1 { one.to_owned() } else { many.to_owned() }
        };
        if !missing.is_empty() {
            let message =
                format!("{} {} not exist", format_cpus(&missing), verb(&missing, "does", "do"));
            let help = format!("this system has CPUs {}", self.context.present.union(online));
            self.note_error(ProblemKind::NotHere, span, message, &help);
        }
        if !offline.is_empty() {
            let message =
                format!("{} {} offline", format_cpus(&offline), verb(&offline, "is", "are"));
            let help = format!("online are {}", self.context.online);
            self.note_error(ProblemKind::NotHere, span, message, &help);
        }
        cpus.intersection(&self.context.online)
    }
}
