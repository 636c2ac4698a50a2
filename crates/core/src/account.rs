//! The time of every sample, divided by cause: the kernel-side accounting over a whole
//! distribution.

use crate::cause::CAUSES;
use crate::{CauseKind, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The causes that a latency is divided into, in the order of stacking and listing. The parts of a
/// sample are disjoint and add up to its latency.
pub const MAIN_PARTS: &[CauseKind] = &[
    CauseKind::TimerIrqDelay,
    CauseKind::TimerSlack,
    CauseKind::Irq,
    CauseKind::Softirq,
    CauseKind::IdleExit,
    CauseKind::NonPreemptible,
    CauseKind::Preempted,
    CauseKind::Throttled,
    CauseKind::Runqueue,
    CauseKind::Switch,
    CauseKind::Lock,
    CauseKind::Io,
    CauseKind::PageFault,
    CauseKind::Reclaim,
    CauseKind::Timeout,
    CauseKind::Stopped,
    CauseKind::Waiting,
    CauseKind::Overrun,
    CauseKind::SystemCall,
    CauseKind::OwnExecution,
    CauseKind::Steal,
    CauseKind::Observer,
    CauseKind::Unknown,
];

/// The latency of one sample divided into main parts, whose sum it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Split([u64; CAUSES]);

impl Split {
    /// Adds time to a part; negative time is ignored.
    pub fn add(&mut self, part: CauseKind, span: Nanos) {
        let sum = &mut self.0[part as usize];
        *sum = sum.saturating_add(span.ns().max(0) as u64);
    }
    /// The time of a part.
    pub fn time_of(&self, part: CauseKind) -> Nanos {
        Nanos(self.0[part as usize] as i64)
    }
    /// All parts together.
    pub fn total_time(&self) -> Nanos {
        let sum = self.0.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        Nanos(i64::try_from(sum).unwrap_or(i64::MAX))
    }
    /// The longest part; the first of equal ones. `None` if all are zero.
    pub fn longest_part(&self) -> Option<CauseKind> {
        let mut longest = None;
        for part in MAIN_PARTS {
            if self.time_of(*part) > longest.map_or(Nanos::ZERO, |longest| self.time_of(longest)) {
                longest = Some(*part);
            }
        }
        longest
    }
    /// The sum of both.
    #[must_use]
    pub fn add_parts(&self, other: &Split) -> Split {
        Split(std::array::from_fn(|part| self.0[part].saturating_add(other.0[part])))
    }
    /// Subtracts a time: from this part and, if it is too short, from the others in order.
    pub(crate) fn subtract_time(&mut self, first: CauseKind, span: Nanos) {
        let mut left = span.ns().max(0) as u64;
        for part in std::iter::once(first).chain(MAIN_PARTS.iter().copied()) {
            let removed_time = left.min(self.0[part as usize]);
            self.0[part as usize] -= removed_time;
            left -= removed_time;
        }
    }
    /// Moves a time from these parts, in order, to another; returns the rest.
    pub(crate) fn move_time(&mut self, from: &[CauseKind], to: CauseKind, span: Nanos) -> Nanos {
        let mut left = span.ns().max(0) as u64;
        for part in from {
            let moved_time = left.min(self.0[*part as usize]);
            self.0[*part as usize] -= moved_time;
            self.0[to as usize] += moved_time;
            left -= moved_time;
        }
        Nanos(left as i64)
    }
    /// Moves all time of one part to another, due to later evidence.
    pub fn move_part(&mut self, from: CauseKind, to: CauseKind) {
        let span = std::mem::take(&mut self.0[from as usize]);
        self.0[to as usize] += span;
    }
}

/// The samples in one bucket of latencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccountBucket {
    /// The number of samples.
    pub count: u64,
    /// The ns of each part over all of them, by `CauseKind as usize`.
    pub parts: [u64; CAUSES],
    /// For each part, the number of samples in which it was the longest.
    pub longest: [u64; CAUSES],
}

/// The breakdown of a series' samples: by latency bucket, and by part within it. The width of the
/// buckets limits its size.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Account {
    buckets: BTreeMap<u64, AccountBucket>,
}

