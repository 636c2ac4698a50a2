//! The thread beside which recorders are switched: the timer workload of a run, with one thread on
//! a measured CPU.

use super::super::mapping;
use super::super::measure::PartitionPlacement;
use super::is_within;
use crate::flight::{SampleTask, WatchedSeries};
use punctual_bundle::windows::Waited;
use punctual_core::{
    Clock, CpuSet, MonotonicNs, Nanos, Policy, Priority, SeriesData, SeriesShape, Tid,
};
use punctual_measure::collect::SeriesCollector;
use punctual_measure::stop::Stop;
use punctual_measure::thread::ThreadSettings;
use punctual_measure::workload::{
    self, CpuPlacement, MeasureConfig, RunningWorkload, SeriesConfig,
};
use punctual_plan::{Plan, TimerMethod, TimerPlan, Workload};
use punctual_sys::attributes::Scheduling;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The thread's period, if the measured one is not of this order.
const PERIOD: Nanos = Nanos::MILLI;
const PERIODS: std::ops::RangeInclusive<Nanos> = Nanos::from_micros(200)..=Nanos::from_millis(2);
/// The thread's priority, if the experiment has none suitable for a timer thread.
const PRIORITY: u8 = 80;
/// The time from the thread's preparation to its first expiry.
const LEAD: Nanos = Nanos::from_millis(10);
const NAME: &str = "calibration";

/// The thread's CPU and settings.
pub struct Setup<'a> {
    /// The CPU of the thread.
    pub cpu: usize,
    pub scheduling: Scheduling,
    pub period: Nanos,
    /// Whether the memory is locked.
    pub lock_memory: bool,
    /// Moves the thread into the partition of its CPU.
    pub placement: &'a dyn CpuPlacement,
    /// The bundle, in which recorders write meanwhile.
    pub directory: &'a Path,
}

impl<'a> Setup<'a> {
    /// Like the first thread of the plan. `None` without one.
    pub fn of_plan(
        plan: &Plan,
        placement: &'a dyn CpuPlacement,
        directory: &'a Path,
    ) -> Option<Setup<'a>> {
        let measure = plan.phases.first()?.measures.first()?;
        let thread = measure.threads.first()?;
        let requested = mapping::to_scheduling(thread.scheduling);
        let period = measure.workload.sample_period().filter(|period| PERIODS.contains(period));
        Some(Setup {
            cpu: thread.cpus.first_cpu()?,
            scheduling: if requested.deadline.is_some() { usual_scheduling() } else { requested },
            period: period.unwrap_or(PERIOD),
            lock_memory: plan.memory_lock,
            placement,
            directory,
        })
    }

    /// On this CPU, without an experiment.
    pub fn with_cpu(cpu: usize, directory: &'a Path) -> Setup<'a> {
        let placement = &PartitionPlacement(None);
        let (scheduling, period) = (usual_scheduling(), PERIOD);
        Setup { cpu, scheduling, period, lock_memory: true, placement, directory }
    }
}

fn usual_scheduling() -> Scheduling {
    Scheduling::new(Policy::Fifo, Priority::new(PRIORITY))
}

pub struct StandIn {
    pub tid: u32,
    /// The scheduling in force.
    pub scheduling: String,
    cpus: CpuSet,
    running: RunningWorkload,
    stop: Arc<Stop>,
    collector: SeriesCollector,
    data: SeriesData,
}

impl StandIn {
    pub fn start(setup: &Setup<'_>) -> Result<StandIn, String> {
        let (stop, cpus) = (Arc::<Stop>::default(), CpuSet::from_cpu(setup.cpu));
        let shape = SeriesShape {
            range: Nanos::from_millis(10),
            resolution: Nanos::from_micros(10),
            period: Some(setup.period),
        };
        let config = MeasureConfig {
            name: NAME.to_owned(),
            workload: Workload::Timer(TimerPlan {
                method: TimerMethod::NanosleepAbsolute,
                clock: Clock::Monotonic,
                period: setup.period,
                offset: Nanos::ZERO,
            }),
            threads: vec![ThreadSettings {
                cpus: cpus.clone(),
                scheduling: setup.scheduling,
                clock: Clock::Monotonic,
                offset: Nanos::ZERO,
                lock_memory: setup.lock_memory,
                counters: Vec::new(),
            }],
            series: vec![SeriesConfig { number: 0, name: NAME.to_owned(), thread: 0, shape }],
            cpus: cpus.clone(),
            clock: Clock::Monotonic,
            duration: None,
            samples: None,
            stop_above: None,
            lock_memory: false,
            seed: 1,
            stop: Arc::clone(&stop),
        };
        let waiting =
            workload::prepare_measure(&config, setup.placement).map_err(|why| why.to_string())?;
        let prepared =
            waiting.prepared_threads().next().map(|of| (of.tid, of.scheduling.to_string()));
        let (running, sources) = waiting.start(LEAD);
        let (Some((tid, scheduling)), Some(source)) = (prepared, sources.into_iter().next()) else {
            return Err("the timer thread has no series".to_owned());
        };
        Ok(StandIn {
            tid: tid as u32,
            scheduling,
            cpus,
            running,
            stop,
            collector: SeriesCollector::new(source, true),
            data: SeriesData::new(shape),
        })
    }

    /// The series for the flight recorder, from now on.
    pub(crate) fn watched_series(&self) -> WatchedSeries {
        WatchedSeries {
            phase: NAME.to_owned(),
            series: NAME.to_owned(),
            whose: SampleTask::Thread(Tid(self.tid)),
            clock: Clock::Monotonic,
            waited: Waited::Timer,
            cpus: self.cpus.clone(),
            snapshot_reader: self.collector.snapshot_reader(),
        }
    }

    pub fn drain(&mut self) {
        self.collector.drain(&mut self.data);
    }

    /// The latencies of the samples due in this interval; others since the last call are dropped.
    pub(crate) fn take_latencies(&mut self, from: MonotonicNs, to: MonotonicNs) -> Vec<i64> {
        self.drain();
        self.collector.take_windows();
        let mut latencies = Vec::new();
        self.collector.take_samples(|samples| {
            let due_samples = samples.iter().filter(|sample| is_within(sample.due.ns(), from, to));
            latencies.extend(due_samples.map(|sample| sample.latency().ns()));
        });
        latencies
    }

    pub fn stop(self) {
        self.stop.request_stop();
        while !self.running.is_finished() {
            self.running.wake_threads();
            std::thread::sleep(Duration::from_millis(5));
        }
        self.running.join();
    }
}
