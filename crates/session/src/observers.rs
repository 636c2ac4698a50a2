//! The threads of punctual, of this process and of other measuring ones, during a measurement:
//! delays by them say nothing about the system.

use punctual_core::cycle::{Cycle, Gap};
use punctual_core::entry::Entry;
use punctual_core::{MonotonicNs, Nanos, Tid};
use punctual_sys::{clock, observers};
use std::collections::BTreeSet;

#[derive(Default)]
pub struct Observers {
    pub threads: BTreeSet<u32>,
    looked: Option<MonotonicNs>,
}

impl Observers {
    /// The observers of a recording.
    pub(crate) fn from_threads(threads: &BTreeSet<Tid>) -> Observers {
        Observers { threads: threads.iter().map(|tid| tid.0).collect(), looked: None }
    }

    /// Looks for new ones, about each second. Ended ones stay: their records may arrive later.
    pub(crate) fn find_new(&mut self) {
        let now = clock::monotonic_now();
        if self.looked.is_none_or(|looked| now - looked >= Nanos::SECOND) {
            self.looked = Some(now);
            self.threads.extend(observers::threads_of(&observers::measuring_processes()));
        }
    }

    /// Marks an entry that punctual caused.
    pub(crate) fn mark_entry(&self, entry: Entry) -> Entry {
        let originator_tid = entry.originator.map_or(0, |by| by.tid);
        let observer = self.threads.contains(&entry.task) || self.threads.contains(&originator_tid);
        Entry { observer, ..entry }
    }

    /// Marks a gap that punctual caused.
    pub(crate) fn mark_gap(&self, gap: Gap) -> Gap {
        let observes = gap.culprit.is_some_and(|culprit| self.threads.contains(&culprit.tid));
        if observes { gap.of_observer() } else { gap }
    }

    /// Marks the delays of a cycle that punctual caused.
    pub(crate) fn mark_cycle(&self, cycle: Cycle) -> Cycle {
        let observes = cycle.culprit.is_some_and(|culprit| self.threads.contains(&culprit.tid));
        if observes { cycle.of_observer() } else { cycle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycles::testing::cycle_at;
    use punctual_core::CauseKind::{NonPreemptible, Observer, Preempted, SystemCall};
    use punctual_core::cycle::{CycleCulprit, TaskComm};
    use punctual_core::{CauseKind, Split};

    fn split(all: &[(CauseKind, i64)]) -> Split {
        let mut split = Split::default();
        all.iter().for_each(|(part, ns)| split.add(*part, Nanos(*ns)));
        split
    }

    #[test]
    fn time_taken_by_a_thread_of_punctual_is_an_observer_part() {
        let (time, behind) = (Nanos(100), Nanos(60));
        let delayed = Cycle {
            culprit: Some(CycleCulprit { tid: 9, name: TaskComm::default(), time, behind }),
            wake: split(&[(NonPreemptible, 50), (Preempted, 40), (SystemCall, 5)]),
            run: split(&[(Preempted, 70)]),
            ..cycle_at(0)
        };
        let own = Observers::from_threads(&BTreeSet::from([Tid(9)])).mark_cycle(delayed);
        assert_eq!(own.wake, split(&[(NonPreemptible, 10), (Observer, 80), (SystemCall, 5)]));
        assert_eq!(own.run, split(&[(Preempted, 50), (Observer, 20)]));
        let others = Observers::from_threads(&BTreeSet::from([Tid(8)]));
        assert_eq!(others.mark_cycle(delayed), delayed);
    }
}
