//! What came from where, and what was lost.

use punctual_core::event::{PointId, Source};
use std::collections::HashMap;

/// What a thread's ring gave. `recorded + dropped + overwritten + torn` is how many points it
/// passed while they were recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PointSource {
    pub process: String,
    pub pid: u32,
    /// The thread's name when it passed its first point; empty for [`PointSource::ringless`].
    pub comm: String,
    /// The thread; 0 for [`PointSource::ringless`].
    pub tid: u32,
    pub recorded: u64,
    /// Points that found the ring full.
    pub dropped: u64,
    /// Points that newer ones overwrote before they were read.
    pub overwritten: u64,
    /// Points whose writer did not complete them, or that make no sense.
    pub torn: u64,
    /// This is no ring, but the threads of a process that could have none: there were too many, or
    /// no space.
    pub ringless: bool,
}

impl PointSource {
    pub fn lost(&self) -> u64 {
        self.dropped.saturating_add(self.overwritten)
    }

    /// In the words of a recording.
    pub fn to_source(&self) -> Source {
        let name = match self {
            PointSource { ringless: true, process, pid, .. } => {
                format!("points of {process} (pid {pid}), threads without a ring")
            }
            PointSource { comm, tid, .. } => format!("points of {comm} (tid {tid})"),
        };
        Source { name, cpu: None, recorded: self.recorded, lost: self.lost(), torn: self.torn }
    }
}

/// The names of points, each once, whichever processes use it.
#[derive(Debug, Default)]
pub struct Points {
    names: Vec<String>,
    ids: HashMap<String, PointId>,
}

/// Names kept: 64 processes with as many as they can have. Further ones share a name that says so.
const NAMES_KEPT: usize = 65_536;

impl Points {
    /// The id of this name, if it has one already.
    pub fn known(&self, name: &str) -> Option<PointId> {
        self.ids.get(name).copied()
    }

    /// The id of names beyond those that are kept.
    pub fn unnamed(&mut self) -> PointId {
        self.insert("(too many names)".to_owned())
    }

    /// The id of this name.
    pub fn id(&mut self, name: String) -> PointId {
        match self.known(&name) {
            Some(id) => id,
            None if self.names.len() < NAMES_KEPT => self.insert(name),
            None => self.unnamed(),
        }
    }

    fn insert(&mut self, name: String) -> PointId {
        *self.ids.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            PointId((self.names.len() - 1) as u32)
        })
    }

    /// All names; an id is a place in here.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}
