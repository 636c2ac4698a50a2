//! Entries into the kernel on a CPU: summed by served function and originator.

mod describe;
pub mod stream;
#[cfg(test)]
mod tests;

pub use describe::{EntryNames, EntryRow};
use punctual_core::cycle::TaskComm;
use punctual_core::entry::{Entry, EntryKind, Originator, Served, Via};
use punctual_core::{MonotonicNs, Nanos};
use std::collections::BTreeMap;

/// The maximum number of rows for single threads; beyond it, threads of one name share a row.
const ROWS: usize = 4_096;
const MAX_THREAD_ROWS: usize = 2 * ROWS;

/// The key for summing entries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct EntryKey {
    served: Served,
    function: u64,
    by: Option<(u32, TaskComm, u32)>,
    via: Option<Via>,
    observer: bool,
}

/// The sum of entries with the same key.
#[derive(Clone, Copy, Debug, Default)]
struct EntrySum {
    entries: u64,
    /// Occurrences as a further function of other entries.
    further: u64,
    total: Nanos,
    longest: Nanos,
    originator: Option<Originator>,
    tick_dependency: u32,
}

impl EntrySum {
    fn add(&mut self, other: &EntrySum) {
        self.entries += other.entries;
        self.further += other.further;
        self.total += other.total;
        self.tick_dependency |= other.tick_dependency;
        if other.longest >= self.longest {
            (self.longest, self.originator) = (other.longest, other.originator);
        }
    }
}

fn sum_entries(all: &[(&EntryKey, &EntrySum)]) -> EntrySum {
    let mut whole = EntrySum::default();
    all.iter().for_each(|(_, sum)| whole.add(sum));
    whole
}

/// The entries of one CPU.
#[derive(Default)]
pub struct EntryTable {
    sums: BTreeMap<EntryKey, EntrySum>,
    pub entries: u64,
    /// Entries that interrupted the idle task.
    pub idle: u64,
    pub total: Nanos,
    pub longest: Nanos,
    /// Entries without a row, as the table was full.
    pub left_out: u64,
}

impl EntryTable {
    pub fn push(&mut self, entry: &Entry) {
        self.total += entry.own;
        self.longest = self.longest.max(entry.own);
        if !entry.further {
            self.entries += 1;
            self.idle += u64::from(entry.over == 0 && !matches!(entry.served, Served::Task { .. }));
        }
        let row_originator = entry.originator.map(|by| (by.tid, by.name, by.cpu));
        let Entry { served, function, via, observer, .. } = *entry;
        let mut key = EntryKey { served, function, by: row_originator, via, observer };
        if self.sums.len() >= ROWS && !self.sums.contains_key(&key) {
            key.by = row_originator.map(|(_, name, cpu)| (0, name, cpu));
        }
        if self.sums.len() >= MAX_THREAD_ROWS && !self.sums.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        self.sums.entry(key).or_default().add(&EntrySum {
            entries: u64::from(!entry.further),
            further: u64::from(entry.further),
            total: entry.own,
            longest: entry.own,
            originator: entry.originator,
            tick_dependency: entry.tick_dependency,
        });
    }

    /// The addresses that [`EntryTable::to_rows`] needs names for, except those of stacks.
    pub fn needed_addresses(&self) -> impl Iterator<Item = u64> + '_ {
        self.sums.keys().flat_map(|key| {
            let via = match key.via {
                Some(Via::Vector(address)) => address,
                _ => 0,
            };
            let handler = match key.served {
                Served::Nmi(handler) => handler,
                _ => 0,
            };
            [key.function, via, handler]
                .into_iter()
                .filter(|address| *address > u64::from(u32::MAX))
        })
    }

    /// The originators' stacks of the longest entry in each row.
    pub fn originator_stacks(&self) -> impl Iterator<Item = u32> + '_ {
        self.sums.values().filter_map(|sum| sum.originator?.stack)
    }

    /// The entries of the kind and originator with the longest total time; those of punctual only
    /// if no others exist.
    pub fn top_entries(&self, names: &EntryNames) -> Option<EntryTable> {
        let alike = self.group_alike(names);
        let weight = |alike: &Vec<(&EntryKey, &EntrySum)>| {
            (alike.first().is_some_and(|(key, _)| !key.observer), sum_entries(alike).total)
        };
        let top = alike.into_iter().max_by_key(weight)?;
        let sums = top.into_iter().map(|(key, sum)| (*key, *sum)).collect();
        Some(EntryTable { sums, ..EntryTable::default() })
    }

    /// Groups rows with the same words: entries of an interrupt, in any interrupted task.
    fn group_alike(&self, names: &EntryNames) -> Vec<Vec<(&EntryKey, &EntrySum)>> {
        let mut alike: BTreeMap<_, Vec<(&EntryKey, &EntrySum)>> = BTreeMap::new();
        for (key, sum) in &self.sums {
            let row = names.describe_row(key, sum);
            let what = if row.kind == EntryKind::Tick { String::new() } else { row.what };
            let words = (row.kind, what, row.originator, row.through);
            alike.entry(words).or_default().push((key, sum));
        }
        alike.into_values().collect()
    }

    /// Rows for display, the longest total time first and the actions of punctual last.
    pub fn to_rows(&self, names: &EntryNames) -> Vec<EntryRow> {
        let alike = self.group_alike(names);
        let row = |alike: &Vec<(&EntryKey, &EntrySum)>| {
            Some(names.describe_row(alike.first()?.0, &sum_entries(alike)))
        };
        let mut rows: Vec<EntryRow> = alike.iter().filter_map(row).collect();
        let weight = |row: &EntryRow| (row.kind != EntryKind::Observer, row.total, row.entries);
        rows.sort_by_key(|row| std::cmp::Reverse(weight(row)));
        rows
    }
}

/// The maximum distance of entries within one interruption: no event shows the path from the end of
/// an interrupt to its softirq, or to the task that it woke.
pub const JOINED: Nanos = Nanos(1_000);

/// Joins the entries of one CPU.
#[derive(Default)]
pub struct Interruptions {
    pending: Option<(MonotonicNs, MonotonicNs)>,
}

impl Interruptions {
    /// Takes the next entry; returns the previous interruption if that has ended.
    pub fn push(&mut self, entry: &Entry) -> Option<(MonotonicNs, MonotonicNs)> {
        let is_task = matches!(entry.served, Served::Task { .. });
        // Entries while another task has the CPU are within the time of that task.
        let interrupts = match is_task {
            true => entry.away,
            false => !entry.away && !entry.nested && entry.over != 0,
        };
        if entry.further || !interrupts {
            return None;
        }
        match &mut self.pending {
            Some((begin, end)) if entry.begin <= *end + JOINED => {
                *begin = entry.begin.min(*begin);
                *end = entry.end.max(*end);
                None
            }
            pending => pending.replace((entry.begin, entry.end)),
        }
    }

    pub fn finish(&mut self) -> Option<(MonotonicNs, MonotonicNs)> {
        self.pending.take()
    }
}
