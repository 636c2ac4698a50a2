//! Undoes the changes of a journal, the last one first.

use super::apply::{TRIES, bring_online, online_file, write_with_retries};
use super::record::{
    ChangePurpose, FileValue, Hierarchy, JournalAction, JournalEvent, KernelWrite, TaskAffinity,
    TaskPlace,
};
use super::report::{ChangedHands, Failed, JournalReport, UndoReport};
use super::restore_tasks::{Return, TaskOrigins, restore_affinity};
use super::saved::{ChangeOutcome, SavedChange, SavedJournal, put_aside_stale, read_all};
use super::tasks;
use super::value::{is_same_value, normalize_value};
use super::{Journal, JournalError, Store, acquire_lock, boot_id, in_store};
use crate::files::Files;
use punctual_core::CpuSet;
use std::collections::HashMap;
use std::time::Duration;

/// The pause, [`TRIES`] times at most, for an intermediate step to take effect.
const MOMENT: Duration = Duration::from_millis(2);

/// The handling of a file that another process has changed since.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IfChanged {
    /// Report it, do not change it, and keep the journal.
    #[default]
    Report,
    /// Write the old value anyway.
    Overwrite,
    /// Report it, do not change it, and remove the journal, even if something could not be
    /// restored.
    Keep,
}

/// Undoes every journal that `selected` accepts, the newest first.
///
/// Can be killed at any moment and repeated. Holds the lock throughout. An error means that the
/// journals themselves could not be read; values that could not be restored are in the report.
pub fn undo_journals(
    store: &dyn Store,
    files: &dyn Files,
    if_changed: IfChanged,
    selected: impl Fn(&SavedJournal) -> bool,
) -> Result<UndoReport, JournalError> {
    if store.file_names().map_err(in_store(store, "list", ""))?.is_empty() {
        return Ok(UndoReport::default());
    }
    let _lock = acquire_lock(store)?;
    undo_locked(store, files, if_changed, selected)
}

/// [`undo_journals`] for callers that already hold the lock.
pub(crate) fn undo_locked(
    store: &dyn Store,
    files: &dyn Files,
    if_changed: IfChanged,
    selected: impl Fn(&SavedJournal) -> bool,
) -> Result<UndoReport, JournalError> {
    let mut report = UndoReport {
        put_aside: put_aside_stale(store, &boot_id(files)?)?,
        ..UndoReport::default()
    };
    for saved in read_all(store)?.iter().rev().filter(|saved| selected(saved)) {
        report.journals.push(Undoing::new(files, saved, if_changed).undo_all(store)?);
    }
    Ok(report)
}

/// The undo of one journal.
struct Undoing<'a> {
    files: &'a dyn Files,
    saved: &'a SavedJournal,
    origins: TaskOrigins,
    if_changed: IfChanged,
    report: JournalReport,
}

/// The parent of all kernel threads but itself (init/main.c, rest_init).
const KTHREADD: i32 = 2;

/// Whether a change is settled: reverted, or given up as requested.
type Settled = bool;

