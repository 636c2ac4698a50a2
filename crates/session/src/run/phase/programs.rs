//! The programs of a phase: prepared, started, drained and ended with it.

use super::super::entries::EntriesRun;
use super::super::phase_run::PhaseRun;
use super::super::program::{POLL_INTERVAL, ProgramContext, ProgramRun};
use super::{Controller, LOAD_START, PhaseError};
use crate::cycles::series::SeriesPlace;
use crate::engine::CHECKPOINT;
use punctual_bundle::meta::MeasureMeta;
use punctual_core::Nanos;
use punctual_host::environment::Environment;
use punctual_plan::kinds::ProgramPlan;
use punctual_plan::{MeasurePlan, Workload};
use punctual_record::Backend;
use punctual_sys::clock;

impl Controller<'_, '_, '_> {
    /// Prepares a program of the phase, number `place`, after the earlier ones.
    pub(super) fn prepare_program(
        &self,
        measure: &MeasurePlan,
        program: &ProgramPlan,
        place: usize,
    ) -> Result<ProgramRun, String> {
        let environment = self.run.writer.read_document::<Environment>("environment");
        let environment = environment.ok().flatten();
        let context = ProgramContext {
            phase: &self.phase.name,
            seed: self.run.plan.seed_or_default(),
            partition: self.run.partition.as_ref(),
            attached: self.run.attached_program(),
            backend: self.run.attached.as_ref().map_or(Backend::Auto, |of| of.backend),
            without_lines: self.run.attached.as_ref().is_some_and(|of| of.without_lines),
        };
        ProgramRun::prepare(
            measure,
            program,
            self.phase.loads.len() + place,
            &context,
            environment.ok_or("the bundle does not hold the environment")?,
        )
    }

    pub(super) fn program_measures(&self) -> impl Iterator<Item = &MeasurePlan> {
        let measures = self.phase.measures.iter();
        measures.filter(|measure| matches!(measure.workload, Workload::Program(_)))
    }

    /// Starts those that punctual starts: they wait for their release; watches all.
    pub(super) fn start_programs(&mut self, current: &mut PhaseRun) -> Result<(), PhaseError> {
        for program in &mut current.programs {
            program.start(self.run.guard.as_mut())?;
        }
        let until = clock::monotonic_now() + LOAD_START;
        while current.programs.iter().any(ProgramRun::is_awaited) && clock::monotonic_now() < until
        {
            std::thread::sleep(POLL_INTERVAL);
            self.load_events(&mut current.programs)?;
        }
        let watched = current.programs.iter_mut().try_for_each(ProgramRun::watch);
        watched.map_err(|why| match self.run.attached_program() {
            // Without it there is nothing to keep.
            Some(_) => PhaseError::Missing(why),
            None => PhaseError::Failed(why),
        })
    }

    /// Takes the records of programs; returns a response time above the limit, with its series.
    pub(super) fn drain_programs(&mut self, current: &mut PhaseRun) -> Option<(String, Nanos)> {
        let (mut above, mut begun) = (None, false);
        for number in 0..current.programs.len() {
            let drained = self.with_place(current, number, |program, place| program.drain(place));
            above = above.or(drained.above);
            begun |= drained.begun;
        }
        self.has_begun |= begun;
        let now = clock::monotonic_now();
        if self.has_begun && now >= self.next_measures && !self.run.saver.is_behind() {
            // All of them: with hundreds of threads that takes long.
            current.meta.measures.truncate(self.planned_measures().len());
            current
                .meta
                .measures
                .extend(current.programs.iter().flat_map(ProgramRun::measure_metas));
            // A file that cannot be written is reported at the end of the phase.
            let (place, meta) = (self.run.writer.phase_place(self.index), current.meta.clone());
            self.run.saver.put_job(0, move || drop(place.write(&meta)));
            (self.has_begun, self.next_measures) = (false, now + CHECKPOINT);
        }
        above
    }

    /// Stops measuring them, and asks those started here to end.
    pub(super) fn stop_programs(&mut self, current: &mut PhaseRun) {
        for number in 0..current.programs.len() {
            let findings = self.with_place(current, number, |program, place| program.finish(place));
            self.run.findings.extend(findings);
        }
        current.programs.iter_mut().for_each(ProgramRun::terminate);
    }

    /// Waits until they have ended, or their time for it is over.
    pub(super) fn wait_for_programs(&mut self, current: &mut PhaseRun) {
        let now = clock::monotonic_now;
        let waits = |program: &ProgramRun| program.end_deadline().is_some_and(|at| now() < at);
        while current.programs.iter().any(waits) && self.load_events(&mut current.programs).is_ok()
        {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// The measures in the bundle before a thread of a program is known: for an attached program,
    /// the threads are the only ones.
    pub(super) fn planned_measures(&self) -> &[MeasurePlan] {
        if self.run.attached_program().is_some() { &[] } else { &self.phase.measures }
    }

    /// Lists the measures of the bundle: instead of a program its threads, if any, and instead of
    /// entries their CPUs.
    pub(super) fn list_measures(&self, current: &mut PhaseRun) {
        let own_measures = std::mem::take(&mut current.meta.measures);
        if self.planned_measures().is_empty() {
            current.meta.measures =
                current.programs.iter().flat_map(ProgramRun::measure_metas).collect();
            return;
        }
        let (mut programs, mut entries) = (current.programs.iter(), current.entries.iter());
        for (planned, meta) in self.phase.measures.iter().zip(own_measures) {
            let parts: Vec<MeasureMeta> = match &planned.workload {
                Workload::Program(_) => {
                    programs.next().into_iter().flat_map(ProgramRun::measure_metas).collect()
                }
                Workload::Entries(_) => {
                    entries.next().into_iter().flat_map(EntriesRun::measure_metas).collect()
                }
                _ => Vec::new(),
            };
            match parts.is_empty() {
                true => current.meta.measures.push(meta),
                false => current.meta.measures.extend(parts),
            }
        }
    }

    /// Calls a function with a program and the place of its series.
    fn with_place<T>(
        &mut self,
        current: &mut PhaseRun,
        number: usize,
        act: impl FnOnce(&mut ProgramRun, &mut SeriesPlace<'_>) -> T,
    ) -> T {
        let threads = self.phase.measures.iter();
        let threads = threads.filter(|measure| !matches!(measure.workload, Workload::Program(_)));
        let mut taken_names: Vec<String> = threads.map(|measure| measure.name.clone()).collect();
        let other_programs =
            current.programs.iter().enumerate().filter(|(other, _)| *other != number);
        taken_names.extend(other_programs.flat_map(|(_, program)| program.cycles.thread_labels()));
        let mut place = SeriesPlace {
            phase: self.run.writer.phase_place(self.index),
            saver: &self.run.saver,
            next: &mut self.next_series,
            taken: &taken_names,
            keep: self.run.plan.keep_samples,
            forever: self.run.plan.forever,
        };
        act(&mut current.programs[number], &mut place)
    }
}
