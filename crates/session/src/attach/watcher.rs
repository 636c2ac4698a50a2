//! Watchers of an attachment, and the state that they see.

use crate::cycles::rows::{ThreadRow, TopCulprit};
use crate::run::CpuRow;
use crate::run::watcher::Snapshot;
use punctual_core::{CpuSet, Nanos};
use punctual_sys::clock;

/// A watcher: of an attached program ([`Attached`]), or of CPUs ([`Disturbed`]).
pub trait AttachWatcher<State> {
    fn show_state(&mut self, state: &State);
    /// Called after measuring has ended.
    fn on_end(&mut self) {}
}

/// The state at a refresh.
pub struct Attached {
    pub name: String,
    /// The time since the attachment.
    pub elapsed: Nanos,
    /// The planned duration; `None`: until interrupted or the program ends.
    pub planned: Option<Nanos>,
    pub threads: Vec<ThreadRow>,
    /// Threads whose cycles are not known yet, or that have none.
    pub others: usize,
    /// The top delay of the last minute's cycles.
    pub culprit: Option<TopCulprit>,
}

impl Attached {
    /// The state of a run that attaches to a program.
    pub fn from_snapshot(snapshot: &Snapshot<'_>) -> Attached {
        let now = clock::monotonic_now();
        let programs = || snapshot.phase.programs.iter().map(|program| &program.cycles);
        Attached {
            name: snapshot.experiment.to_owned(),
            elapsed: snapshot.elapsed,
            planned: snapshot.planned,
            threads: programs().flat_map(|of| of.thread_rows()).collect(),
            others: programs()
                .flat_map(|of| of.seen_threads())
                .filter(|one| one.label().is_none())
                .count(),
            culprit: programs().find_map(|of| of.top_culprit(now)),
        }
    }
}

/// The state of CPUs at a refresh.
pub struct Disturbed {
    pub chosen: CpuSet,
    pub elapsed: Nanos,
    /// The planned duration; `None`: until interrupted.
    pub planned: Option<Nanos>,
    pub cpus: Vec<CpuRow>,
}

impl Disturbed {
    /// The state of a run that attaches to CPUs.
    pub fn from_snapshot(snapshot: &Snapshot<'_>) -> Disturbed {
        let entries = || snapshot.phase.entries.iter();
        Disturbed {
            chosen: entries().fold(CpuSet::new(), |all, of| all.union(of.chosen_cpus())),
            elapsed: snapshot.elapsed,
            planned: snapshot.planned,
            cpus: entries().flat_map(|of| of.view_rows().to_vec()).collect(),
        }
    }
}
