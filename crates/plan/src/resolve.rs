//! Resolves an experiment to a plan: fills in every default, resolves every name, and checks
//! everything that can be checked before the run.

mod cpus;
mod explain;
mod frames;
mod loads;
mod measures;
mod names;
mod phases;
mod program;
mod published;
mod safety;
mod target;
mod timer;

use crate::context::ResolveContext;
use crate::experiment::{Experiment, RecordResolved, Settings, SettingsResolved};
use crate::limits::MAX_NAME_CHARS;
use crate::plan::{Plan, RecordPlan};
use crate::problem::{Problem, ProblemKind, Problems};
use crate::text::{Setting, Span};
use crate::words::RecordedEvents;
use cpus::Zones;
pub(crate) use measures::format_bytes;
use punctual_core::CpuSet;
use punctual_core::event::{Group, NamedTracepoint};
pub(crate) use target::resolve_target;

/// A plan, and its warnings.
#[derive(Clone, PartialEq, Debug)]
pub struct Resolved {
    /// The plan to run.
    pub plan: Plan,
    /// Warnings, never errors.
    pub warnings: Problems,
}

/// Fills in every default and checks the experiment against the system in `context`.
///
/// # Errors
/// All errors that prevent the run at once, with the warnings. If [`Problems::force_suffices`],
/// [`ResolveContext::force`] would accept the experiment.
pub fn resolve_experiment(
    experiment: &Experiment,
    context: &ResolveContext,
) -> Result<Resolved, Problems> {
    let mut problems = Problems::new(experiment.source.clone());
    experiment.warnings.iter().cloned().for_each(|warning| problems.push(warning));
    let mut resolver = Resolver { experiment, context, problems };
    let plan = resolver.resolve_plan();
    let mut problems = resolver.problems;
    problems.sort();
    if problems.error_count() > 0 {
        Err(problems)
    } else {
        Ok(Resolved { plan, warnings: problems })
    }
}

/// Works out a plan; on an error, notes it and continues with the nearest valid value.
struct Resolver<'a> {
    experiment: &'a Experiment,
    context: &'a ResolveContext<'a>,
    problems: Problems,
}

impl Resolver<'_> {
    fn resolve_plan(&mut self) -> Plan {
        if self.context.online.is_empty() {
            self.note_problem(Problem::error(
                ProblemKind::NotHere,
                None,
                "it is not known which CPUs of this system are online",
            ));
        }
        let partition = self.resolve_partition();
        let zones = Zones::new(self.context, partition.as_ref());
        let loads = self.resolve_loads(&zones);
        let phases = self.phase_frames(&loads);
        let measures = self.resolve_measures(&zones, &phases);
        let phases = self.resolve_phases(phases, &measures, &loads);
        let settings = &self.experiment.settings;
        let name = value_or(&settings.name, self.file_stem());
        let measured =
            measures.iter().fold(CpuSet::new(), |all, measure| all.union(&measure.plan.cpus));
        let mut plan = settings.to_plan(SettingsResolved {
            controller_cpus: self.controller_cpus(&settings.cpus, &zones, &measured),
            output: self.resolve_output(settings, &name),
            target: resolve_target(self.experiment.target.as_ref(), &mut self.problems),
            partition,
            record: self.resolve_record(&zones),
            explain: self.resolve_explain(&phases),
            published: self.resolve_published(&phases),
            phases,
            name,
            forever: false,
        });
        if settings.forever()
            && let Err(why) = plan.run_forever()
        {
            let help = "leave `forever` out, or all but one `[[phase]]` and every `program`";
            let span = place_or(&settings.forever, settings.span);
            self.note_error(ProblemKind::Combination, span, why, help);
        }
        plan
    }

    fn resolve_record(&mut self, zones: &Zones) -> Option<RecordPlan> {
        let spec = self.experiment.record.as_ref()?;
        let (mut events, mut tracepoints) = (Group::USUAL.to_vec(), Vec::new());
        if let Some(written) = &spec.events {
            events.clear();
            for at in &written.value {
                match &at.value {
                    RecordedEvents::Group(group) => events.push(*group),
                    RecordedEvents::Tracepoint(named) => tracepoints.push(named.clone()),
                }
            }
            events.sort();
            events.dedup();
            tracepoints.sort();
            tracepoints.dedup();
            if tracepoints.len() > NamedTracepoint::MAX {
                let message =
                    format!("at most {} tracepoints are recorded by name", NamedTracepoint::MAX);
                self.note_error(
                    ProblemKind::Value,
                    written.span,
                    message,
                    "record groups of events instead",
                );
            }
        }
        let cpus = self.resolve_cpus(&spec.cpus, &zones.online);
        let plan = spec.to_plan(RecordResolved { events, tracepoints, cpus });
        if plan.events.is_empty() && plan.tracepoints.is_empty() && !plan.points {
            let message = "nothing is left to record: no kernel event and no test point";
            self.note_error(
                ProblemKind::Combination,
                place_or(&spec.events, spec.span),
                message,
                "leave `[record]` out",
            );
        }
        Some(plan)
    }

    fn resolve_output(&self, settings: &Settings, name: &str) -> std::path::PathBuf {
        value_or(&settings.output, format!("punctual-{name}-{}", self.context.stamp)).into()
    }

    /// The file's name without its extension, converted to a valid name.
    fn file_stem(&self) -> String {
        let stem = self
            .experiment
            .source
            .path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        names::made_fit(&stem, MAX_NAME_CHARS, "experiment")
    }

    fn note_problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn note_error(
        &mut self,
        kind: ProblemKind,
        span: Span,
        message: impl Into<String>,
        help: &str,
    ) {
        let problem = Problem::error(kind, Some(span), message);
        self.note_problem(if help.is_empty() { problem } else { problem.with_help(help) });
    }
}

/// The set value, or the default.
fn value_or<T: Clone>(setting: &Setting<T>, default: T) -> T {
    setting.as_ref().map_or(default, |at| at.value.clone())
}

/// The place of a setting, or the section that it would be in.
fn place_or<T>(setting: &Setting<T>, section: Span) -> Span {
    setting.as_ref().map_or(section, |at| at.span)
}
