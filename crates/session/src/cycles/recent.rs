//! The top delay of the last minute's cycles: a task, or a cause.

use super::rows::TopCulprit;
use punctual_core::cycle::{Cycle, TaskComm};
use punctual_core::{CauseKind, MAIN_PARTS, MonotonicNs, Nanos};
use std::collections::{BTreeMap, VecDeque};

/// The number of kept seconds, and the maximum number of tasks and of causes of each.
const SECONDS: usize = 60;
const MAX_SUMS: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Task(TaskComm),
    Cause(CauseKind),
}

type SecondSums = BTreeMap<Who, (Nanos, u64)>;

/// The sums of each second.
#[derive(Default)]
pub struct RecentSums {
    seconds: VecDeque<(i64, SecondSums)>,
}

/// The thread's own execution is no delay.
const OWN_CAUSES: [CauseKind; 2] = [CauseKind::OwnExecution, CauseKind::SystemCall];
/// Causes in which another task ran: that task is the culprit, as far as known.
const OTHER_TASK_CAUSES: [CauseKind; 4] =
    [CauseKind::Preempted, CauseKind::Runqueue, CauseKind::NonPreemptible, CauseKind::Throttled];

impl RecentSums {
    /// Adds a cycle, in the order of time.
    pub fn add(&mut self, cycle: &Cycle) {
        let second = cycle.again.ns() / Nanos::SECOND.ns();
        if self.seconds.back().is_none_or(|(last, _)| *last < second) {
            self.seconds.push_back((second, SecondSums::new()));
        }
        let Some((_, sums)) = self.seconds.back_mut() else { return };
        let split = cycle.total_split();
        let mut of_task = cycle.culprit.map_or(Nanos::ZERO, |culprit| culprit.time);
        if let Some(culprit) = cycle.culprit {
            add_time(sums, Who::Task(culprit.name), culprit.time);
        }
        for part in MAIN_PARTS.iter().filter(|part| !OWN_CAUSES.contains(part)) {
            let mut time = split.time_of(*part);
            if OTHER_TASK_CAUSES.contains(part) {
                let task_part = of_task.min(time);
                (of_task, time) = (of_task - task_part, time - task_part);
            }
            add_time(sums, Who::Cause(*part), time);
        }
        self.drop_before(second);
    }

    fn drop_before(&mut self, second: i64) {
        while self.seconds.front().is_some_and(|(at, _)| is_old(*at, second)) {
            self.seconds.pop_front();
        }
    }

    /// The one with the most time, at this instant.
    pub(crate) fn top_culprit(&self, now: MonotonicNs) -> Option<TopCulprit> {
        let now = now.ns() / Nanos::SECOND.ns();
        let last = self.seconds.iter().filter(|(at, _)| !is_old(*at, now));
        let mut recent_sums = SecondSums::new();
        for (who, (time, cycles)) in last.flat_map(|(_, sums)| sums) {
            let sum = recent_sums.entry(*who).or_default();
            *sum = (sum.0 + *time, sum.1 + cycles);
        }
        let (who, (time, cycles)) = recent_sums.into_iter().max_by_key(|(_, (time, _))| *time)?;
        let (name, is_task) = match who {
            Who::Task(name) => (name.to_string(), true),
            Who::Cause(part) => (part.words().to_owned(), false),
        };
        Some(TopCulprit { name, is_task, time, cycles })
    }
}

fn is_old(at: i64, now: i64) -> bool {
    at + SECONDS as i64 <= now
}

fn add_time(sums: &mut SecondSums, who: Who, time: Nanos) {
    if time > Nanos::ZERO && (sums.len() < MAX_SUMS || sums.contains_key(&who)) {
        let sum = sums.entry(who).or_default();
        *sum = (sum.0 + time, sum.1 + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::cycle_at;
    use super::*;
    use punctual_core::cycle::CycleCulprit;

    fn name(text: &str) -> TaskComm {
        let mut bytes = [0; 16];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        TaskComm(bytes)
    }

    #[test]
    fn the_task_or_cause_with_the_most_time_of_a_minute_is_the_top() {
        let mut recent = RecentSums::default();
        let at = |second: i64| MonotonicNs(second * 1_000_000_000);
        assert_eq!(recent.top_culprit(at(0)), None);
        let mut preempted = cycle_at(1_000_000_000);
        preempted.run.add(CauseKind::Preempted, Nanos(9_000));
        preempted.culprit = Some(CycleCulprit {
            tid: 9,
            name: name("hog"),
            time: Nanos(8_000),
            behind: Nanos(8_000),
        });
        recent.add(&preempted);
        recent.add(&preempted);
        let mut idle = cycle_at(30_000_000_000);
        idle.wake.add(CauseKind::IdleExit, Nanos(5_000));
        recent.add(&idle);
        let top = |recent: &RecentSums, second| {
            recent
                .top_culprit(at(second))
                .map(|top| (top.name, top.is_task, top.time.ns(), top.cycles))
        };
        assert_eq!(top(&recent, 31), Some(("hog".to_owned(), true, 16_000, 2)));
        // A minute later the first second is forgotten.
        assert_eq!(top(&recent, 62), Some(("exit from idle".to_owned(), false, 5_000, 1)));
        assert_eq!(top(&recent, 100), None);
    }

    #[test]
    fn the_memory_for_recent_tasks_is_bounded() {
        let mut recent = RecentSums::default();
        for number in 0..1_000 {
            let mut one = cycle_at(1_000_000_000);
            let task = name(&format!("task{number}"));
            one.culprit =
                Some(CycleCulprit { tid: 9, name: task, time: Nanos(1), behind: Nanos(1) });
            recent.add(&one);
        }
        assert_eq!(recent.seconds[0].1.len(), MAX_SUMS);
    }
}
