//! Threads of a plan: the CPUs, scheduling and duration of each.

use crate::words::Nice;
use punctual_core::{CpuSet, Nanos, Policy, Priority};

/// A measuring thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadPlan {
    /// Its name, unique in its phase: `timer/cpu2`, `timer/0`, or the measure's own if it has a
    /// single shared thread.
    pub name: String,
    /// The CPUs that it may run on.
    pub cpus: CpuSet,
    /// Its policy with the parameters.
    pub scheduling: SchedulingSpec,
    /// The delay of its first expiry.
    pub start_offset: Nanos,
}

/// A scheduling policy with its parameters (sched(7)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedulingSpec {
    /// SCHED_FIFO
    Fifo(Priority),
    /// SCHED_RR
    Rr(Priority),
    /// SCHED_OTHER
    Other(Nice),
    /// SCHED_BATCH
    Batch(Nice),
    /// SCHED_IDLE
    Idle,
    /// SCHED_DEADLINE
    Deadline(DeadlineParameters),
}

/// The parameters of SCHED_DEADLINE: runtime ≤ deadline ≤ period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeadlineParameters {
    /// The budget in each period.
    pub runtime: Nanos,
    /// The time in each period by which the budget is granted.
    pub deadline: Nanos,
    /// The time between two replenishments of the budget.
    pub period: Nanos,
}

impl SchedulingSpec {
    /// Only the policy.
    pub fn policy(self) -> Policy {
        match self {
            SchedulingSpec::Fifo(_) => Policy::Fifo,
            SchedulingSpec::Rr(_) => Policy::Rr,
            SchedulingSpec::Other(_) => Policy::Other,
            SchedulingSpec::Batch(_) => Policy::Batch,
            SchedulingSpec::Idle => Policy::Idle,
            SchedulingSpec::Deadline(_) => Policy::Deadline,
        }
    }
    /// The fixed priority, if the policy has one.
    pub fn priority(self) -> Option<Priority> {
        match self {
            SchedulingSpec::Fifo(priority) | SchedulingSpec::Rr(priority) => Some(priority),
            _ => None,
        }
    }
    /// Replaces the fixed priority, if the policy has one.
    pub(crate) fn with_priority(self, priority: Priority) -> SchedulingSpec {
        match self {
            SchedulingSpec::Fifo(_) => SchedulingSpec::Fifo(priority),
            SchedulingSpec::Rr(_) => SchedulingSpec::Rr(priority),
            other => other,
        }
    }
    /// The nice value, if the policy has one.
    pub fn nice(self) -> Option<Nice> {
        match self {
            SchedulingSpec::Other(nice) | SchedulingSpec::Batch(nice) => Some(nice),
            _ => None,
        }
    }
}

/// The end of a measuring thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// After this time.
    Duration(Nanos),
    /// After this many samples.
    Samples(u64),
    /// When the user ends the run.
    UntilInterrupted,
}

impl Length {
    /// The duration at one sample per period, if it ends and that is known.
    pub fn estimated_time(self, period: Option<Nanos>) -> Option<Nanos> {
        match self {
            Length::Duration(duration) => Some(duration),
            Length::Samples(samples) => {
                period.map(|period| period * i64::try_from(samples).unwrap_or(i64::MAX))
            }
            Length::UntilInterrupted => None,
        }
    }
}
