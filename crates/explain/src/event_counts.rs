//! Counts the events of each kind in a recording.

use punctual_core::MonotonicNs;
use punctual_core::event::{Event, EventKind, Group, Recorded, TracepointId};
use std::collections::BTreeMap;

/// The number of events in a recording, by kind and CPU.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventCounts {
    /// Kernel events by group and name ([`EventKind::event_name`]).
    pub kernel: BTreeMap<Group, BTreeMap<&'static str, u64>>,
    /// Tracepoints recorded by name.
    pub tracepoints: BTreeMap<TracepointId, u64>,
    pub points: u64,
    pub calls: u64,
    /// Samples of the run that the recording belongs to.
    pub samples: u64,
    /// Stacks taken by the recorder.
    pub stacks: u64,
    /// Findings of the recorder itself: interrupted tasks, unthrottled tasks.
    pub looked: u64,
    /// Missing events, by the marks in the recording.
    pub lost: u64,
    /// The first and the last instant.
    pub span: Option<(MonotonicNs, MonotonicNs)>,
}

impl EventCounts {
    /// Counts all events of a recording.
    pub fn from_events(events: impl IntoIterator<Item = Event>) -> EventCounts {
        let mut counts = EventCounts::default();
        events.into_iter().for_each(|event| counts.add(&event));
        counts
    }

    pub fn add(&mut self, event: &Event) {
        match event.what {
            EventKind::Lost { count, .. } => self.lost = self.lost.saturating_add(count),
            EventKind::Point { .. } => self.points += 1,
            EventKind::Call { .. } => self.calls += 1,
            EventKind::Sample { .. } => self.samples += 1,
            EventKind::Stack { .. } => self.stacks += 1,
            EventKind::Tracepoint { tracepoint, .. } => {
                *self.tracepoints.entry(tracepoint).or_default() += 1
            }
            EventKind::Interrupted { .. } | EventKind::Unthrottled { .. } => self.looked += 1,
            ref what => {
                if let Some(group) = what.group() {
                    *self.kernel.entry(group).or_default().entry(what.event_name()).or_default() +=
                        1;
                }
            }
        }
        let (first, last) = self.span.unwrap_or((event.at, event.at));
        self.span = Some((first.min(event.at), last.max(event.at)));
    }

    /// The number of kernel events in a group.
    pub fn group_count(&self, group: Group) -> u64 {
        self.kernel.get(&group).map_or(0, |kinds| kinds.values().sum())
    }

    /// Tracepoints recorded by name, ordered by id, including those without events.
    pub fn counts_by_name<'r>(&self, recorded: &'r Recorded) -> Vec<(&'r str, u64)> {
        let count = |id: u32| self.tracepoints.get(&TracepointId(id)).copied().unwrap_or(0);
        (0..).zip(&recorded.tracepoints).map(|(id, name)| (name.as_str(), count(id))).collect()
    }

    /// The total number of events, without the marks of missing ones.
    pub fn total_count(&self) -> u64 {
        let kernel: u64 = self.kernel.values().flat_map(|kinds| kinds.values()).sum();
        let named: u64 = self.tracepoints.values().sum();
        kernel + named + self.points + self.calls + self.samples + self.stacks + self.looked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_testing::events;

    #[test]
    fn each_kind_is_counted_in_its_group() {
        let lost = u64::MAX;
        let given = events!(
            "10 waking 2; 20 waking 2; 30 idle_exit; 40 lost {lost} since=5; 50 lost {lost} since=5"
        );
        let counts = EventCounts::from_events(given);
        assert_eq!(
            (
                counts.group_count(Group::Sched),
                counts.group_count(Group::Idle),
                counts.group_count(Group::Irq)
            ),
            (2, 1, 0)
        );
        assert_eq!(
            (counts.total_count(), counts.lost, counts.span),
            (3, u64::MAX, Some((MonotonicNs(10), MonotonicNs(50))))
        );
    }
}
