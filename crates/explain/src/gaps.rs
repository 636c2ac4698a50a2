//! The gaps of a recording, collected before its events are read: a pair or state across a gap is
//! uncertain.
//!
//! A recorder reports a loss once it has space again, so after events of other CPUs within the gap.
//! The losses must therefore be known before the main pass; they are few, and found in a separate
//! pass.

use punctual_core::{Event, EventKind, MonotonicNs, Tid};
use std::collections::HashMap;

/// The maximum number of gaps per source; further ones are joined with the last, which is
/// conservative.
const MAX_GAPS: usize = 1 << 16;

/// The source whose losses matter for an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossScope {
    /// Kernel events of one CPU.
    Cpu(u16),
    /// Kernel events of any CPU.
    AnyCpu,
    /// Test points of one thread.
    Thread(Tid),
    /// Test points of any thread.
    AnyThread,
}

impl LossScope {
    /// The source of a test point: its thread's ring or, for a source line, which the kernel
    /// timestamps and which alone has a CPU, the buffers of the CPUs.
    pub(crate) fn of_point(tid: Tid, cpu: u16) -> LossScope {
        if cpu == Event::NO_CPU { LossScope::Thread(tid) } else { LossScope::AnyCpu }
    }
}

/// The gaps of a recording, by source.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    cpus: HashMap<u16, DisjointIntervals>,
    any_cpu: DisjointIntervals,
    threads: HashMap<Tid, DisjointIntervals>,
    any_thread: DisjointIntervals,
}

impl Gaps {
    /// The gaps of these events. Without losses, `Gaps::default()` saves the pass.
    pub fn from_events(events: impl IntoIterator<Item = Event>) -> Gaps {
        let mut gaps = Gaps::default();
        for event in events {
            gaps.add(&event);
        }
        gaps.sort_gaps();
        gaps
    }

    /// Takes the event if it is a loss. After the last one, [`Gaps::sort_gaps`].
    pub fn add(&mut self, event: &Event) {
        let EventKind::Lost { since, .. } = event.what else { return };
        let segment = (since.min(event.at), event.at);
        if event.cpu == Event::NO_CPU {
            self.threads.entry(event.tid).or_default().0.push(segment);
            self.any_thread.0.push(segment);
        } else {
            self.cpus.entry(event.cpu).or_default().0.push(segment);
            self.any_cpu.0.push(segment);
        }
    }

    /// Sorts the gaps; required before queries.
    pub(crate) fn sort_gaps(&mut self) {
        // A loss without a thread concerns all threads.
        if let Some(nobodys) = self.threads.get(&Tid::IDLE).cloned() {
            self.threads.values_mut().for_each(|segments| segments.0.extend(&nobodys.0));
        }
        let all_sources = self.cpus.values_mut().chain(self.threads.values_mut());
        all_sources
            .chain([&mut self.any_cpu, &mut self.any_thread])
            .for_each(DisjointIntervals::join_overlaps);
    }

    /// Whether nothing is missing anywhere.
    pub fn is_empty(&self) -> bool {
        !self.any_of_kernel() && !self.any_of_points()
    }

    /// Whether any kernel event is missing.
    pub(crate) fn any_of_kernel(&self) -> bool {
        !self.any_cpu.0.is_empty()
    }

    /// Whether any test point is missing.
    pub(crate) fn any_of_points(&self) -> bool {
        !self.any_thread.0.is_empty()
    }

    /// The first and last instant within `from..=to` at which events of this source may be missing.
    pub(crate) fn gap_within(
        &self,
        scope: LossScope,
        from: MonotonicNs,
        to: MonotonicNs,
    ) -> Option<(MonotonicNs, MonotonicNs)> {
        let segments = match scope {
            LossScope::Cpu(cpu) => self.cpus.get(&cpu)?,
            LossScope::AnyCpu => &self.any_cpu,
            // A thread without losses of its own has those without a thread.
            LossScope::Thread(tid) => {
                self.threads.get(&tid).or_else(|| self.threads.get(&Tid::IDLE))?
            }
            LossScope::AnyThread => &self.any_thread,
        };
        segments.span_within(from, to)
    }
}

/// Intervals of time; sorted and disjoint once joined.
#[derive(Clone, Debug, Default)]
struct DisjointIntervals(Vec<(MonotonicNs, MonotonicNs)>);

impl DisjointIntervals {
    fn join_overlaps(&mut self) {
        self.0.sort_unstable();
        let mut joined: Vec<(MonotonicNs, MonotonicNs)> = Vec::new();
        for (since, until) in std::mem::take(&mut self.0) {
            let full = joined.len() >= MAX_GAPS;
            match joined.last_mut() {
                Some(last) if full || since <= last.1 => last.1 = last.1.max(until),
                _ => joined.push((since, until)),
            }
        }
        self.0 = joined;
    }

    fn span_within(
        &self,
        from: MonotonicNs,
        to: MonotonicNs,
    ) -> Option<(MonotonicNs, MonotonicNs)> {
        let first = self.0.partition_point(|(_, until)| *until < from);
        let end = self.0.partition_point(|(since, _)| *since <= to);
        let inside = self.0.get(first..end).filter(|inside| !inside.is_empty())?;
        Some((inside[0].0.max(from), inside[inside.len() - 1].1.min(to)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lost(cpu: u16, tid: u32, since: i64, at: i64) -> Event {
        let what = EventKind::Lost { count: 1, since: MonotonicNs(since) };
        Event { at: MonotonicNs(at), cpu, tid: Tid(tid), what }
    }

    #[test]
    fn losses_concern_their_own_source() {
        let gaps = Gaps::from_events([lost(1, 0, 10, 20), lost(Event::NO_CPU, 7, 100, 110)]);
        let within = |scope, from, to| {
            gaps.gap_within(scope, MonotonicNs(from), MonotonicNs(to))
                .map(|(since, until)| (since.ns(), until.ns()))
        };
        assert_eq!(within(LossScope::Cpu(1), 0, 15), Some((10, 15)));
        assert_eq!(within(LossScope::Cpu(0), 0, 15), None);
        assert_eq!(within(LossScope::AnyCpu, 20, 30), Some((20, 20)));
        assert_eq!(within(LossScope::AnyCpu, 21, 200), None);
        assert_eq!(within(LossScope::Thread(Tid(7)), 0, 105), Some((100, 105)));
        assert_eq!(within(LossScope::AnyThread, 0, 99), None);
    }

    proptest! {
        #[test]
        fn merged_gaps_match_the_individual_gaps(
            all in proptest::collection::vec((0i64..100, 0i64..20), 0..20),
            from in 0i64..120,
            span in 0i64..40,
        ) {
            let gaps =
                Gaps::from_events(all.iter().map(|(since, length)| lost(0, 0, *since,
                    since + length)));
            let hit: Vec<_> =
                all.iter().filter(|(s, l)| *s <= from + span && s + l >= from).collect();
            let expected = hit
                .iter()
                .map(|(s, _)| (*s).max(from))
                .min()
                .zip(hit.iter().map(|(s, l)| (s + l).min(from + span)).max());
            let got = gaps.gap_within(LossScope::AnyCpu, MonotonicNs(from),
                MonotonicNs(from + span));
            prop_assert_eq!(got.map(|(a, b)| (a.ns(), b.ns())), expected);
        }
    }
}
