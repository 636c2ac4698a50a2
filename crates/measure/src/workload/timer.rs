//! `timer` as a workload: a periodic loop in each thread (see [`crate::timer`]).

use super::{MeasureConfig, NoObserver, Prepared};
use crate::ring::{Producer, create_ring};
use crate::sink;
use crate::stop::Stop;
use crate::thread::{ThreadSettings, ThreadTask};
use crate::timer::deadline::DeadlineLoop;
use crate::timer::{self, SleepMethod};
use punctual_core::{Clock, Nanos, Notes};
use punctual_plan::{TimerMethod, TimerPlan};
use punctual_sys::{clock, memory};
use std::io;
use std::sync::Arc;

/// Sleeps before the first sample, through the same code: they load the pages and cache lines that
/// a sample needs.
const WARM_UP: u64 = 8;

pub(super) fn prepare_timer(config: &MeasureConfig, plan: &TimerPlan) -> Prepared {
    let mut parts =
        Prepared { tasks: Vec::new(), sources: Vec::new(), observer: Box::new(NoObserver) };
    for series in &config.series {
        let (producer, source) = sink::ring_for_period(plan.period);
        let plan = timer::LoopPlan {
            method: to_sleep_method(plan.method),
            clock: clock::clock_id(config.clock),
            period: plan.period,
            first_due: 0,
            end_due: i64::MAX,
            samples: config.samples.unwrap_or(u64::MAX),
            stop_above: config.stop_above,
            only_cpu: config.threads.get(series.thread).and_then(ThreadSettings::only_cpu),
            series: series.number,
        };
        let (clock, duration) = (config.clock, config.duration);
        let (name, stop, deadline) = (config.name.clone(), Arc::clone(&config.stop), None);
        parts.tasks.push(Box::new(Timer { name, plan, clock, duration, producer, stop, deadline }));
        parts.sources.push(source);
    }
    parts
}

fn to_sleep_method(method: TimerMethod) -> SleepMethod {
    match method {
        TimerMethod::NanosleepAbsolute => SleepMethod::NanosleepAbsolute,
        TimerMethod::NanosleepRelative => SleepMethod::NanosleepRelative,
        TimerMethod::Timerfd => SleepMethod::Timerfd,
        TimerMethod::PosixTimer => SleepMethod::PosixTimer,
        TimerMethod::Deadline => SleepMethod::Deadline,
    }
}

struct Timer {
    name: String,
    plan: timer::LoopPlan,
    clock: Clock,
    duration: Option<Nanos>,
    producer: Producer,
    stop: Arc<Stop>,
    /// For [`SleepMethod::Deadline`], once prepared.
    deadline: Option<DeadlineLoop>,
}

impl ThreadTask for Timer {
    fn prepare(&mut self) -> Result<(), String> {
        self.deadline = (self.plan.method == SleepMethod::Deadline).then(DeadlineLoop::prepare);
        Ok(())
    }

    fn lock_memory(&self) -> io::Result<()> {
        memory::lock_slice(self.producer.ring_memory())
    }

    fn warm_up(&mut self) {
        let mut scratch = create_ring(WARM_UP as usize).0;
        let warm = timer::LoopPlan {
            period: self.plan.period.min(Nanos::MILLI),
            first_due: clock::read_clock(self.clock).ns() + 100_000,
            samples: WARM_UP,
            stop_above: None,
            ..self.plan
        };
        if warm.method != SleepMethod::Deadline {
            // An error here recurs in the measured loop, which reports it.
            let _ = timer::run_loop(&warm, &mut scratch, &Stop::default());
        }
    }

    fn run(&mut self, start: i64) -> io::Result<()> {
        self.plan.first_due = start;
        self.plan.end_due = self.duration.map_or(i64::MAX, |span| start.saturating_add(span.ns()));
        match &mut self.deadline {
            Some(deadline) => deadline.run(&self.plan, &mut self.producer, &self.stop),
            None => timer::run_loop(&self.plan, &mut self.producer, &self.stop),
        }
    }

    fn own_yields(&self) -> u64 {
        self.deadline.as_ref().map_or(0, DeadlineLoop::wait_count)
    }

    fn collect_notes(&mut self) -> Notes {
        self.deadline
            .as_ref()
            .map_or_else(Notes::default, |deadline| deadline.collect_notes(&self.name))
    }
}