impl<'a> Undoing<'a> {
    fn new(files: &'a dyn Files, saved: &'a SavedJournal, if_changed: IfChanged) -> Undoing<'a> {
        let purpose = match saved.begin.as_ref().map(|begin| &begin.purpose) {
            Some(ChangePurpose::Fix) => "fix",
            Some(ChangePurpose::Tuning) => "tuning",
            Some(ChangePurpose::Experiment) => "experiment",
            Some(ChangePurpose::Partition(_)) | None => "partition",
        };
        let damaged = saved.damaged.clone();
        let report = JournalReport {
            name: saved.name.clone(),
            purpose,
            damaged,
            ..JournalReport::default()
        };
        Undoing { files, saved, origins: TaskOrigins::from_journal(saved), if_changed, report }
    }

    fn undo_all(mut self, store: &dyn Store) -> Result<JournalReport, JournalError> {
        let mut journal = Journal::resume_saved(store, self.saved)?;
        let mut all_settled = true;
        // Affinities last: the kernel overwrites them when a cgroup is removed, and refuses CPUs
        // that still belong to a partition.
        let affinity = |entry: &&SavedChange| {
            matches!(entry.intent.action, JournalAction::NoteAffinities { .. })
        };
        let (affinities, others): (Vec<_>, Vec<_>) =
            self.saved.entries.iter().rev().partition(affinity);
        for entry in others.into_iter().chain(affinities) {
            if entry.undone || matches!(entry.outcome, ChangeOutcome::Refused(_)) {
                continue;
            }
            if self.take_back(entry) {
                // A full disk must not keep the machine from being restored; without this record a
                // later undo only checks this change once more.
                let _ = journal.append_event(JournalEvent::Undone { of: entry.seq });
            } else {
                all_settled = false;
            }
        }
        all_settled &= self.widen_newborn();
        self.report.complete =
            all_settled && (self.saved.damaged.is_empty() || self.if_changed != IfChanged::Report);
        if self.report.complete {
            store.remove(&self.saved.name).map_err(in_store(store, "remove", &self.saved.name))?;
        }
        Ok(self.report)
    }

    fn take_back(&mut self, entry: &SavedChange) -> Settled {
        match &entry.intent.action {
            JournalAction::Write(write) => self.restore_file(write, &entry.outcome),
            JournalAction::MakeCgroup { hierarchy, path } => self.remove_cgroup(hierarchy, path),
            JournalAction::MoveTasks { hierarchy, to, tasks } => {
                self.return_tasks(hierarchy, to, tasks)
            }
            JournalAction::NoteAffinities { tasks } => self.restore_affinities(tasks),
            JournalAction::EnableController { path, controller, .. } => {
                self.disable_controller(path, controller)
            }
            JournalAction::Replug { cpu, side_effects } => self.bring_back(*cpu, side_effects),
        }
    }

    fn restore_file(&mut self, write: &KernelWrite, outcome: &ChangeOutcome) -> Settled {
        let Some((last, steps)) = write.undo.split_last() else { return self.nothing_left() };
        let found = match self.files.read(&write.path) {
            Ok(text) => normalize_value(&text),
            // The setting vanished with a freed interrupt or an unplugged device.
            Err(error) if error.is_missing() => return self.nothing_left(),
            Err(error) => return self.report_failure(&write.path, error.to_string()),
        };
        if is_same_value(&found, &write.old) {
            return self.nothing_left();
        }
        let recorded = match outcome {
            ChangeOutcome::Applied(did) => did.now.as_ref(),
            _ => None,
        };
        let expected = recorded.unwrap_or(&write.new);
        let ours = [expected, &write.new]
            .into_iter()
            .chain(steps)
            .any(|value| is_same_value(&found, value));
        if !ours && !self.may_overwrite(&write.path, expected, &found, &write.old) {
            return self.if_changed == IfChanged::Keep;
        }
        for step in steps {
            // An intermediate step: only the last one counts.
            let _ = self.files.write(&write.path, step);
            write.settles.iter().for_each(|file| self.wait_for(file));
        }
        self.restore_value(&write.path, last, &write.old)
    }

    /// Waits briefly for a value that the kernel may set.
    fn wait_for(&self, file: &FileValue) {
        for _ in 0..TRIES {
            if self.files.read(&file.path).is_ok_and(|now| is_same_value(&now, &file.value)) {
                return;
            }
            std::thread::sleep(MOMENT);
        }
    }

    /// Writes a file's old value and verifies it.
    fn restore_value(&mut self, path: &str, text: &str, old: &str) -> Settled {
        if let Err(error) = write_with_retries(self.files, path, text) {
            return self.report_failure(path, error.to_string());
        }
        match self.files.read(path) {
            Ok(now) if is_same_value(&now, old) => {
                self.report
                    .restored
                    .push(FileValue { path: path.to_owned(), value: old.to_owned() });
                true
            }
            Ok(now) => self.report_failure(
                path,
                format!("it took `{text}` and holds `{}`", normalize_value(&now)),
            ),
            Err(error) => self.report_failure(path, error.to_string()),
        }
    }

    fn remove_cgroup(&mut self, hierarchy: &Hierarchy, path: &str) -> Settled {
        if !self.files.exists(path) {
            return self.nothing_left();
        }
        match self.origins.remove_cgroup(self.files, hierarchy, path) {
            Ok(sent) => {
                self.report.tasks_returned += sent;
                true
            }
            Err(error) => {
                let inside = tasks::list_cgroups(self.files, path).unwrap_or_default();
                let other_children = inside
                    .get(1)
                    .map(|first| format!(" (it has a new child, {first})"))
                    .unwrap_or_default();
                self.report_failure(path, format!("{error}{other_children}"))
            }
        }
    }

    fn return_tasks(&mut self, hierarchy: &Hierarchy, to: &str, places: &[TaskPlace]) -> Settled {
        let cgroup_by_task = match tasks::cgroup_by_task(self.files, hierarchy) {
            Ok(cgroup_by_task) => cgroup_by_task,
            Err(error) => return self.report_failure(to, error.to_string()),
        };
        let mut settled = true;
        for task in places.iter().rev() {
            match self.origins.send_back(self.files, hierarchy, task, &cgroup_by_task) {
                Return::Home { moved } => self.report.tasks_returned += usize::from(moved),
                Return::Gone => {}
                Return::ChangedSince => {
                    let found = cgroup_by_task.get(&task.id.tid).cloned().unwrap_or_default();
                    let (path, before) =
                        (format!("task {} ({})", task.id.tid, task.name), task.from.clone());
                    let expected = to.to_owned();
                    self.report.changed_hands.push(ChangedHands {
                        path,
                        expected,
                        found,
                        before,
                        overwritten: false,
                    });
                    // The process that moved it knows its place better than a journal.
                }
                Return::Failed(error) => {
                    settled =
                        self.report_failure(&format!("task {}", task.id.tid), error.to_string())
                }
            }
        }
        settled
    }

    fn restore_affinities(&mut self, tasks: &[TaskAffinity]) -> Settled {
        let mut settled = true;
        for task in tasks {
            match restore_affinity(self.files, self.saved.partition_note(), task) {
                Return::Home { moved } => self.report.affinities_restored += usize::from(moved),
                Return::Gone => {}
                Return::ChangedSince => self.report.affinities_left += 1,
                Return::Failed(error) => {
                    settled = self.report_failure(
                        &format!("the affinity of task {}", task.id.tid),
                        error.to_string(),
                    );
                }
            }
        }
        settled
    }

    /// Kernel threads created during the partition's lifetime are not noted, and only have the CPUs
    /// that it left: khugepaged, when transparent huge pages are enabled again. They get kthreadd's
    /// affinity, as usual (kernel/kthread.c, kthread and kthreadd: both use the same mask).
    fn widen_newborn(&mut self) -> Settled {
        let noted = self.saved.entries.iter().filter_map(|entry| match &entry.intent.action {
            JournalAction::NoteAffinities { tasks } => Some(tasks),
            _ => None,
        });
        let noted: HashMap<i32, &TaskAffinity> =
            noted.flatten().map(|task| (task.id.tid, task)).collect();
        let (Some(note), Some(kthreadd)) = (self.saved.partition_note(), noted.get(&KTHREADD))
        else {
            return true;
        };
        let left = kthreadd.cpus.intersection(&note.housekeeping);
        let mut settled = true;
        for tid in self
            .files
            .list("/proc")
            .unwrap_or_default()
            .iter()
            .filter_map(|name| name.parse::<i32>().ok())
        {
            // A thread that ended since it was listed needs nothing.
            let Ok(stat) = tasks::read_stat(self.files, tid) else { continue };
            let is_noted = noted.get(&tid).is_some_and(|task| task.id == stat.id);
            let newborn = stat.is_kernel_thread() && !stat.is_bound() && !is_noted;
            if !newborn
                || left == kthreadd.cpus
                || tasks::read_affinity(self.files, tid).ok().as_ref() != Some(&left)
            {
                continue;
            }
            let task = TaskAffinity { id: stat.id, cpus: kthreadd.cpus.clone() };
            settled &= self.restore_affinities(std::slice::from_ref(&task));
        }
        settled
    }

    fn disable_controller(&mut self, path: &str, controller: &str) -> Settled {
        let listed = |text: &str| text.split_whitespace().any(|word| word == controller);
        match self.files.read(path) {
            Ok(text) if listed(&text) => {}
            Ok(_) => return self.nothing_left(),
            Err(error) => return self.report_failure(path, error.to_string()),
        }
        let without_controller = format!("without {controller}");
        let user = self.who_uses(path, controller);
        if let Some(user) = user
            && !self.may_overwrite(
                path,
                controller,
                &format!("{controller}, which {user} uses"),
                &without_controller,
            )
        {
            return self.if_changed == IfChanged::Keep;
        }
        match write_with_retries(self.files, path, &format!("-{controller}")) {
            Ok(()) => {
                self.report
                    .restored
                    .push(FileValue { path: path.to_owned(), value: without_controller });
                true
            }
            Err(error) => self.report_failure(path, error.to_string()),
        }
    }

    /// A sibling cgroup that has begun to use the controller, so that removing it would change more
    /// than we did.
    fn who_uses(&self, subtree_control: &str, controller: &str) -> Option<String> {
        let (parent, _) = subtree_control.rsplit_once('/')?;
        let names = self.files.list(parent).ok()?;
        let uses = |cgroup: &String| {
            let cpus = self.files.read_trimmed(&format!("{cgroup}/{controller}.cpus"));
            cpus.is_ok_and(|cpus| !cpus.is_empty())
        };
        names.into_iter().map(|name| format!("{parent}/{name}")).find(uses)
    }

    fn bring_back(&mut self, cpu: usize, side_effects: &[FileValue]) -> Settled {
        let switch = online_file(cpu);
        match self.files.read_trimmed(&switch) {
            Ok(state) if state == "0" => match bring_online(self.files, cpu) {
                Ok(()) => self.report.restored.push(FileValue { path: switch, value: "1".into() }),
                Err(error) => return self.report_failure(&switch, error.to_string()),
            },
            Ok(_) => self.report.already += 1,
            Err(error) if error.is_missing() => self.report.already += 1,
            Err(error) => return self.report_failure(&switch, error.to_string()),
        }
        // All of them, also after a failed one.
        let settled: Vec<Settled> =
            side_effects.iter().map(|file| self.restore_side_effect(cpu, file)).collect();
        settled.into_iter().all(|settled| settled)
    }

    fn restore_side_effect(&mut self, cpu: usize, file: &FileValue) -> Settled {
        let found = match self.files.read(&file.path) {
            Ok(text) => normalize_value(&text),
            Err(error) if error.is_missing() => return true,
            Err(error) => return self.report_failure(&file.path, error.to_string()),
        };
        if is_same_value(&found, &file.value) {
            return true;
        }
        // Unplugging leaves a set without the CPU; any other set was written by another process.
        let ours = found.parse::<CpuSet>().is_ok_and(|set| !set.contains(cpu));
        let expected = format!("a set without CPU {cpu}");
        if !ours && !self.may_overwrite(&file.path, &expected, &found, &file.value) {
            return self.if_changed == IfChanged::Keep;
        }
        self.restore_value(&file.path, &file.value, &file.value)
    }

    /// Reports a foreign change; returns whether the old value is to be written anyway.
    fn may_overwrite(&mut self, path: &str, expected: &str, found: &str, before: &str) -> bool {
        let overwritten = self.if_changed == IfChanged::Overwrite;
        let (path, expected, found) = (path.to_owned(), expected.to_owned(), found.to_owned());
        self.report.changed_hands.push(ChangedHands {
            path,
            expected,
            found,
            before: before.to_owned(),
            overwritten,
        });
        overwritten
    }

    fn nothing_left(&mut self) -> Settled {
        self.report.already += 1;
        true
    }

    fn report_failure(&mut self, path: &str, why: String) -> Settled {
        self.report.failed.push(Failed { path: path.to_owned(), why });
        self.if_changed == IfChanged::Keep
    }
}
