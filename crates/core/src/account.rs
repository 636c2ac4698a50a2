//! The time of every sample, divided by cause: the kernel-side accounting over a whole
//! distribution.

use crate::{CauseKind, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

macro_rules! main_parts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A main part of a latency. The parts of a sample are disjoint and add up to its latency.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[derive(Serialize, Deserialize)]
        #[serde(try_from = "String", into = "&str")]
        pub enum MainPart {
            $($(#[$doc])* $name,)*
        }

        impl MainPart {
            /// All parts, in the order of stacking and listing.
            pub const ALL: &[MainPart] = &[$(MainPart::$name,)*];

            /// The cause of this part.
            pub fn cause(self) -> CauseKind {
                match self { $(MainPart::$name => CauseKind::$name,)* }
            }
        }
    };
}

main_parts! {
    /// The timer interrupt was delayed although a task ran.
    TimerIrqDelay,
    /// The kernel deferred the timer within the slack of the thread.
    TimerSlack,
    /// Interrupt handlers, including the timer's own.
    Irq,
    /// Deferred work of interrupts ran on the CPU of the thread.
    Softirq,
    /// The CPU was idle and had to exit from its idle state and switch.
    IdleExit,
    /// The thread had the higher priority, and the running task was not preempted.
    NonPreemptible,
    /// A task of higher real-time priority ran.
    Preempted,
    /// The scheduler selected a task of lower priority: RT throttling, or the quota of a cgroup.
    Throttled,
    /// A task of the same priority ran, or one with a time-sharing policy.
    Runqueue,
    /// The CPU was within the context switch to the thread.
    Switch,
    /// The thread waited for a lock.
    Lock,
    /// The thread waited for a block device or a file system.
    Io,
    /// A page fault of the thread.
    PageFault,
    /// The thread reclaimed memory.
    Reclaim,
    /// The awaited event did not come in time.
    Timeout,
    /// The thread was stopped.
    Stopped,
    /// The thread waited for something else before the end of the sample.
    Waiting,
    /// The previous cycle had not ended at the release.
    Overrun,
    /// The thread itself ran in a system call.
    SystemCall,
    /// The thread itself ran: the return to user space, or its own work.
    OwnExecution,
    /// The hypervisor had taken the CPUs.
    Steal,
    /// punctual itself took the time.
    Observer,
    /// No event proves a cause.
    Unknown,
}

impl MainPart {
    /// The stable id, as in files: that of the cause.
    pub fn id(self) -> &'static str {
        self.cause().id()
    }
    /// The name in tables: that of the cause.
    pub fn words(self) -> &'static str {
        self.cause().words()
    }
    /// The part of this id.
    pub fn from_id(id: &str) -> Option<MainPart> {
        let cause = CauseKind::from_id(id)?;
        MainPart::ALL.iter().find(|part| part.cause() == cause).copied()
    }
}

impl From<MainPart> for &'static str {
    fn from(part: MainPart) -> &'static str {
        part.id()
    }
}

impl TryFrom<String> for MainPart {
    type Error = String;

    fn try_from(id: String) -> Result<MainPart, String> {
        MainPart::from_id(&id).ok_or_else(|| format!("`{}` is not a main part", id.escape_debug()))
    }
}

/// The number of parts.
pub const MAIN_PARTS: usize = MainPart::ALL.len();

/// The latency of one sample divided into main parts, whose sum it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Split([u64; MAIN_PARTS]);

impl Split {
    /// Adds time to a part; negative time is ignored.
    pub fn add(&mut self, part: MainPart, span: Nanos) {
        let sum = &mut self.0[part as usize];
        *sum = sum.saturating_add(span.ns().max(0) as u64);
    }
    /// The time of a part.
    pub fn of(&self, part: MainPart) -> Nanos {
        Nanos(self.0[part as usize] as i64)
    }
    /// All parts together.
    pub fn sum(&self) -> Nanos {
        let sum = self.0.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        Nanos(i64::try_from(sum).unwrap_or(i64::MAX))
    }
    /// The longest part; the first of equal ones. `None` if all are zero.
    pub fn longest(&self) -> Option<MainPart> {
        let mut longest = None;
        for part in MainPart::ALL {
            if self.of(*part) > longest.map_or(Nanos::ZERO, |longest| self.of(longest)) {
                longest = Some(*part);
            }
        }
        longest
    }
    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Split) -> Split {
        Split(std::array::from_fn(|part| self.0[part].saturating_add(other.0[part])))
    }
    /// Subtracts a time: from this part and, if it is too short, from the others in order.
    pub fn take(&mut self, first: MainPart, span: Nanos) {
        let mut left = span.ns().max(0) as u64;
        for part in std::iter::once(first).chain(MainPart::ALL.iter().copied()) {
            let less = left.min(self.0[part as usize]);
            self.0[part as usize] -= less;
            left -= less;
        }
    }
    /// Moves a time from these parts, in order, to another; returns the rest.
    pub fn give(&mut self, from: &[MainPart], to: MainPart, span: Nanos) -> Nanos {
        let mut left = span.ns().max(0) as u64;
        for part in from {
            let less = left.min(self.0[*part as usize]);
            self.0[*part as usize] -= less;
            self.0[to as usize] += less;
            left -= less;
        }
        Nanos(left as i64)
    }
    /// Moves all time of one part to another, due to later evidence.
    pub fn rename(&mut self, from: MainPart, to: MainPart) {
        let span = std::mem::take(&mut self.0[from as usize]);
        self.0[to as usize] += span;
    }
}

