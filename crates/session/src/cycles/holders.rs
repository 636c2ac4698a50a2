//! The holders of locks that a thread waited for.

use super::names::read_comm;
use punctual_core::cycle::{Cycle, LockEvidence, LockHolder, id_here};
use punctual_core::format;
use punctual_core::{Cell, Column, Nanos, Table};
use std::collections::BTreeMap;

/// The maximum number of distinguished holders, and of shown ones.
const MAX_HOLDERS: usize = 256;
const SHOWN_HOLDERS: usize = 10;

/// The threads that held locks, with the evidence.
#[derive(Default)]
pub struct Holders {
    all: BTreeMap<(u32, LockEvidence), HolderCost>,
}

/// The cost of one holder's locks.
#[derive(Default)]
struct HolderCost {
    name: String,
    waits: u64,
    total: Nanos,
    /// In one cycle.
    longest: Nanos,
    /// The response time of the longest cycle that waited for the holder.
    response: Nanos,
}

impl Holders {
    /// Adds the holder for whose locks a cycle waited the longest.
    pub fn add(&mut self, cycle: &Cycle) {
        let Some(holder) = cycle.holder else { return };
        let key = (holder.tid, holder.evidence);
        if self.all.len() >= MAX_HOLDERS && !self.all.contains_key(&key) {
            return;
        }
        let holder_cost = self
            .all
            .entry(key)
            .or_insert_with(|| HolderCost { name: name_of(&holder), ..HolderCost::default() });
        holder_cost.waits += u64::from(holder.waits);
        holder_cost.total += holder.time;
        holder_cost.longest = holder_cost.longest.max(holder.time);
        holder_cost.response = holder_cost.response.max(cycle.response_time());
    }

    /// A table of them, the longest time first; `None` without a wait for a lock.
    pub fn to_table(&self) -> Option<Table> {
        let mut sorted_holders: Vec<_> = self.all.iter().collect();
        sorted_holders.sort_by_key(|(_, held)| std::cmp::Reverse(held.total));
        let row = |((tid, evidence), held): &(&(u32, LockEvidence), &HolderCost)| {
            vec![
                Cell::from(format::escape_unsafe(&held.name)),
                id_here(*tid).map_or(Cell::Nothing, |tid| Cell::from(u64::from(tid))),
                Cell::from(evidence.as_phrase().to_owned()),
                Cell::from(held.waits),
                Cell::from(held.total),
                Cell::from(held.longest),
                Cell::from(held.response),
            ]
        };
        (!sorted_holders.is_empty()).then(|| Table {
            name: "lock-holders".to_owned(),
            title: "who held the locks that the thread waited for".to_owned(),
            columns: vec![
                Column::new("task", ""),
                Column::new("tid", "count"),
                Column::new("evidence", ""),
                Column::new("waits", "count"),
                Column::new("total", "ns"),
                Column::new("longest in a cycle", "ns"),
                Column::new("longest response", "ns"),
            ],
            rows: sorted_holders.iter().take(SHOWN_HOLDERS).map(row).collect(),
        })
    }
}

/// The owner of a futex may be a thread of another program.
fn name_of(holder: &LockHolder) -> String {
    let known_name = Some(holder.name.to_string()).filter(|name| !name.is_empty());
    known_name.or_else(|| read_comm(holder.tid)).unwrap_or_else(|| "not known".to_owned())
}
