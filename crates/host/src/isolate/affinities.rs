//! Affinities that the kernel may forget while tasks are moved between CPUs.

use crate::files::{FileError, Files};
use crate::journal::record::{TaskAffinity, TaskId};
use crate::journal::tasks;
use crate::journal::{Journal, JournalError};
use std::collections::HashSet;

/// The tasks whose affinities are noted in the journal.
#[derive(Default)]
pub struct NotedAffinities {
    known: HashSet<TaskId>,
}

impl NotedAffinities {
    /// Notes the given threads that are not yet noted and whose affinity user space may set.
    pub fn note(
        &mut self,
        files: &dyn Files,
        journal: &mut Journal<'_>,
        step: &str,
        threads: &[i32],
    ) -> Result<(), JournalError> {
        let mut fresh = Vec::new();
        for tid in threads {
            // An ended task needs no note.
            let (Ok(stat), Ok(cpus)) = (tasks::stat(files, *tid), tasks::affinity(files, *tid))
            else {
                continue;
            };
            if !stat.is_bound() && self.known.insert(stat.id) {
                fresh.push(TaskAffinity { id: stat.id, cpus });
            }
        }
        if fresh.is_empty() { Ok(()) } else { journal.note_affinities(step, fresh) }
    }

    /// Notes all threads of the system.
    pub(crate) fn note_all(
        &mut self,
        files: &dyn Files,
        journal: &mut Journal<'_>,
        step: &str,
    ) -> Result<Result<(), FileError>, JournalError> {
        match tasks::all_threads(files) {
            Ok(threads) => self.note(files, journal, step, &threads).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }
}
