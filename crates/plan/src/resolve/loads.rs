//! Loads: finds the program, and determines policy and output.

use super::cpus::Zones;
use super::{Resolver, place_or};
use crate::escape::clip_text;
use crate::experiment::{LoadResolved, LoadSpec};
use crate::plan::{LoadPlan, SchedulingSpec};
use crate::problem::{Problem, ProblemKind};
use crate::text::Span;
use crate::words::LoadOutput;
use punctual_core::{Policy, Priority};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

impl Resolver<'_> {
    pub(super) fn resolve_loads(&mut self, zones: &Zones) -> Vec<LoadPlan> {
        let specs = &self.experiment.loads;
        let names =
            self.resolve_names("load", specs.iter().map(|spec| (&spec.name, program_name(spec))));
        specs.iter().zip(names).map(|(spec, name)| self.resolve_load(spec, name, zones)).collect()
    }

    fn resolve_load(&mut self, spec: &LoadSpec, name: String, zones: &Zones) -> LoadPlan {
        let argv = spec.command.as_ref().map(|command| command.value.clone()).unwrap_or_default();
        let cpus = self.resolve_cpus(&spec.cpus, &zones.housekeeping);
        self.check_one_side(&spec.cpus, spec.span, &cpus, zones);
        spec.to_plan(LoadResolved {
            name,
            program: self.resolve_program(spec),
            argv,
            cpus,
            scheduling: self.load_scheduling(spec),
        })
    }

    fn resolve_program(&mut self, spec: &LoadSpec) -> PathBuf {
        let Some(command) = &spec.command else { return Default::default() };
        let Some(word) = command.value.first() else { return Default::default() };
        self.find_program(word, command.span)
    }

    /// The file of a program; empty if there is none.
    pub(super) fn find_program(&mut self, word: &str, span: Span) -> PathBuf {
        match (self.context.find_program)(word) {
            Ok(program) => program,
            Err(why) => {
                let message = format!("cannot run `{}`: {why}", clip_text(word));
                let help = "install it, or write the path of the program";
                self.note_error(ProblemKind::NotHere, span, message, help);
                Default::default()
            }
        }
    }

    fn load_scheduling(&mut self, spec: &LoadSpec) -> SchedulingSpec {
        let policy = spec.policy();
        if !policy.has_priority() {
            self.refuse_priority(&spec.priority, policy);
        }
        let nice = spec.nice();
        if !matches!(policy, Policy::Other | Policy::Batch) && spec.nice.is_some() {
            let message = format!("a nice value has no effect with {policy}");
            self.note_error(
                ProblemKind::Combination,
                place_or(&spec.nice, spec.span),
                message,
                "leave `nice` out",
            );
        }
        match policy {
            Policy::Fifo => SchedulingSpec::Fifo(spec.priority()),
            Policy::Rr => SchedulingSpec::Rr(spec.priority()),
            Policy::Other => SchedulingSpec::Other(nice),
            Policy::Batch => SchedulingSpec::Batch(nice),
            Policy::Idle => SchedulingSpec::Idle,
            Policy::Deadline => {
                let message = "a load cannot have SCHED_DEADLINE";
                let help = "a deadline task may not fork (sched(7)): choose fifo, rr, other, \
                            batch or idle";
                self.note_error(
                    ProblemKind::Combination,
                    place_or(&spec.policy, spec.span),
                    message,
                    help,
                );
                SchedulingSpec::Idle
            }
        }
    }

    pub(super) fn refuse_priority(
        &mut self,
        priority: &crate::text::Setting<Priority>,
        policy: Policy,
    ) {
        if let Some(priority) = priority {
            let message = format!("{policy} has no priority");
            let help = "choose the policy fifo or rr, or leave the priority out";
            self.note_error(ProblemKind::Combination, priority.span, message, help);
        }
    }

    /// Rejects two loads of a phase that write to the same file and would overwrite each other.
    pub(super) fn check_outputs(&mut self, loads: &[(&LoadSpec, &LoadPlan)]) {
        let mut seen_paths: HashMap<&Path, &LoadSpec> = HashMap::new();
        for (spec, load) in loads {
            for (setting, output) in [(&spec.stdout, &load.stdout), (&spec.stderr, &load.stderr)] {
                let LoadOutput::File(path) = output else { continue };
                // Writes to a device do not overwrite each other.
                if path.starts_with("/dev") {
                    continue;
                }
                let first = *seen_paths.entry(path).or_insert(spec);
                if !std::ptr::eq(first, *spec) {
                    let message = format!("two loads of a phase write to {}", path.display());
                    let problem = Problem::error(
                        ProblemKind::Combination,
                        Some(place_or(setting, spec.span)),
                        message,
                    );
                    let problem = problem
                        .with_related(first.span, "so does this one")
                        .with_help("give each a file of its own");
                    self.note_problem(problem.into_warning());
                }
            }
        }
    }
}

/// The program's name without its directory.
fn program_name(spec: &LoadSpec) -> String {
    let program = spec.command.as_ref().and_then(|command| command.value.first());
    let base = program.and_then(|program| program.rsplit('/').find(|part| !part.is_empty()));
    base.unwrap_or("load").to_owned()
}
