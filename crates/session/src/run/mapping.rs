//! Converts the plan's types to those of the executing crates.

use crate::programs::find_program;
use punctual_bundle::SeriesMeta;
use punctual_bundle::load::{CpuLoad, Shares};
use punctual_bundle::meta::{EQUIVALENCE, MeasureMeta};
use punctual_core::{Clock, Nanos, Notes, SeriesShape};
use punctual_host::cpu_time::{CpuTimes, TimeShares};
use punctual_measure::load::{LoadExitAction, LoadSpec, launch};
use punctual_measure::stop::Stop;
use punctual_measure::thread::{PreparedThread, ThreadSettings};
use punctual_measure::workload::{MeasureConfig, SeriesConfig};
use punctual_plan as plan;
use punctual_plan::kinds::ProgramPlan;
use punctual_plan::seeding::SEED_VARIABLE;
use punctual_plan::{CommandLine, Length, MeasurePlan, TimerMethod, Word, Workload};
use punctual_sys::attributes::{DeadlineAttributes, Scheduling};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The scheduling request for the kernel.
pub(crate) fn to_scheduling(asked: plan::SchedulingSpec) -> Scheduling {
    let deadline = match asked {
        plan::SchedulingSpec::Deadline(d) => {
            Some(DeadlineAttributes { runtime: d.runtime, deadline: d.deadline, period: d.period })
        }
        _ => None,
    };
    let nice = asked.nice().map_or(0, |nice| nice.get().into());
    Scheduling { policy: asked.policy(), priority: asked.priority(), nice, deadline }
}

/// The configuration of a measure; its first series is number `first` of the phase.
pub(crate) fn measure_config(
    measure: &MeasurePlan,
    first: usize,
    plan: &plan::Plan,
    stop: &Arc<Stop>,
) -> MeasureConfig {
    let (duration, samples) = match measure.length {
        Length::Duration(span) => (Some(span), None),
        Length::Samples(n) => (None, Some(n)),
        Length::UntilInterrupted => (None, None),
    };
    let clock = clock_of_measure(measure);
    let thread = |thread: &plan::ThreadPlan| ThreadSettings {
        cpus: thread.cpus.clone(),
        scheduling: to_scheduling(thread.scheduling),
        clock,
        offset: thread.start_offset,
        lock_memory: plan.memory_lock,
        counters: measure.counters.clone(),
    };
    let names = series_names(measure).into_iter().enumerate();
    let series = names.map(|(k, (thread, name))| SeriesConfig {
        number: (first + k) as u32,
        name,
        thread,
        shape: series_shape(measure),
    });
    MeasureConfig {
        name: measure.name.clone(),
        workload: measure.workload.clone(),
        threads: measure.threads.iter().map(thread).collect(),
        series: series.collect(),
        cpus: measure.cpus.clone(),
        clock,
        duration,
        samples,
        stop_above: measure.stop_above,
        lock_memory: plan.memory_lock,
        seed: plan.seed_or_default(),
        stop: Arc::clone(stop),
    }
}

/// The series of a measure, each with its thread.
fn series_names(measure: &MeasurePlan) -> Vec<(usize, String)> {
    let names_of_thread = |(thread, plan): (usize, &plan::ThreadPlan)| {
        measure
            .workload
            .series_of(&plan.name)
            .into_iter()
            .map(move |name| (thread, name))
            .collect::<Vec<_>>()
    };
    measure.threads.iter().enumerate().flat_map(names_of_thread).collect()
}

fn clock_of_measure(measure: &MeasurePlan) -> Clock {
    match &measure.workload {
        Workload::Timer(timer) => timer.clock,
        _ => Clock::Monotonic,
    }
}

/// The statistics of each series of a measure.
pub(crate) fn series_shape(measure: &MeasurePlan) -> SeriesShape {
    let (range, resolution) = (measure.histogram.range, measure.histogram.resolution);
    SeriesShape { range, resolution, period: expected_period(measure) }
}

/// The period at which samples are expected; a relative sleep has none, as it cannot miss periods.
/// Nor have the other kinds: a long sample does not mean a late one.
fn expected_period(measure: &MeasurePlan) -> Option<Nanos> {
    match &measure.workload {
        Workload::Timer(timer) if timer.method != TimerMethod::NanosleepRelative => {
            Some(timer.period)
        }
        _ => None,
    }
}

/// The description of a series in a bundle before its first sample.
pub fn series_meta(
    measure: &MeasurePlan,
    series: &SeriesConfig,
    prepared: &PreparedThread,
) -> SeriesMeta {
    let mut details: BTreeMap<String, String> = BTreeMap::new();
    let cpus = prepared.cpus.clone();
    if let Some(thread) = measure.threads.get(series.thread) {
        details.insert("requested".to_owned(), to_scheduling(thread.scheduling).to_string());
        if thread.start_offset != Nanos::ZERO {
            details.insert("offset".to_owned(), thread.start_offset.to_string());
        }
    }
    details.extend(equivalence_detail(measure));
    match &measure.workload {
        Workload::Timer(timer) => {
            details.insert("method".to_owned(), timer.method.word().to_owned());
            details.insert("period".to_owned(), timer.period.to_string());
        }
        other => {
            details.extend(other.facts().into_iter().map(|(key, value)| (key.to_owned(), value)))
        }
    }
    SeriesMeta {
        name: series.name.clone(),
        measure: measure.name.clone(),
        workload: measure.workload.kind().word().to_owned(),
        clock: clock_of_measure(measure),
        cpus,
        scheduling: prepared.scheduling.to_string(),
        real_time: prepared.refused.is_none() && prepared.scheduling.policy.is_real_time(),
        period: series.shape.period,
        tid: Some(prepared.tid),
        requirements: measure.require.iter().map(|of| of.requirement.to_string()).collect(),
        details,
    }
}

