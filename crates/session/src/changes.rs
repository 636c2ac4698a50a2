//! Applies and reverts settings through the journal alone: however a tuning or an experiment ends,
//! `punctual isolate undo` or the next one reverts its settings.

use crate::exit::Failure;
use punctual_host::files::Files;
use punctual_host::journal::record::{ChangePurpose, KernelWrite};
use punctual_host::journal::{
    self, ChangeResult, IfChanged, Journal, JournalError, SavedJournal, StepResult, Store,
    UndoReport, tasks,
};

/// The settings of a machine, and the journals of changes.
#[derive(Clone, Copy)]
pub struct MachineChanges<'a> {
    pub files: &'a dyn Files,
    pub store: &'a dyn Store,
    /// The purpose of the settings: tuning, or an experiment.
    pub purpose: &'a ChangePurpose,
}

/// The error of a journal, as the end of a command.
fn in_journal(error: JournalError) -> Failure {
    match error {
        JournalError::Store { .. } => Failure::failed(error),
        _ => Failure::refused(error),
    }
}

impl MachineChanges<'_> {
    /// Makes these writes, each of the named setting, and returns the results. Settings of an
    /// earlier call are reverted first.
    ///
    /// # Errors
    /// Earlier settings cannot be reverted, or a journal cannot be written; a part may be applied
    /// then, and is in the journal.
    pub fn apply_writes(
        &self,
        writes: &[(&str, &KernelWrite)],
    ) -> Result<Vec<StepResult>, Failure> {
        self.restore_settings()?;
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        let _lock = journal::acquire_lock(self.store).map_err(in_journal)?;
        let written = self.write(writes).map_err(in_journal)?;
        Ok(written)
    }

    fn write(&self, writes: &[(&str, &KernelWrite)]) -> Result<Vec<StepResult>, JournalError> {
        let mut journal = Journal::begin_new(self.store, self.files, self.purpose.clone(), true)?;
        let mut results = Vec::new();
        for (step, write) in writes {
            let effect = journal.write(self.files, step, (*write).clone())?;
            results.push(StepResult {
                step: (*step).to_owned(),
                path: write.path.clone(),
                requested: write.new.clone(),
                effect,
            });
        }
        journal.mark_ready()?;
        Ok(results)
    }

    /// Reverts the settings of this process, or of one of the same purpose that was killed.
    ///
    /// # Errors
    /// Another such process is running; or some setting cannot be reverted: which, and why.
    pub fn restore_settings(&self) -> Result<(), Failure> {
        let is_own = |saved: &SavedJournal| {
            saved.begin.as_ref().is_some_and(|begin| begin.purpose == *self.purpose)
        };
        let own_task_id = tasks::own_id(self.files).map_err(Failure::failed)?;
        let boot_id = journal::boot_id(self.files).map_err(in_journal)?;
        let saved = journal::read_all(self.store).map_err(in_journal)?;
        let is_of_other = |saved: &&SavedJournal| {
            let writer = saved.begin.as_ref().map(|begin| begin.writer);
            is_own(saved)
                && !saved.is_stale(&boot_id)
                && writer.is_some_and(|id| id != own_task_id && tasks::is_alive(self.files, id))
        };
        if let Some(other) = saved.iter().find(is_of_other) {
            let what = match self.purpose {
                ChangePurpose::Tuning => "tuning",
                _ => "experiment",
            };
            let writer_tid = other.begin.as_ref().map_or(0, |begin| begin.writer.tid);
            return Err(Failure::refused(format!(
                "another {what} (process {writer_tid}) is changing the settings of this machine"
            )));
        }
        if !saved.iter().any(is_own) {
            return Ok(());
        }
        let undone = journal::undo_journals(self.store, self.files, IfChanged::Report, is_own);
        let undone = undone.map_err(in_journal)?;
        if undone.is_complete() { Ok(()) } else { Err(not_restored(&undone)) }
    }
}

fn not_restored(report: &UndoReport) -> Failure {
    let journals = report.journals.iter();
    let problems: Vec<String> = journals
        .flat_map(|journal| {
            let failed = journal.failed.iter().map(|one| format!("{}: {}", one.path, one.why));
            let changed = journal.changed_hands.iter().map(|one| {
                format!(
                    "{}: another program set `{}` over `{}`; before it was `{}`",
                    one.path, one.found, one.expected, one.before
                )
            });
            failed.chain(changed)
        })
        .collect();
    Failure::failed(format!(
        "not all settings could be reverted:\n  {}\nhelp: `punctual isolate undo --force` \
         restores what another program changed",
        problems.join("\n  ")
    ))
}

/// Why a write did not take effect; `None` if it did.
pub fn refusal_reason(result: &StepResult) -> Option<String> {
    let reason = match &result.effect {
        ChangeResult::Changed { .. } | ChangeResult::Already => return None,
        ChangeResult::Ignored { value } => format!("the kernel kept `{value}`"),
        ChangeResult::Refused { why, .. } | ChangeResult::HalfMade { why } => why.clone(),
    };
    Some(format!("{}: {reason}", result.path))
}
