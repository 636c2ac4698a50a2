//! What delayed a cycle: the cause that took longer in it than in a typical one, and who did that.

use punctual_core::cycle::{Awaited, Cycle, TaskName, WokenBy};
use punctual_core::{MainPart, Nanos, Split};

/// What delayed a cycle the most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delay {
    /// The cause.
    pub part: MainPart,
    /// How much longer it took than in a typical cycle.
    pub time: Nanos,
    /// The thread that did it, with its name; empty where that is not known.
    pub by: Option<(u32, TaskName)>,
}

/// While these go on another task runs.
const OTHERS: [MainPart; 4] =
    [MainPart::Preempted, MainPart::Runqueue, MainPart::NonPreemptible, MainPart::Throttled];
/// Who ran for less than this share of the delay is not its culprit.
const CULPRIT: i64 = 2;

/// What delayed this cycle the most; `typical`: how the time of a cycle without a delay is divided.
pub fn find_delay(cycle: &Cycle, typical: &Split) -> Option<Delay> {
    let split = cycle.split();
    let longer = |part: &&MainPart| split.of(**part) - typical.of(**part);
    let part = *MainPart::ALL.iter().max_by_key(longer)?;
    let time = longer(&&part);
    let is_most = |by: Nanos| by.ns() * CULPRIT >= time.ns();
    let by = match part {
        part if OTHERS.contains(&part) => {
            cycle.culprit.filter(|one| is_most(one.time)).map(|one| (one.tid, one.name))
        }
        MainPart::Lock => {
            cycle.holder.filter(|one| is_most(one.time)).map(|one| (one.tid, one.name))
        }
        MainPart::Waiting => {
            let is_task = |one: &Awaited| one.by == WokenBy::Task && is_most(one.time);
            cycle.awaited.filter(is_task).map(|one| (one.tid, one.name))
        }
        _ => None,
    };
    (time > Nanos::ZERO).then_some(Delay { part, time, by })
}
