//! Phases: the loads, measures and duration of each.

use super::frames::PhaseFrame;
use super::measures::ResolvedMeasure;
use super::{Resolver, place_or};
use crate::experiment::LoadSpec;
use crate::plan::{Length, LoadPlan, MeasurePlan, PhasePlan};
use crate::problem::{Problem, ProblemKind};
use punctual_core::Nanos;

impl Resolver<'_> {
    pub(super) fn resolve_phases(
        &mut self,
        frames: Vec<PhaseFrame>,
        measures: &[ResolvedMeasure],
        loads: &[LoadPlan],
    ) -> Vec<PhasePlan> {
        let count = frames.len();
        let mut phases = Vec::new();
        for (k, frame) in frames.iter().enumerate() {
            let phase_measures: Vec<&ResolvedMeasure> =
                measures.iter().filter(|measure| measure.phases.contains(&k)).collect();
            let plan = PhasePlan {
                name: frame.name.clone(),
                duration: frame.duration.as_ref().map(|at| at.value),
                measures: phase_measures
                    .iter()
                    .map(|measure| self.measure_in(measure, frame))
                    .collect(),
                loads: frame.loads.iter().map(|load| loads[*load].clone()).collect(),
            };
            self.check_end(frame, &plan, k + 1 == count);
            let checked_measures: Vec<_> =
                phase_measures.iter().map(|measure| (measure.spec, &measure.plan)).collect();
            let loads: Vec<_> = frame
                .loads
                .iter()
                .map(|load| (&self.experiment.loads[*load], &loads[*load]))
                .collect();
            self.check_loads(frame, &loads);
            self.check_safety(&frame.name, &checked_measures, &loads);
            phases.push(plan);
        }
        phases
    }

    /// The measure with its length in a phase: its own, else the phase's, else until it is ended.
    fn measure_in(&mut self, measure: &ResolvedMeasure, frame: &PhaseFrame) -> MeasurePlan {
        let spec = measure.spec;
        let whole = frame.duration.as_ref().map(|at| at.value);
        let length = match (&spec.duration, &spec.samples) {
            (Some(duration), _) => Length::Duration(duration.value),
            (None, Some(samples)) => Length::Samples(samples.value),
            (None, None) => whole.map_or(Length::UntilInterrupted, Length::Duration),
        };
        let own_length = length.estimated_time(measure.plan.workload.sample_period());
        if let (Some(own), Some(phase)) = (own_length, &frame.duration)
            && own > phase.value
        {
            let span = place_or(&spec.duration, place_or(&spec.samples, spec.span));
            let message = format!(
                "this measure takes {own}, and the phase `{}` only {}",
                frame.name, phase.value
            );
            let problem = Problem::error(ProblemKind::Combination, Some(span), message);
            self.note_problem(
                problem
                    .with_related(phase.span, "the phase ends first")
                    .with_help("lengthen the phase, or shorten the measure"),
            );
        }
        let last_start =
            measure.plan.threads.last().map_or(Nanos::ZERO, |thread| thread.start_offset);
        if whole.is_some_and(|whole| last_start >= whole) {
            let message = format!(
                "the last thread would start {last_start} into the phase `{}`, after its end",
                frame.name
            );
            self.note_error(
                ProblemKind::Combination,
                spec.span,
                message,
                "choose a shorter offset, fewer threads or a longer phase",
            );
        }
        MeasurePlan { length, ..measure.plan.clone() }
    }

    /// Checks that each phase but the last one ends, and has something to wait for.
    fn check_end(&mut self, frame: &PhaseFrame, plan: &PhasePlan, last: bool) {
        let Some(span) = frame.span.filter(|_| frame.duration.is_none()) else { return };
        let endless =
            plan.measures.iter().any(|measure| measure.length == Length::UntilInterrupted);
        let (message, help) = if plan.measures.is_empty() {
            (
                format!(
                    "the phase `{}` has no duration and nothing to measure: it would end at once",
                    plan.name
                ),
                "give it a `duration`",
            )
        } else if endless && !last {
            let help = "give it a `duration`, or each of its measures a `duration` or `samples`";
            (
                format!(
                    "the phase `{}` never ends: the ones after it would not be reached",
                    plan.name
                ),
                help,
            )
        } else {
            return;
        };
        self.note_error(ProblemKind::Combination, span, message, help);
    }

    fn check_loads(&mut self, frame: &PhaseFrame, loads: &[(&LoadSpec, &LoadPlan)]) {
        self.check_outputs(loads);
        let Some(duration) = &frame.duration else { return };
        for (spec, load) in loads.iter().filter(|(_, load)| load.start_delay >= duration.value) {
            let message = format!(
                "the load `{}` would start after the end of the phase `{}`",
                load.name, frame.name
            );
            let problem = Problem::error(
                ProblemKind::Combination,
                Some(place_or(&spec.start_delay, spec.span)),
                message,
            );
            self.note_problem(
                problem
                    .with_related(duration.span, "the phase ends before")
                    .with_help("choose a shorter `start_delay`"),
            );
        }
    }
}
