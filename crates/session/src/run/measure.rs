//! One measure of a phase: its threads together, from preparation to end. Its series are in
//! [`super::series`].

use super::partition;
use punctual_bundle::meta::MeasureMeta;
use punctual_core::{CpuSet, Finding, Nanos};
use punctual_measure::sink::SampleSource;
use punctual_measure::workload::{
    self, CpuPlacement, MeasureConfig, Prepared, RunningWorkload, WaitingWorkload,
};
use punctual_record::perf::Total;
use punctual_sys::attributes::Scheduling;
use punctual_sys::usage::Usage;
use std::io;

/// A measure: prepared, running, or ended.
pub struct MeasureRun {
    /// The indexes of its series in the phase.
    pub series: std::ops::Range<usize>,
    pub threads: Vec<usize>,
    state: MeasureState,
}

enum MeasureState {
    Waiting(Option<WaitingWorkload>),
    Running(RunningWorkload),
    Ended,
}

/// A thread's own settings, read directly after its last sample.
pub type AfterEnd = io::Result<(Scheduling, CpuSet)>;

/// The kernel's counters of each thread, and why threads ended early.
#[derive(Default)]
pub struct MeasureEnd {
    /// The usage of each thread; empty if nothing was started.
    pub usages: Vec<Usage>,
    /// The counters of each thread.
    pub counted: Vec<Vec<Result<Total, String>>>,
    /// The settings of each thread, read directly after its last sample.
    pub after: Vec<AfterEnd>,
    /// Why threads did not reach their ends.
    pub errors: Vec<io::Error>,
    /// The findings about it.
    pub findings: Vec<Finding>,
}

/// Creates threads inside the partition that their CPUs belong to.
pub struct PartitionPlacement<'a>(pub Option<&'a partition::HeldPartition>);

impl CpuPlacement for PartitionPlacement<'_> {
    fn run_in(&self, cpus: &CpuSet, what: &mut dyn FnMut()) -> Result<(), String> {
        match self.0.filter(|partition| partition.has_cpus(cpus)) {
            Some(partition) => partition.run_in(what),
            None => {
                what();
                Ok(())
            }
        }
    }
}

/// Acquires the resources of a measure; they are held as long as the result lives.
pub(crate) fn acquire_resources(order: &MeasureConfig) -> Result<Prepared, String> {
    workload::prepare_workload(order).map_err(|why| format!("{}: {why}", order.name))
}

impl MeasureRun {
    /// A measure without threads of its own: a program has its own, and entries have none.
    pub(crate) fn without_threads(place: usize) -> MeasureRun {
        MeasureRun { series: place..place, threads: Vec::new(), state: MeasureState::Ended }
    }

    /// Prepares the measure. Its series are at `series` in the phase.
    pub fn prepare(
        order: &MeasureConfig,
        placement: &PartitionPlacement,
        series: std::ops::Range<usize>,
    ) -> Result<(MeasureRun, WaitingWorkload), String> {
        let waiting = workload::prepare_measure(order, placement)
            .map_err(|why| format!("{}: {why}", order.name))?;
        let threads = order.series.iter().map(|series| series.thread).collect();
        Ok((MeasureRun { series, threads, state: MeasureState::Waiting(None) }, waiting))
    }

    /// Keeps the prepared threads until the start.
    pub(crate) fn keep_threads(&mut self, waiting: WaitingWorkload) {
        self.state = MeasureState::Waiting(Some(waiting));
    }

    /// Starts its threads, `ahead` from now; returns the sample source of each of its series.
    pub fn start(&mut self, ahead: Nanos) -> Vec<SampleSource> {
        let MeasureState::Waiting(waiting) = &mut self.state else { return Vec::new() };
        let Some(waiting) = waiting.take() else { return Vec::new() };
        let (running, sources) = waiting.start(ahead);
        self.state = MeasureState::Running(running);
        sources
    }

    /// Whether all of its threads have ended.
    pub fn is_finished(&self) -> bool {
        match &self.state {
            MeasureState::Running(running) => running.is_finished(),
            MeasureState::Waiting(_) | MeasureState::Ended => true,
        }
    }

    /// Whether the measure's thread of this number has ended.
    pub(crate) fn thread_has_ended(&self, thread: usize) -> bool {
        match &self.state {
            MeasureState::Running(running) => running.has_ended(thread),
            MeasureState::Waiting(_) | MeasureState::Ended => true,
        }
    }

    /// Whether the measure was started and its thread of this number is at its end.
    pub(crate) fn thread_reached_end(&self, thread: usize) -> bool {
        matches!(&self.state, MeasureState::Running(running) if running.has_ended(thread))
    }

    /// Wakes its threads from a long sleep, so that they see the stop.
    pub fn wake_threads(&self) {
        if let MeasureState::Running(running) = &self.state {
            running.wake_threads();
        }
    }

    /// Waits for its threads, which must have been stopped or be at their end. Its details go into
    /// `meta`.
    pub fn finish(&mut self, phase: &str, meta: &mut MeasureMeta) -> MeasureEnd {
        let MeasureState::Running(running) =
            std::mem::replace(&mut self.state, MeasureState::Ended)
        else {
            return MeasureEnd::default();
        };
        let mut ended = running.join();
        let mut findings = std::mem::take(&mut ended.notes.findings);
        findings
            .iter_mut()
            .for_each(|finding| finding.subject = format!("{phase}/{}", finding.subject));
        meta.notes = ended.notes;
        let workload::MeasureResults { usages, counted, after, errors, .. } = ended;
        MeasureEnd { usages, counted, after, errors, findings }
    }
}
