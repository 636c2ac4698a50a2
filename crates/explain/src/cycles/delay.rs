//! The delay of a cycle: the cause that took longer than in a typical cycle, with its culprit.

use punctual_core::cycle::{AwaitedWaker, Cycle, TaskComm, WokenBy};
use punctual_core::{CauseKind, MAIN_PARTS, Nanos, Split};

/// The main delay of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MainDelay {
    pub part: CauseKind,
    /// The excess over a typical cycle.
    pub time: Nanos,
    /// The culprit, if known.
    pub by: Option<DelayingThread>,
    /// The thread slept for a time of its own choice, or until a timeout, in this system call.
    pub own_call: Option<u32>,
}

/// The thread that delayed a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayingThread {
    pub tid: u32,
    /// Its name; empty if unknown.
    pub name: TaskComm,
    /// Not shown by events: the task last seen on the CPU where the thread was to run.
    pub likely: bool,
}

impl DelayingThread {
    fn new(tid: u32, name: TaskComm) -> DelayingThread {
        DelayingThread { tid, name, likely: false }
    }
}

/// The parts during which another task runs.
const OTHER_TASK_PARTS: [CauseKind; 4] =
    [CauseKind::Preempted, CauseKind::Runqueue, CauseKind::NonPreemptible, CauseKind::Throttled];
/// The reciprocal of the minimum share of the delay for a culprit.
const CULPRIT: i64 = 2;
/// The same if tasks may share a delay, in which case the one that ran longest is named.
const SHARED: i64 = 8;

/// The main delay of this cycle; `typical`: the split of a cycle without a delay.
pub fn find_delay(cycle: &Cycle, typical: &Split) -> Option<MainDelay> {
    let split = cycle.total_split();
    let longer = |part: &&CauseKind| split.time_of(**part) - typical.time_of(**part);
    let part = *MAIN_PARTS.iter().max_by_key(longer)?;
    let time = longer(&&part);
    let is_share = |by: Nanos, share: i64| by.ns().saturating_mul(share) >= time.ns();
    let delaying_thread = match part {
        part if OTHER_TASK_PARTS.contains(&part) => {
            let culprit = cycle.culprit.filter(|one| is_share(one.time, SHARED));
            culprit.map(|one| DelayingThread::new(one.tid, one.name))
        }
        CauseKind::Lock => {
            let holder = cycle.holder.filter(|one| is_share(one.time, CULPRIT));
            holder.map(|one| DelayingThread::new(one.tid, one.name))
        }
        CauseKind::Waiting | CauseKind::Stopped => {
            let is_task =
                |one: &AwaitedWaker| one.by == WokenBy::Task && is_share(one.time, CULPRIT);
            cycle.awaited.filter(is_task).map(|one| DelayingThread::new(one.tid, one.name))
        }
        CauseKind::Unknown => {
            let likely = cycle.likely.filter(|one| is_share(one.time, CULPRIT));
            likely.map(|one| DelayingThread { tid: one.tid, name: one.name, likely: true })
        }
        _ => None,
    };
    let slept = |one: &AwaitedWaker| one.by == WokenBy::Sleep && is_share(one.time, CULPRIT);
    let own_call = cycle
        .longest_call
        .filter(|(_, call)| match part {
            CauseKind::Timeout => is_share(*call, CULPRIT),
            CauseKind::Waiting => cycle.awaited.is_some_and(|one| slept(&one) && *call >= one.time),
            _ => false,
        })
        .map(|(call, _)| call);
    (time > Nanos::ZERO).then_some(MainDelay { part, time, by: delaying_thread, own_call })
}
