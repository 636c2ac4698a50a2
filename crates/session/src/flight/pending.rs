//! Copied windows, between the copying thread and the writing one.

use punctual_bundle::windows::{SeriesWindows, WindowHead};
use punctual_core::event::{TaskName, Tid};
use std::collections::{BTreeMap, BTreeSet};

pub struct PendingWindow {
    pub head: WindowHead,
    /// The records of each lane.
    pub records: Vec<Vec<u8>>,
    /// The threads in the window.
    pub tids: BTreeSet<Tid>,
}

/// Windows that are not written yet, and their common data.
#[derive(Default)]
pub struct PendingWindows {
    fresh: BTreeMap<u64, PendingWindow>,
    gone: Vec<u64>,
    changed: bool,
    /// The threads of each kept window.
    tids: BTreeMap<u64, BTreeSet<Tid>>,
    pub tasks: BTreeMap<Tid, TaskName>,
    pub series: Vec<SeriesWindows>,
    /// Kernel stacks, and addresses to look up.
    pub stacks: Vec<Vec<u64>>,
    /// See `stacks`.
    pub functions: BTreeSet<u64>,
}

pub(crate) struct PendingWrites {
    pub fresh: BTreeMap<u64, PendingWindow>,
    pub gone: Vec<u64>,
    pub tasks: BTreeMap<Tid, TaskName>,
    pub series: Vec<SeriesWindows>,
    pub stacks: Vec<Vec<u64>>,
    pub functions: BTreeSet<u64>,
}

impl PendingWindows {
    pub(crate) fn put_window(&mut self, number: u64, window: PendingWindow) {
        self.tids.insert(number, window.tids.clone());
        self.fresh.insert(number, window);
        self.changed = true;
    }

    /// Removes one: from here, or from the bundle.
    pub fn remove(&mut self, number: u64) {
        self.tids.remove(&number);
        if self.fresh.remove(&number).is_none() {
            self.gone.push(number);
        }
        self.changed = true;
    }

    pub(crate) fn set_counts(&mut self, series: Vec<SeriesWindows>) {
        if self.series != series {
            self.series = series;
            self.changed = true;
        }
    }

    /// The data to write; `None` if nothing changed.
    pub(crate) fn take_writes(&mut self) -> Option<PendingWrites> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let occur: BTreeSet<Tid> = self.tids.values().flatten().copied().collect();
        self.tasks.retain(|tid, _| occur.contains(tid));
        Some(PendingWrites {
            fresh: std::mem::take(&mut self.fresh),
            gone: std::mem::take(&mut self.gone),
            tasks: self.tasks.clone(),
            series: self.series.clone(),
            stacks: self.stacks.clone(),
            functions: self.functions.clone(),
        })
    }
}
