//! Applies and reverts settings through the journal alone: however a tuning ends, `punctual isolate
//! undo` or the next tuning reverts its settings.

use super::setting::Setting;
use punctual_host::files::Files;
use punctual_host::journal::record::{ChangePurpose, FileValue};
use punctual_host::journal::value::{meaning, same};
use punctual_host::journal::{
    self, ChangeResult, IfChanged, Journal, JournalError, SavedJournal, StepResult, Store,
    UndoReport, tasks,
};
use punctual_session::exit::Failure;

/// The settings of a machine, and the journals of changes.
#[derive(Clone, Copy)]
pub struct MachineChanges<'a> {
    pub files: &'a dyn Files,
    pub store: &'a dyn Store,
}

/// The error of a journal, as the end of a command.
fn in_journal(error: JournalError) -> Failure {
    match error {
        JournalError::Store { .. } => Failure::failed(error),
        _ => Failure::refused(error),
    }
}

impl MachineChanges<'_> {
    /// Applies these settings and returns the result of each write. Settings of an earlier call are
    /// reverted first.
    ///
    /// # Errors
    /// Earlier settings cannot be reverted, or a journal cannot be written; a part may be applied
    /// then, and is in the journal.
    pub fn set(&self, settings: &[&Setting]) -> Result<Vec<StepResult>, Failure> {
        self.restore()?;
        if settings.is_empty() {
            return Ok(Vec::new());
        }
        let _lock = journal::lock(self.store).map_err(in_journal)?;
        let written = self.write(settings).map_err(in_journal)?;
        Ok(written)
    }

    fn write(&self, settings: &[&Setting]) -> Result<Vec<StepResult>, JournalError> {
        let mut journal = Journal::begin(self.store, self.files, ChangePurpose::Tuning, true)?;
        let mut results = Vec::new();
        for setting in settings {
            for write in &setting.writes {
                let effect = journal.write(self.files, &setting.name, write.clone())?;
                results.push(StepResult {
                    step: setting.name.clone(),
                    path: write.path.clone(),
                    requested: write.new.clone(),
                    effect,
                });
            }
        }
        journal.ready()?;
        Ok(results)
    }

    /// Reverts the settings of this process, or of a tuning that was killed.
    ///
    /// # Errors
    /// Another tuning is running; or some setting cannot be reverted: which, and why.
    pub fn restore(&self) -> Result<(), Failure> {
        let own = tasks::own_id(self.files).map_err(Failure::failed)?;
        let boot_id = journal::boot_id(self.files).map_err(in_journal)?;
        let saved = journal::read_all(self.store).map_err(in_journal)?;
        let is_of_other = |saved: &&SavedJournal| {
            let writer = saved.begin.as_ref().map(|begin| begin.writer);
            is_tuning(saved)
                && !saved.is_stale(&boot_id)
                && writer.is_some_and(|id| id != own && tasks::is_alive(self.files, id))
        };
        if let Some(other) = saved.iter().find(is_of_other) {
            let by = other.begin.as_ref().map_or(0, |begin| begin.writer.tid);
            return Err(Failure::refused(format!(
                "another tuning (process {by}) is changing the settings of this machine"
            )));
        }
        if !saved.iter().any(is_tuning) {
            return Ok(());
        }
        let undone = journal::undo(self.store, self.files, IfChanged::Report, is_tuning);
        let undone = undone.map_err(in_journal)?;
        if undone.is_complete() { Ok(()) } else { Err(not_restored(&undone)) }
    }
}

fn is_tuning(saved: &SavedJournal) -> bool {
    saved.begin.as_ref().is_some_and(|begin| begin.purpose == ChangePurpose::Tuning)
}

fn not_restored(report: &UndoReport) -> Failure {
    let journals = report.journals.iter();
    let why: Vec<String> = journals
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
        why.join("\n  ")
    ))
}

/// Why a write did not take effect; `None` if it did.
pub fn refusal(result: &StepResult) -> Option<String> {
    let why = match &result.effect {
        ChangeResult::Changed { .. } | ChangeResult::Already => return None,
        ChangeResult::Ignored { value } => format!("the kernel kept `{value}`"),
        ChangeResult::Refused { why, .. } | ChangeResult::HalfMade { why } => why.clone(),
    };
    Some(format!("{}: {why}", result.path))
}

/// The contents of the files of these settings.
pub fn snapshot(files: &dyn Files, settings: &[Setting]) -> Vec<FileValue> {
    let mut paths: Vec<&String> = settings
        .iter()
        .flat_map(|setting| setting.writes.iter().map(|write| &write.path))
        .collect();
    paths.sort();
    paths.dedup();
    let held = |path: &String| {
        let value = files.read(path).map_or_else(|why| why.to_string(), |text| meaning(&text));
        FileValue { path: path.clone(), value }
    };
    paths.into_iter().map(held).collect()
}

/// The differences of two snapshots, in words.
pub fn differences(before: &[FileValue], after: &[FileValue]) -> Vec<String> {
    let both = before.iter().zip(after);
    let differing = both.filter(|(before, after)| !same(&before.value, &after.value));
    let words = |(before, after): (&FileValue, &FileValue)| {
        format!("{} holds `{}`; it held `{}`", before.path, after.value, before.value)
    };
    differing.map(words).collect()
}
