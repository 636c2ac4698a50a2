//! The plan's words in the words of those who do it.

use punctual_bundle::SeriesMeta;
use punctual_bundle::load::{CpuLoad, Shares};
use punctual_core::Nanos;
use punctual_host::cpu_time::{CpuTimes, TimeShares};
use punctual_host::task::attributes::{Deadline, Scheduling};
use punctual_measure::load::{LoadSpec, OnExit};
use punctual_measure::thread::{Prepared, ThreadPlan};
use punctual_measure::timer::Method;
use punctual_plan as plan;
use punctual_plan::{Length, MeasurePlan, TimerMethod, Word, Workload};
use std::path::PathBuf;

/// How the kernel is asked for a policy.
pub fn scheduling(asked: plan::Scheduling) -> Scheduling {
    let deadline = match asked {
        plan::Scheduling::Deadline(d) => Some(Deadline { runtime: d.runtime, deadline: d.deadline, period: d.period }),
        _ => None,
    };
    let nice = asked.nice().map_or(0, |nice| nice.get().into());
    Scheduling { policy: asked.policy(), priority: asked.priority(), nice, deadline }
}

fn method(method: TimerMethod) -> Method {
    match method {
        TimerMethod::NanosleepAbsolute => Method::NanosleepAbsolute,
        TimerMethod::NanosleepRelative => Method::NanosleepRelative,
        TimerMethod::Timerfd => Method::Timerfd,
        TimerMethod::PosixTimer => Method::PosixTimer,
        TimerMethod::Deadline => Method::Deadline,
    }
}

/// The measuring thread of a series.
pub fn thread(series: u32, measure: &MeasurePlan, thread: &plan::ThreadPlan, lock_memory: bool) -> ThreadPlan {
    let Workload::Timer(timer) = measure.workload;
    let (duration, samples) = match measure.length {
        Length::Duration(span) => (Some(span), None),
        Length::Samples(n) => (None, Some(n)),
        Length::UntilInterrupted => (None, None),
    };
    ThreadPlan {
        series,
        cpus: thread.cpus.clone(),
        scheduling: scheduling(thread.scheduling),
        method: method(timer.method),
        clock: timer.clock,
        period: timer.period,
        offset: thread.start_offset,
        duration,
        samples,
        stop_above: measure.stop_above,
        lock_memory,
    }
}

/// The period that samples are expected at; a relative sleep has none, what it misses is not there to be missed.
pub fn expected_period(measure: &MeasurePlan) -> Option<Nanos> {
    let Workload::Timer(timer) = measure.workload;
    (timer.method != TimerMethod::NanosleepRelative).then_some(timer.period)
}

/// How long the measure takes from the common start; `None`: until interrupted.
pub fn time_taken(measure: &MeasurePlan) -> Option<Nanos> {
    let Workload::Timer(timer) = measure.workload;
    let latest = measure.threads.iter().map(|thread| thread.start_offset).max().unwrap_or_default();
    match measure.length {
        Length::Duration(span) => Some(latest + span),
        Length::Samples(n) => Some(latest + timer.period * i64::try_from(n).unwrap_or(i64::MAX)),
        Length::UntilInterrupted => None,
    }
}

/// What a bundle says of a series before its first sample.
pub fn meta(measure: &MeasurePlan, thread: &plan::ThreadPlan, prepared: &Prepared) -> SeriesMeta {
    let Workload::Timer(timer) = measure.workload;
    let mut details = std::collections::BTreeMap::new();
    details.insert("method".to_owned(), timer.method.word().to_owned());
    details.insert("period".to_owned(), timer.period.to_string());
    details.insert("asked".to_owned(), scheduling(thread.scheduling).to_string());
    if thread.start_offset != Nanos::ZERO {
        details.insert("offset".to_owned(), thread.start_offset.to_string());
    }
    SeriesMeta {
        name: thread.name.clone(),
        workload: "timer".to_owned(),
        clock: timer.clock,
        cpus: thread.cpus.clone(),
        scheduling: prepared.scheduling.to_string(),
        real_time: prepared.refused.is_none() && prepared.scheduling.policy.is_real_time(),
        period: expected_period(measure),
        tid: Some(prepared.tid),
        requirements: measure.requirements.iter().map(ToString::to_string).collect(),
        details,
    }
}

fn on_exit(what: plan::OnExit) -> OnExit {
    match what {
        plan::OnExit::Respawn => OnExit::Respawn,
        plan::OnExit::Ignore => OnExit::Ignore,
        plan::OnExit::Stop => OnExit::Stop,
    }
}

/// A load as its guard wants it; `joins` is the entrance of the partition that it runs in.
pub fn load(load: &plan::LoadPlan, joins: Option<PathBuf>) -> LoadSpec {
    let file = |output: &plan::Output| match output {
        plan::Output::Null => None,
        plan::Output::File(path) => Some(path.clone()),
    };
    let asked = scheduling(load.scheduling);
    LoadSpec {
        name: load.name.clone(),
        program: load.program.clone(),
        argv: load.argv.clone(),
        joins,
        cpus: load.cpus.clone(),
        policy: asked.policy,
        priority: asked.priority,
        nice: asked.nice,
        stdout: file(&load.stdout),
        stderr: file(&load.stderr),
        on_success: on_exit(load.on_success),
        on_failure: on_exit(load.on_failure),
        start_delay: load.start_delay,
    }
}

fn shares(shares: TimeShares) -> Shares {
    Shares { busy: shares.busy, steal: shares.steal, interrupts: shares.interrupts }
}

/// How busy the CPUs were between two readings; `None` where no tick passed.
pub fn cpu_load(earlier: &CpuTimes, now: &CpuTimes) -> Option<CpuLoad> {
    let (all, each) = now.since(earlier);
    all.map(|all| CpuLoad { all: shares(all), cpus: each.into_iter().map(|(cpu, s)| (cpu, shares(s))).collect() })
}
