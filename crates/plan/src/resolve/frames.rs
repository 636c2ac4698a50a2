//! The phases as written, before their measures are added.

use super::Resolver;
use crate::experiment::MeasureSpec;
use crate::plan::LoadPlan;
use crate::problem::{Problem, ProblemKind};
use crate::text::{Setting, Span, list_items};
use punctual_core::Nanos;

/// A phase before its measures are added.
pub(super) struct PhaseFrame {
    pub(super) name: String,
    pub(super) duration: Setting<Nanos>,
    /// The loads, by index.
    pub(super) loads: Vec<usize>,
    /// Its section; `None` for the implicit phase.
    pub(super) span: Option<Span>,
}

impl Resolver<'_> {
    /// The phases as written, or one with every load.
    pub(super) fn phase_frames(&mut self, loads: &[LoadPlan]) -> Vec<PhaseFrame> {
        let specs = &self.experiment.phases;
        if specs.is_empty() {
            return vec![PhaseFrame {
                name: "main".to_owned(),
                duration: None,
                loads: (0..loads.len()).collect(),
                span: None,
            }];
        }
        let names = self.resolve_names(
            "phase",
            specs.iter().enumerate().map(|(k, spec)| (&spec.name, format!("phase-{}", k + 1))),
        );
        let load_names: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
        let mut frames = Vec::new();
        for (spec, name) in specs.iter().zip(names) {
            let loads = self.look_up("load", list_items(&spec.loads), &load_names);
            frames.push(PhaseFrame { name, duration: spec.duration, loads, span: Some(spec.span) });
        }
        self.warn_of_idle_loads(&frames, loads);
        frames
    }

    fn warn_of_idle_loads(&mut self, frames: &[PhaseFrame], loads: &[LoadPlan]) {
        for (index, load) in loads.iter().enumerate() {
            if !frames.iter().any(|frame| frame.loads.contains(&index)) {
                let span = self.experiment.loads[index].span;
                let message =
                    format!("the load `{}` is in no phase: it is never started", load.name);
                let problem =
                    Problem::error(ProblemKind::Combination, Some(span), message).into_warning();
                self.note_problem(problem.with_help("name it in the `loads` of a `[[phase]]`"));
            }
        }
    }

    /// The phases of a measure, by index: those named, or all.
    pub(super) fn phases_of(&mut self, spec: &MeasureSpec, frames: &[PhaseFrame]) -> Vec<usize> {
        let Some(named) = &spec.phases else { return (0..frames.len()).collect() };
        if named.value.is_empty() {
            let message = "this measure is in no phase: it would never run";
            self.note_error(
                ProblemKind::Combination,
                named.span,
                message,
                "name a phase, or leave `phases` out for all",
            );
        }
        let phase_names: Vec<&str> = frames.iter().map(|frame| frame.name.as_str()).collect();
        let mut phases = self.look_up("phase", &named.value, &phase_names);
        phases.sort();
        phases
    }
}