/// The samples in one bucket of latencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccountBucket {
    /// The number of samples.
    pub count: u64,
    /// The ns of each part over all of them, by [`MainPart::ALL`].
    pub parts: [u64; MAIN_PARTS],
    /// For each part, the number of samples in which it was the longest.
    pub longest: [u64; MAIN_PARTS],
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
    pub fn record(&mut self, split: &Split) {
        let bucket = self.buckets.entry(Account::lower_edge(split.sum())).or_default();
        bucket.count += 1;
        bucket.parts.iter_mut().zip(split.0).for_each(|(sum, ns)| *sum += ns);
        if let Some(longest) = split.longest() {
            bucket.longest[longest as usize] += 1;
        }
    }

    /// The lower edge in ns of the bucket that contains a latency.
    pub fn lower_edge(latency: Nanos) -> u64 {
        let ns = latency.ns().max(0) as u64;
        ns & !(Account::width(ns) - 1)
    }

    /// The width in ns of the bucket that contains a latency.
    pub fn width(ns: u64) -> u64 {
        (ns.checked_ilog2().map_or(1, |log| 1 << log) / STEPS).max(1)
    }

    /// The non-empty buckets with their lower edge in ns, ascending.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = (u64, &AccountBucket)> {
        self.buckets.iter().map(|(edge, bucket)| (*edge, bucket))
    }

    /// Restores a saved bucket.
    pub fn restore(&mut self, lower_edge: u64, bucket: AccountBucket) {
        self.buckets.insert(lower_edge, bucket);
    }

    /// Adds the samples of another account.
    pub fn add(&mut self, other: &Account) {
        let add = |sums: &mut [u64; MAIN_PARTS], more: &[u64; MAIN_PARTS]| {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        };
        for (edge, more) in &other.buckets {
            let bucket = self.buckets.entry(*edge).or_default();
            bucket.count = bucket.count.saturating_add(more.count);
            add(&mut bucket.parts, &more.parts);
            add(&mut bucket.longest, &more.longest);
        }
    }

    /// The ns of each part over all samples, by [`MainPart::ALL`].
    pub fn time_by_part(&self) -> [u64; MAIN_PARTS] {
        let mut sums = [0u64; MAIN_PARTS];
        for bucket in self.buckets.values() {
            sums.iter_mut().zip(bucket.parts).for_each(|(sum, ns)| *sum = sum.saturating_add(ns));
        }
        sums
    }

    /// The number of counted samples.
    pub fn count(&self) -> u64 {
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
        split.add(MainPart::Irq, Nanos(300));
        split.add(MainPart::Softirq, Nanos(700));
        assert_eq!((split.sum(), split.longest()), (Nanos(1_000), Some(MainPart::Softirq)));
        split.rename(MainPart::Softirq, MainPart::Steal);
        assert_eq!((split.sum(), split.longest()), (Nanos(1_000), Some(MainPart::Steal)));
        let mut account = Account::default();
        account.record(&split);
        let (edge, bucket) = account.buckets().next().expect("one sample");
        assert_eq!((edge, bucket.count, bucket.longest[MainPart::Steal as usize]), (1_000, 1, 1));
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_latencies(ns in 0u64..1 << 50) {
            let edge = Account::lower_edge(Nanos(ns as i64));
            prop_assert!(edge <= ns && ns < edge + Account::width(ns));
            prop_assert_eq!(Account::width(edge), Account::width(ns));
        }
    }
}