/// The allowed differences of its series from another run's, as in their details.
pub(crate) fn equivalence_detail(measure: &MeasurePlan) -> Option<(String, String)> {
    let margins: Vec<String> = measure.equivalence.iter().map(ToString::to_string).collect();
    (!margins.is_empty()).then(|| (EQUIVALENCE.to_owned(), margins.join(", ")))
}

/// The description of a measure in a bundle before its end.
pub(crate) fn measure_meta(measure: &MeasurePlan) -> MeasureMeta {
    let parameters =
        measure.workload.facts().into_iter().map(|(key, value)| (key.to_owned(), value));
    MeasureMeta {
        name: measure.name.clone(),
        workload: measure.workload.kind().word().to_owned(),
        parameters: parameters.collect(),
        series: match &measure.workload {
            // The program's threads are not known yet.
            Workload::Program(_) => Vec::new(),
            _ => series_names(measure).into_iter().map(|(_, name)| name).collect(),
        },
        notes: Notes::default(),
    }
}

fn on_exit(what: plan::OnExit) -> LoadExitAction {
    match what {
        plan::OnExit::Respawn => LoadExitAction::Respawn,
        plan::OnExit::Ignore => LoadExitAction::Ignore,
        plan::OnExit::Stop => LoadExitAction::Stop,
    }
}

/// A load for the guard; `joins` is the cgroup file of its partition, `seed` the experiment's,
/// `errors` the file of its standard error where the plan names none.
pub fn load_spec(
    load: &plan::LoadPlan,
    joins: Option<PathBuf>,
    seed: u64,
    errors: Option<PathBuf>,
) -> LoadSpec {
    let asked_scheduling = to_scheduling(load.scheduling);
    LoadSpec {
        name: load.name.clone(),
        program: load.program.clone(),
        argv: load.argv.clone(),
        environment: vec![(SEED_VARIABLE.to_owned(), seed.to_string())],
        joins,
        cpus: load.cpus.clone(),
        policy: asked_scheduling.policy,
        priority: asked_scheduling.priority,
        nice: asked_scheduling.nice,
        stdout: file_of(&load.stdout),
        stderr: file_of(&load.stderr).or(errors),
        on_success: on_exit(load.on_success),
        on_failure: on_exit(load.on_failure),
        start_delay: load.start_delay,
    }
}

/// A measured program for the guard of the loads: it waits for SIGCONT.
pub(crate) fn program_spec(
    measure: &MeasurePlan,
    program: &ProgramPlan,
    command: &CommandLine,
    joins: Option<PathBuf>,
    seed: u64,
) -> Result<LoadSpec, String> {
    let word = command.0.first().map_or("", String::as_str);
    let file = find_program(word).map_err(|why| format!("cannot run `{word}`: {why}"))?;
    let file = file.into_os_string().into_string();
    let file = file.map_err(|file| format!("the path {} is not UTF-8", file.display()))?;
    let thread = measure.threads.first().ok_or("the measure has no CPUs")?;
    let asked_scheduling = to_scheduling(thread.scheduling);
    let waiting = ["punctual".to_owned(), launch::ARGUMENT.to_owned(), file];
    Ok(LoadSpec {
        name: measure.name.clone(),
        program: PathBuf::from("/proc/self/exe"),
        argv: waiting.into_iter().chain(command.0.iter().cloned()).collect(),
        environment: vec![(SEED_VARIABLE.to_owned(), seed.to_string())],
        joins,
        cpus: thread.cpus.clone(),
        policy: asked_scheduling.policy,
        priority: asked_scheduling.priority,
        nice: asked_scheduling.nice,
        stdout: file_of(&program.stdout),
        stderr: file_of(&program.stderr),
        on_success: LoadExitAction::Ignore,
        on_failure: LoadExitAction::Ignore,
        start_delay: Nanos::ZERO,
    })
}

fn file_of(output: &plan::LoadOutput) -> Option<PathBuf> {
    match output {
        plan::LoadOutput::Null => None,
        plan::LoadOutput::File(path) => Some(path.clone()),
    }
}

fn to_shares(shares: TimeShares) -> Shares {
    Shares { busy: shares.busy, steal: shares.steal, interrupts: shares.interrupts }
}

/// The load of the CPUs between two readings; `None` if no tick passed.
pub fn cpu_load(earlier: &CpuTimes, now: &CpuTimes) -> Option<CpuLoad> {
    let (all, each) = now.shares_since(earlier);
    all.map(|all| CpuLoad {
        all: to_shares(all),
        cpus: each.into_iter().map(|(cpu, s)| (cpu, to_shares(s))).collect(),
        switches: Option::zip(now.switches, earlier.switches)
            .and_then(|(now, earlier)| now.checked_sub(earlier)),
    })
}
