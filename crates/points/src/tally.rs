//! Counts of points and losses by source.

use punctual_core::event::{PointId, RecordedSource};
use std::collections::HashMap;

/// The points of a thread's ring. `recorded + dropped + overwritten + torn` is the number of points
/// that it passed while they were recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PointSource {
    pub process: String,
    pub pid: u32,
    /// The thread's name at its first point; empty for [`PointSource::ringless`].
    pub comm: String,
    /// The thread; 0 for [`PointSource::ringless`].
    pub tid: u32,
    /// The CPU whose kernel code passed them, instead of a thread.
    pub cpu: Option<u16>,
    pub recorded: u64,
    /// Points that found the ring full.
    pub dropped: u64,
    /// Points that were overwritten before they were read.
    pub overwritten: u64,
    /// Points that were not completed, or are invalid.
    pub torn: u64,
    /// Not a ring, but the threads of a process without a ring: there were too many, or no space.
    pub ringless: bool,
}

impl PointSource {
    pub(crate) fn lost_points(&self) -> u64 {
        self.dropped.saturating_add(self.overwritten)
    }

    /// The source as a recording has it.
    pub fn to_source(&self) -> RecordedSource {
        let name = match self {
            PointSource { ringless: true, process, pid, .. } => {
                format!("points of {process} (pid {pid}), threads without a ring")
            }
            PointSource { cpu: Some(cpu), .. } => format!("points of the kernel, CPU {cpu}"),
            PointSource { comm, tid, .. } => format!("points of {comm} (tid {tid})"),
        };
        RecordedSource {
            name,
            cpu: None,
            recorded: self.recorded,
            lost: self.lost_points(),
            torn: self.torn,
        }
    }
}

/// The names of points, without duplicates across processes.
#[derive(Debug, Default)]
pub struct PointNames {
    names: Vec<String>,
    ids: HashMap<String, PointId>,
}

/// Names kept: 64 processes with the maximum number. Further ones share a name that shows it.
const NAMES_KEPT: usize = 65_536;

impl PointNames {
    /// The id of this name, if it has one already.
    pub(crate) fn find_id(&self, name: &str) -> Option<PointId> {
        self.ids.get(name).copied()
    }

    /// The id of all names beyond the limit.
    pub(crate) fn unnamed_id(&mut self) -> PointId {
        self.insert("(too many names)".to_owned())
    }

    /// The id of this name.
    pub(crate) fn id_of_name(&mut self, name: String) -> PointId {
        match self.find_id(&name) {
            Some(id) => id,
            None if self.names.len() < NAMES_KEPT => self.insert(name),
            None => self.unnamed_id(),
        }
    }

    fn insert(&mut self, name: String) -> PointId {
        *self.ids.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            PointId((self.names.len() - 1) as u32)
        })
    }

    /// All names; an id is an index.
    pub fn all_names(&self) -> &[String] {
        &self.names
    }
}
