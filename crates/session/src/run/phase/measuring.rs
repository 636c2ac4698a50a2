//! A phase as a source of the engine.

use super::punctuality::{RoundPart, ThreadTimes};
use super::{Controller, PhaseError};
use crate::engine::{Begun, EarlyEnd, EngineRound, EngineSource};
use crate::run::entries::EntriesRun;
use crate::run::evidence::Collecting;
use crate::run::measure::MeasureRun;
use crate::run::phase_run::PhaseRun;
use crate::run::program::ProgramRun;
use crate::run::series::SeriesRun;
use crate::run::wall_clock::{self, WallClock};
use punctual_bundle::Outcome;
use punctual_core::{Fact, MonotonicNs, Nanos};
use punctual_sys::{clock, pace};

/// A phase with its controller.
pub(super) struct Measuring<'r, 'p, 'w, 'c> {
    pub controller: Controller<'r, 'p, 'w>,
    pub current: &'c mut PhaseRun,
}

impl EngineSource for Measuring<'_, '_, '_, '_> {
    type Error = PhaseError;

    fn begin(&mut self) -> Result<Begun, PhaseError> {
        self.controller.begin_phase(self.current)
    }

    fn run_round(&mut self) -> Result<EngineRound, PhaseError> {
        let Measuring { controller, current } = self;
        controller.heed_samples(current);
        pace::between_samples();
        if let Some(step) = controller.wall.as_mut().and_then(WallClock::detect_step) {
            controller.run.findings.push(wall_clock::step_finding(&controller.phase.name, step));
            controller.evidence.clock_stepped(step);
            controller.wall = None; // said once a phase
        }
        let ended = current.measures.iter().all(MeasureRun::is_finished)
            && current.programs.iter().all(ProgramRun::is_finished)
            && current.entries.iter().all(EntriesRun::is_finished);
        controller.punctuality.begin_round(ThreadTimes::read(&controller.files));
        current.series.iter_mut().for_each(SeriesRun::drain);
        let overdue = controller.look_at_threads(current);
        let above = controller.drain_programs(current).or(overdue);
        let interrupted = controller.drain_entries(current);
        controller.begin_part(RoundPart::Companions);
        controller.for_each_companion(|companion| companion.on_tick(current));
        let above = above.map(|(series, latency)| controller.stopped_above(series, latency, None));
        let outcome = match above.or(interrupted).or_else(|| controller.trip_outcome(current)) {
            None => controller.load_events(&mut current.programs)?,
            above => above,
        };
        Ok(EngineRound { outcome, ended })
    }

    fn checkpoint(&mut self) {
        let Measuring { controller, current } = self;
        controller.begin_part(RoundPart::Checkpoint);
        let is_behind = controller.run.saver.is_behind();
        current.series.iter_mut().for_each(SeriesRun::checkpoint);
        current.programs.iter_mut().for_each(|program| program.cycles.checkpoint());
        if !is_behind {
            controller.for_each_companion(|companion| companion.on_save(current));
            controller.run.saver.end_checkpoint();
        }
        controller.evidence.poll(&controller.files, &current.measures);
        controller.for_each_companion(|companion| companion.on_checkpoint(current));
    }

    fn on_pause(&mut self) {
        self.controller.begin_part(RoundPart::Pause);
    }

    fn refresh_view(&mut self, _now: MonotonicNs, elapsed: Nanos) {
        self.controller.begin_part(RoundPart::View);
        self.controller.update_view(self.current, elapsed);
    }

    /// Ends its threads and loads, and writes its files.
    fn finish(&mut self, ended: EarlyEnd<PhaseError>) -> EarlyEnd<PhaseError> {
        let Measuring { controller, current } = self;
        pace::avoid_samples([]);
        controller.run.saver.put_job(0, || pace::avoid_samples([]));
        controller.punctuality.begin_round(ThreadTimes::read(&controller.files));
        current.meta.controller = Fact::Known(controller.punctuality.to_evidence());
        controller.look_at_threads(current);
        controller.evidence.before_stop(&controller.files, &current.measures);
        let stopped = controller.stop_threads(current);
        // A program whose end is known by now was not asked for it.
        let before = controller.load_events(&mut current.programs);
        controller.stop_programs(current);
        controller.stop_entries(current);
        if let Ok(Some(Outcome::StoppedAbove { series, latency, limit, .. })) = &ended {
            let limit = Nanos(limit.unwrap_or_default());
            controller.for_each_companion(|companion| {
                companion.stopped_above(series, Nanos(*latency), limit)
            });
        }
        controller.for_each_companion(|companion| companion.end_phase(current));
        // A load that failed until now failed within the phase.
        let last = controller.load_events(&mut current.programs);
        let programs = current.programs.iter().map(ProgramRun::to_evidence);
        let programs =
            programs.chain(current.entries.iter().map(EntriesRun::to_evidence)).collect();
        let next = Collecting::new(controller.run.plan, controller.phase);
        let collected = std::mem::replace(&mut controller.evidence, next);
        let (partition, fixed) = (controller.run.partition.as_ref(), controller.run.fixed.as_ref());
        current.meta.evidence = match controller.run.attached {
            None => {
                Fact::Known(collected.into_evidence(&controller.files, partition, fixed, programs))
            }
            // An attachment requests no settings of the program.
            Some(_) => Fact::NotAsked,
        };
        if controller.run.attached.is_some() {
            current.meta.missing =
                current.programs.iter().filter_map(ProgramRun::uncounted_losses).collect();
        }
        let of_end = controller.end_loads(current);
        current.meta.duration =
            Some(Nanos(clock::monotonic_now().ns() - current.meta.started_monotonic));
        controller.close_phase(current);
        let (outcome, (), before) = (ended?, stopped?, before?);
        let later = [before, last?, of_end?];
        Ok(outcome.or(later.into_iter().flatten().find(Outcome::is_failure)))
    }
}
