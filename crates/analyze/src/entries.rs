//! Entries into the kernel on a CPU: summed by what was served and who caused it.

mod describe;
mod interruptions;
pub mod stream;
#[cfg(test)]
mod tests;

pub use describe::{EntryNames, EntryRow};
pub use interruptions::{Interruptions, JOINED};

use punctual_core::Nanos;
use punctual_core::cycle::TaskName;
use punctual_core::entry::{Entry, EntryKind, Originator, Served, Via};
use std::collections::BTreeMap;

/// Rows of single threads; then threads of one name share one.
const ROWS: usize = 4_096;
const MOST: usize = 2 * ROWS;

/// What makes entries the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    served: Served,
    function: u64,
    by: Option<(u32, TaskName, u32)>,
    via: Option<Via>,
    observer: bool,
}

/// Entries that are the same.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    entries: u64,
    /// Further functions of other entries.
    further: u64,
    total: Nanos,
    longest: Nanos,
    originator: Option<Originator>,
    tick_dependency: u32,
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.entries += other.entries;
        self.further += other.further;
        self.total += other.total;
        self.tick_dependency |= other.tick_dependency;
        if other.longest >= self.longest {
            (self.longest, self.originator) = (other.longest, other.originator);
        }
    }
}

fn sum(all: &[(&Key, &Sum)]) -> Sum {
    let mut whole = Sum::default();
    all.iter().for_each(|(_, sum)| whole.add(sum));
    whole
}

/// The entries of one CPU.
#[derive(Default)]
pub struct EntryTable {
    sums: BTreeMap<Key, Sum>,
    pub entries: u64,
    /// Those that interrupted the idle task.
    pub idle: u64,
    pub total: Nanos,
    pub longest: Nanos,
    /// Entries that found no row.
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
        let by = entry.originator.map(|by| (by.tid, by.name, by.cpu));
        let Entry { served, function, via, observer, .. } = *entry;
        let mut key = Key { served, function, by, via, observer };
        if self.sums.len() >= ROWS && !self.sums.contains_key(&key) {
            key.by = by.map(|(_, name, cpu)| (0, name, cpu));
        }
        if self.sums.len() >= MOST && !self.sums.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        self.sums.entry(key).or_default().add(&Sum {
            entries: u64::from(!entry.further),
            further: u64::from(entry.further),
            total: entry.own,
            longest: entry.own,
            originator: entry.originator,
            tick_dependency: entry.tick_dependency,
        });
    }

    /// The addresses whose names [`EntryTable::rows`] asks for, those of stacks aside.
    pub fn addresses(&self) -> impl Iterator<Item = u64> + '_ {
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

    /// The stacks of originators, of the longest entry of each row.
    pub fn stacks(&self) -> impl Iterator<Item = u32> + '_ {
        self.sums.values().filter_map(|sum| sum.originator?.stack)
    }

    /// The entries of one kind and originator that took the longest in all; those of punctual only
    /// where there are no others.
    pub fn top(&self, names: &EntryNames) -> Option<EntryTable> {
        let alike = self.alike(names);
        let weight = |alike: &Vec<(&Key, &Sum)>| {
            (alike.first().is_some_and(|(key, _)| !key.observer), sum(alike).total)
        };
        let top = alike.into_iter().max_by_key(weight)?;
        let sums = top.into_iter().map(|(key, sum)| (*key, *sum)).collect();
        Some(EntryTable { sums, ..EntryTable::default() })
    }

    /// What has the same words: entries of an interrupt, whomever it interrupted.
    fn alike(&self, names: &EntryNames) -> Vec<Vec<(&Key, &Sum)>> {
        let mut alike: BTreeMap<_, Vec<(&Key, &Sum)>> = BTreeMap::new();
        for (key, sum) in &self.sums {
            let row = names.row(key, sum);
            let what = if row.kind == EntryKind::Tick { String::new() } else { row.what };
            let words = (row.kind, what, row.originator, row.through);
            alike.entry(words).or_default().push((key, sum));
        }
        alike.into_values().collect()
    }

    /// Rows for people, those that took the longest in all first. What punctual itself did is the
    /// last one.
    pub fn rows(&self, names: &EntryNames) -> Vec<EntryRow> {
        let alike = self.alike(names);
        let row = |alike: &Vec<(&Key, &Sum)>| Some(names.row(alike.first()?.0, &sum(alike)));
        let mut rows: Vec<EntryRow> = alike.iter().filter_map(row).collect();
        let weight = |row: &EntryRow| (row.kind != EntryKind::Observer, row.total, row.entries);
        rows.sort_by_key(|row| std::cmp::Reverse(weight(row)));
        rows
    }
}
