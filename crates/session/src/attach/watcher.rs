//! Who watches while a program or CPUs are attached to, and what they see.

use crate::cycles::rows::{ThreadRow, TopCulprit};
use crate::run::CpuRow;
use crate::run::watcher::Snapshot;
use punctual_core::{CpuSet, Nanos};
use punctual_sys::clock;

/// A watcher: of an attached program, which is [`Attached`], or of CPUs, which are [`Disturbed`].
pub trait Watcher<State> {
    fn refresh(&mut self, state: &State);
    /// Nothing is measured any more.
    fn end(&mut self) {}
}

/// The state at a refresh.
pub struct Attached {
    pub name: String,
    /// Since it was attached to.
    pub elapsed: Nanos,
    /// How long it will take; `None`: until interrupted or the program ends.
    pub planned: Option<Nanos>,
    pub threads: Vec<ThreadRow>,
    /// Threads whose cycles are not known yet, or that have none.
    pub others: usize,
    /// What delayed the cycles of the last minute the most.
    pub culprit: Option<TopCulprit>,
}

impl Attached {
    /// Of a run that attaches to a program.
    pub fn of(snapshot: &Snapshot<'_>) -> Attached {
        let now = clock::monotonic();
        let programs = || snapshot.phase.programs.iter().map(|program| &program.cycles);
        Attached {
            name: snapshot.experiment.to_owned(),
            elapsed: snapshot.elapsed,
            planned: snapshot.planned,
            threads: programs().flat_map(|of| of.rows()).collect(),
            others: programs()
                .flat_map(|of| of.threads())
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
    /// How long it will take; `None`: until interrupted.
    pub planned: Option<Nanos>,
    pub cpus: Vec<CpuRow>,
}

impl Disturbed {
    /// Of a run that attaches to CPUs.
    pub fn of(snapshot: &Snapshot<'_>) -> Disturbed {
        let entries = || snapshot.phase.entries.iter();
        Disturbed {
            chosen: entries().fold(CpuSet::new(), |all, of| all.union(of.cpus())),
            elapsed: snapshot.elapsed,
            planned: snapshot.planned,
            cpus: entries().flat_map(|of| of.rows().to_vec()).collect(),
        }
    }
}
