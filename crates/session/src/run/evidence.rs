//! The evidence that a phase is measured as requested: collected on the controller's thread, never
//! by measuring threads. docs/reference/validity.md describes the source of each part;
//! `punctual_stats::validity` judges it.

mod loads;
mod others;
mod threads;
mod throttling;

use super::measure::{AfterEnd, MeasureRun};
use super::series::SeriesRun;
use super::{fixed, partition};
use loads::LoadWatch;
use others::Announcement;
use punctual_bundle::PhaseEvidence;
use punctual_bundle::evidence::{
    ClockEvidence, IsolationEvidence, MemoryEvidence, ProgramEvidence, SettingsEvidence,
};
use punctual_bundle::meta::ENTRIES_WORKLOAD;
use punctual_core::{Clock, CpuSet, Fact, MonotonicNs, Nanos};
use punctual_host::files::{Files, Root};
use punctual_measure::load::GuardEvent;
use punctual_plan::{PhasePlan, Plan};
use punctual_sys::{clock, memory};
use threads::ThreadWatch;
use throttling::ThrottlingCounters;

/// The file with the kernel's clock source.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The evidence of a phase during collection.
#[derive(Default)]
pub struct Collecting {
    begin: MonotonicNs,
    real_time_required: bool,
    threads: Vec<ThreadWatch>,
    loads: Vec<LoadWatch>,
    memory: MemoryEvidence,
    clock: ClockEvidence,
    isolation: Fact<IsolationEvidence>,
    settings: Fact<SettingsEvidence>,
    others: Announcement,
    throttling: ThrottlingCounters,
}

impl Collecting {
    /// Called before anything of a phase is started.
    pub fn new(plan: &Plan, phase: &PhasePlan) -> Collecting {
        let begin = clock::monotonic_now();
        Collecting {
            begin,
            real_time_required: plan.require_real_time,
            loads: phase.loads.iter().map(|load| LoadWatch::new(load, begin)).collect(),
            memory: MemoryEvidence { asked: plan.memory_lock, ..MemoryEvidence::default() },
            isolation: Fact::NotAsked,
            settings: Fact::NotAsked,
            ..Collecting::default()
        }
    }

    /// Adds the prepared threads of a measure.
    pub(crate) fn add_threads(&mut self, threads: impl Iterator<Item = ThreadWatch>) {
        self.threads.extend(threads);
    }

    /// Handles an event of a load.
    pub(crate) fn load_event(&mut self, event: &GuardEvent) {
        let now = clock::monotonic_now();
        match event {
            GuardEvent::Started { load, pid } => {
                self.loads.get_mut(*load).into_iter().for_each(|l| l.on_start(*pid, now))
            }
            GuardEvent::Ended { load, how, success, then, .. } => {
                self.loads
                    .get_mut(*load)
                    .into_iter()
                    .for_each(|l| l.on_exit(how, *success, *then, now));
            }
            GuardEvent::NotStarted { .. }
            | GuardEvent::Lost { .. }
            | GuardEvent::AllEnded { .. } => {}
        }
    }