/// The number of buckets per octave: each is at most 1.6 % of its latency wide.
const STEPS: u64 = 64;

impl Account {
    /// Counts a sample, unless it was early.
    pub fn record_split(&mut self, split: &Split) {
        let bucket = self.buckets.entry(Account::lower_edge(split.total_time())).or_default();
        bucket.count += 1;
        bucket.parts.iter_mut().zip(split.0).for_each(|(sum, ns)| *sum += ns);
        if let Some(longest) = split.longest_part() {
            bucket.longest[longest as usize] += 1;
        }
    }

    /// The lower edge in ns of the bucket that contains a latency.
    pub fn lower_edge(latency: Nanos) -> u64 {
        let ns = latency.ns().max(0) as u64;
        ns & !(Account::bucket_width(ns) - 1)
    }

    /// The width in ns of the bucket that contains a latency.
    pub fn bucket_width(ns: u64) -> u64 {
        (ns.checked_ilog2().map_or(1, |log| 1 << log) / STEPS).max(1)
    }

    /// The non-empty buckets with their lower edge in ns, ascending.
    pub fn occupied_buckets(&self) -> impl DoubleEndedIterator<Item = (u64, &AccountBucket)> {
        self.buckets.iter().map(|(edge, bucket)| (*edge, bucket))
    }

    /// Restores a saved bucket.
    pub fn restore_bucket(&mut self, lower_edge: u64, bucket: AccountBucket) {
        self.buckets.insert(lower_edge, bucket);
    }

    /// Adds the samples of another account.
    pub fn add(&mut self, other: &Account) {
        let add = |sums: &mut [u64; CAUSES], more: &[u64; CAUSES]| {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        };
        for (edge, more) in &other.buckets {
            let bucket = self.buckets.entry(*edge).or_default();
            bucket.count = bucket.count.saturating_add(more.count);
            add(&mut bucket.parts, &more.parts);
            add(&mut bucket.longest, &more.longest);
        }
    }

    /// The ns of each part over all samples, by `CauseKind as usize`.
    pub fn time_by_part(&self) -> [u64; CAUSES] {
        let mut sums = [0u64; CAUSES];
        for bucket in self.buckets.values() {
            sums.iter_mut().zip(bucket.parts).for_each(|(sum, ns)| *sum = sum.saturating_add(ns));
        }
        sums
    }

    /// The number of counted samples.
    pub fn sample_count(&self) -> u64 {
        self.buckets.values().map(|bucket| bucket.count).sum()
    }
}

/// The CPU time of the accounting programs per sample of a thread that sleeps on an otherwise quiet
/// CPU, by the kernel's run time of BPF programs; each run includes two clock readings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AccountCost {
    /// The time of all programs on any watched CPU, per sample.
    pub per_sample: Nanos,
    /// The number of program runs per sample.
    pub runs_per_sample: u64,
    /// The number of samples averaged.
    pub samples: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_part_is_counted() {
        let mut split = Split::default();
        split.add(CauseKind::Irq, Nanos(300));
        split.add(CauseKind::Softirq, Nanos(700));
        assert_eq!(
            (split.total_time(), split.longest_part()),
            (Nanos(1_000), Some(CauseKind::Softirq))
        );
        split.move_part(CauseKind::Softirq, CauseKind::Steal);
        assert_eq!(
            (split.total_time(), split.longest_part()),
            (Nanos(1_000), Some(CauseKind::Steal))
        );
        let mut account = Account::default();
        account.record_split(&split);
        let (edge, bucket) = account.occupied_buckets().next().expect("one sample");
        assert_eq!((edge, bucket.count, bucket.longest[CauseKind::Steal as usize]), (1_000, 1, 1));
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_latencies(ns in 0u64..1 << 50) {
            let edge = Account::lower_edge(Nanos(ns as i64));
            prop_assert!(edge <= ns && ns < edge + Account::bucket_width(ns));
            prop_assert_eq!(Account::bucket_width(edge), Account::bucket_width(ns));
        }
    }
}