    /// Called directly before the threads start. `programs`: the CPUs of measured programs.
    pub fn begin(
        &mut self,
        files: &Root,
        partition: Option<&partition::HeldPartition>,
        fixed: Option<&fixed::HeldSettings>,
        series: &[SeriesRun],
        programs: &CpuSet,
    ) {
        self.begin = clock::monotonic_now();
        self.loads.iter_mut().for_each(|load| load.begin = self.begin);
        // CPUs whose entries are measured are only observed: no settings were requested.
        let of_threads = |one: &&SeriesRun| one.kept.meta.workload != ENTRIES_WORKLOAD;
        let series = || series.iter().filter(of_threads);
        let cpus = series().fold(programs.clone(), |all, series| all.union(&series.kept.meta.cpus));
        let cycles = (!programs.is_empty()).then_some(Clock::Monotonic);
        let clocks = series().map(|series| series.kept.meta.clock).chain(cycles);
        let coarsest = clocks.map(clock::clock_resolution).max();
        self.clock.resolution = coarsest.map_or(Fact::NotAsked, Fact::Known);
        self.clock.source = files.read_trimmed(CLOCK_SOURCE).into();
        self.isolation = match partition.map(partition::HeldPartition::missing_settings) {
            None => Fact::NotAsked,
            Some(Err(why)) => Fact::Unavailable(why),
            Some(Ok(missing_before)) => Fact::Known(IsolationEvidence {
                cpus: partition.map(|held| held.cpus().clone()).unwrap_or_default(),
                missing_before,
                missing_after: Vec::new(),
            }),
        };
        self.settings = match fixed.map(fixed::HeldSettings::missing_settings) {
            None => Fact::NotAsked,
            Some(missing_before) => {
                Fact::Known(SettingsEvidence { missing_before, missing_after: Vec::new() })
            }
        };
        self.throttling =
            ThrottlingCounters::start(files, series().filter_map(|series| series.kept.meta.tid));
        self.others = Announcement::from_cpus(cpus);
        self.others.poll(files);
        self.loads.iter_mut().for_each(|load| load.poll(files, self.begin));
    }

    /// Notes that the kernel refused to lock the memory of the process.
    pub(crate) fn memory_refused(&mut self, why: String) {
        self.memory.refused = Some(why);
    }

    /// Notes that a settable clock was set.
    pub(crate) fn clock_stepped(&mut self, step: Nanos) {
        self.clock.stepped = Some(step);
    }

    /// Called about each second during the phase.
    pub fn poll(&mut self, files: &Root, measures: &[MeasureRun]) {
        let now = clock::monotonic_now();
        let at = now - self.begin;
        self.threads.iter_mut().for_each(|thread| thread.poll(at, measures));
        self.loads.iter_mut().for_each(|load| load.poll(files, now));
        self.others.poll(files);
    }

    /// Checks whether all threads reached their own end; called before they are stopped.
    pub(crate) fn before_stop(&mut self, files: &Root, measures: &[MeasureRun]) {
        self.poll(files, measures);
        self.threads.iter_mut().for_each(|thread| thread.before_stop(measures));
    }

    /// Adds the settings that the threads of a measure read at their end.
    pub(crate) fn after_end(&mut self, measure: usize, after: Vec<AfterEnd>) {
        for (number, after) in after.into_iter().enumerate() {
            let matching_thread =
                self.threads.iter_mut().find(|thread| thread.is_of_thread(measure, number));
            matching_thread.into_iter().for_each(|thread| thread.after_end(&after));
        }
    }

    /// Completes the evidence; the loads still run.
    pub(crate) fn into_evidence(
        mut self,
        files: &Root,
        partition: Option<&partition::HeldPartition>,
        fixed: Option<&fixed::HeldSettings>,
        programs: Vec<ProgramEvidence>,
    ) -> PhaseEvidence {
        let now = clock::monotonic_now();
        self.clock.source_after = files.read_trimmed(CLOCK_SOURCE).into();
        self.memory.locked_kib = memory::locked_kib().into();
        match (&mut self.isolation, partition.map(partition::HeldPartition::missing_settings)) {
            (Fact::Known(isolation), Some(Ok(missing))) => isolation.missing_after = missing,
            (isolation @ Fact::Known(_), Some(Err(why))) => *isolation = Fact::Unavailable(why),
            _ => {}
        }
        if let (Fact::Known(settings), Some(held)) = (&mut self.settings, fixed) {
            settings.missing_after = held.missing_settings();
        }
        self.others.poll(files);
        PhaseEvidence {
            real_time_required: self.real_time_required,
            threads: self.threads.into_iter().map(ThreadWatch::into_evidence).collect(),
            memory: self.memory,
            clock: self.clock,
            isolation: self.isolation,
            settings: self.settings,
            loads: self.loads.into_iter().map(|load| load.into_evidence(files, now)).collect(),
            programs,
            others: self.others.into_measurements(),
            throttled: self.throttling.into_slowdowns(files),
            other_parts: Vec::new(),
        }
    }
}

/// The watches of a measure's threads.
pub(crate) use threads::watch_of;
