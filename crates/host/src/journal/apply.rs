//! Makes changes: announces each in the journal, makes it, then records the result.

use super::record::{
    Applied, ChangePurpose, ChangeRefusal, FileValue, Hierarchy, Intent, JournalAction,
    JournalEvent, KernelWrite, NotMoved, TaskAffinity, TaskPlace,
};
use super::tasks::{self, Membership, TaskStat};
use super::value::{is_same_value, normalize_value};
use super::{Journal, JournalError, Store};
use crate::files::{FileError, Files};
use serde::Serialize;
use std::time::Duration;

/// The number of attempts while the kernel is busy, and the pause between them.
pub(super) const TRIES: u32 = 10;
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// The result of one requested change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "effect")]
pub enum ChangeResult {
    Changed {
        /// The value before.
        old: String,
        /// The value now, as the kernel formats it.
        now: String,
    },
    Already,
    /// The kernel accepted the write and kept its value.
    Ignored {
        /// The unchanged value.
        value: String,
    },
    Refused {
        /// Its error number, if any.
        errno: Option<i32>,
        why: String,
    },
    /// Half of the change was made and the other half failed; undo reverts it.
    HalfMade {
        why: String,
    },
}

/// A requested change and its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StepResult {
    /// The step that requested it.
    pub step: String,
    /// The file, the cgroup or the CPU.
    pub path: String,
    /// The requested value.
    pub requested: String,
    /// The result.
    #[serde(flatten)]
    pub effect: ChangeResult,
}

impl ChangeResult {
    fn from_error(error: &FileError) -> ChangeResult {
        ChangeResult::Refused { errno: error.errno(), why: error.source.to_string() }
    }
    /// Whether the file has the requested value now.
    pub fn has_requested_value(&self) -> bool {
        matches!(self, ChangeResult::Changed { .. } | ChangeResult::Already)
    }
}

impl Journal<'_> {
    /// One write to a file of the kernel. `wanted.old` and `wanted.undo` are planned values; if the
    /// file has changed since, undo restores its current value instead.
    pub fn write(
        &mut self,
        files: &dyn Files,
        step: &str,
        requested: KernelWrite,
    ) -> Result<ChangeResult, JournalError> {
        let current = match files.read(&requested.path) {
            Ok(text) => normalize_value(&text),
            Err(error) => return Ok(ChangeResult::from_error(&error)),
        };
        if is_same_value(&current, &requested.new) {
            return Ok(ChangeResult::Already);
        }
        let mut write = requested;
        if !is_same_value(&current, &write.old) {
            write.undo = if write.undo.is_empty() { Vec::new() } else { vec![current.clone()] };
            write.old = current.clone();
        }
        let (path, new) = (write.path.clone(), write.new.clone());
        let intent_seq = self.append_intent(step, JournalAction::Write(write))?;
        let written = files.write(&path, &new);
        let now = files.read(&path).ok().map(|text| normalize_value(&text));
        let unchanged = now.as_deref().map_or(written.is_err(), |now| is_same_value(now, &current));
        match written {
            Err(error) if unchanged => self.append_refusal(intent_seq, &error),
            // A failed write can nevertheless have changed the file.
            Err(_) | Ok(()) => {
                self.append_event(JournalEvent::Applied(Applied {
                    of: intent_seq,
                    now: now.clone(),
                    not_moved: Vec::new(),
                }))?;
                let now = now.unwrap_or(new);
                Ok(if unchanged {
                    ChangeResult::Ignored { value: now }
                } else {
                    ChangeResult::Changed { old: current, now }
                })
            }
        }
    }

    pub(crate) fn make_cgroup(
        &mut self,
        files: &dyn Files,
        step: &str,
        hierarchy: &Hierarchy,
        path: &str,
    ) -> Result<ChangeResult, JournalError> {
        let intent_seq = self.append_intent(
            step,
            JournalAction::MakeCgroup { hierarchy: hierarchy.clone(), path: path.to_owned() },
        )?;
        match files.create_dir(path) {
            Ok(()) => self
                .append_applied(intent_seq)
                .map(|()| ChangeResult::Changed { old: String::new(), now: path.to_owned() }),
            Err(error) => self.append_refusal(intent_seq, &error),
        }
    }

    /// Enables a controller for the children of a cgroup of version 2 (`cgroup.subtree_control`).
    pub(crate) fn enable_controller(
        &mut self,
        files: &dyn Files,
        step: &str,
        hierarchy: &Hierarchy,
        path: &str,
        controller: &str,
    ) -> Result<ChangeResult, JournalError> {
        let listed = |text: &str| text.split_whitespace().any(|word| word == controller);
        let old = match files.read_trimmed(path) {
            Ok(text) if listed(&text) => return Ok(ChangeResult::Already),
            Ok(text) => text,
            Err(error) => return Ok(ChangeResult::from_error(&error)),
        };
        let (hierarchy, path, controller) =
            (hierarchy.clone(), path.to_owned(), controller.to_owned());
        let (file, word) = (path.clone(), format!("+{controller}"));
        let intent_seq = self
            .append_intent(step, JournalAction::EnableController { hierarchy, path, controller })?;
        match files.write(&file, &word) {
            Ok(()) => {
                self.append_applied(intent_seq)?;
                Ok(ChangeResult::Changed { old, now: files.read_trimmed(&file).unwrap_or(word) })
            }
            Err(error) => self.append_refusal(intent_seq, &error),
        }
    }

    /// Moves tasks into a cgroup, one after the other. Returns those that the kernel refused,
    /// without those that have ended since.
    pub(crate) fn move_tasks(
        &mut self,
        files: &dyn Files,
        step: &str,
        hierarchy: &Hierarchy,
        to: &str,
        movers: &[(TaskStat, TaskPlace)],
        membership: Membership,
    ) -> Result<Vec<NotMoved>, JournalError> {
        let tasks = movers.iter().map(|(_, place)| place.clone()).collect();
        let intent_seq = self.append_intent(
            step,
            JournalAction::MoveTasks { hierarchy: hierarchy.clone(), to: to.to_owned(), tasks },
        )?;
        let mut not_moved = Vec::new();
        for (stat, place) in movers {
            match tasks::move_task(files, hierarchy, to, place.id.tid, membership) {
                Ok(()) => {}
                Err(error) if error.errno() == Some(libc::ESRCH) => {}
                Err(error) => {
                    not_moved.push(NotMoved {
                        id: place.id,
                        errno: error.errno(),
                        why: tasks::explain_refusal(stat, &error),
                    });
                }
            }
        }
        self.append_event(JournalEvent::Applied(Applied {
            of: intent_seq,
            now: None,
            not_moved: not_moved.clone(),
        }))?;
        Ok(not_moved)
    }

    /// Notes the affinities of tasks, because the kernel may forget them during the following
    /// changes.
    pub(crate) fn note_affinities(
        &mut self,
        step: &str,
        tasks: Vec<TaskAffinity>,
    ) -> Result<(), JournalError> {
        self.append_intent(step, JournalAction::NoteAffinities { tasks }).map(drop)
    }

    /// Takes a CPU offline and online again, and restores these files if the kernel changed them
    /// meanwhile.
    pub(crate) fn replug_cpu(
        &mut self,
        files: &dyn Files,
        step: &str,
        cpu: usize,
        may_change: &[String],
    ) -> Result<ChangeResult, JournalError> {
        let switch = online_file(cpu);
        let value = |path: &String| {
            Some(FileValue { path: path.clone(), value: normalize_value(&files.read(path).ok()?) })
        };
        let side_effects: Vec<FileValue> = may_change.iter().filter_map(value).collect();
        let intent_seq = self.append_intent(
            step,
            JournalAction::Replug { cpu, side_effects: side_effects.clone() },
        )?;
        if let Err(error) = files.write(&switch, "0") {
            return self.append_refusal(intent_seq, &error);
        }
        if let Err(error) = bring_online(files, cpu) {
            // Not recorded as done: undo checks the CPU itself and tries again.
            return Ok(ChangeResult::HalfMade {
                why: format!("CPU {cpu} went offline and does not come back: {error}"),
            });
        }
        let wrong: Vec<FileError> =
            side_effects.iter().filter_map(|file| restore_value(files, file).err()).collect();
        self.append_applied(intent_seq)?;
        Ok(match wrong.first() {
            // Undo tries it once more.
            Some(error) => ChangeResult::Refused {
                errno: error.errno(),
                why: format!("its changes are not restored: {error}"),
            },
            None => ChangeResult::Changed {
                old: "online".into(),
                now: "offline and online again".into(),
            },
        })
    }

    /// Records a change that another program has already made, so that undo reverts it.
    pub(crate) fn note_made(
        &mut self,
        step: &str,
        action: JournalAction,
        now: Option<String>,
    ) -> Result<(), JournalError> {
        let intent_seq = self.append_intent(step, action)?;
        let applied = Applied { of: intent_seq, now, not_moved: Vec::new() };
        self.append_event(JournalEvent::Applied(applied)).map(drop)
    }

    fn append_intent(&mut self, step: &str, action: JournalAction) -> Result<u64, JournalError> {
        self.append_event(JournalEvent::Intent(Intent { step: step.to_owned(), action }))
    }

    fn append_applied(&mut self, of: u64) -> Result<(), JournalError> {
        self.append_event(JournalEvent::Applied(Applied { of, now: None, not_moved: Vec::new() }))
            .map(drop)
    }

    fn append_refusal(&mut self, of: u64, error: &FileError) -> Result<ChangeResult, JournalError> {
        let (errno, why) = (error.errno(), error.source.to_string());
        self.append_event(JournalEvent::Refused(ChangeRefusal { of, errno, why: why.clone() }))?;
        Ok(ChangeResult::Refused { errno, why })
    }

    /// Writes a list of values through their own journal (`check --fix`). Returns the result of
    /// each, in order.
    ///
    /// Holds the lock throughout. If nothing had to be changed, no journal remains.
    pub fn apply_writes(
        store: &dyn Store,
        files: &dyn Files,
        requested: &[RequestedWrite],
    ) -> Result<Vec<StepResult>, JournalError> {
        let _lock = super::acquire_lock(store)?;
        super::put_aside_stale(store, &super::boot_id(files)?)?;
        let mut journal = Journal::begin_new(store, files, ChangePurpose::Fix, false)?;
        let mut applied = Vec::new();
        for RequestedWrite { step, path, value } in requested {
            let old = files.read(path).map(|text| normalize_value(&text)).unwrap_or_default();
            let effect = journal.write(files, step, KernelWrite::new(path, old, value))?;
            applied.push(StepResult {
                step: step.clone(),
                path: path.clone(),
                requested: value.clone(),
                effect,
            });
        }
        if applied.iter().any(|one| matches!(one.effect, ChangeResult::Changed { .. })) {
            journal.mark_ready()?;
        } else {
            store.remove(journal.file_name()).map_err(super::in_store(
                store,
                "remove",
                journal.file_name(),
            ))?;
        }
        Ok(applied)
    }
}

/// A requested value of a file, and the rule or step that requests it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestedWrite {
    /// The rule or step that requests it.
    pub step: String,
    pub path: String,
    /// The value to write.
    pub value: String,
}

/// The online switch of a CPU (Documentation/core-api/cpu_hotplug.rst). CPU 0 of most machines has
/// none.
pub fn online_file(cpu: usize) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/online")
}

pub(super) fn bring_online(files: &dyn Files, cpu: usize) -> Result<(), FileError> {
    write_with_retries(files, &online_file(cpu), "1")
}

/// Retries on EBUSY, [`TRIES`] times in all.
pub(super) fn write_with_retries(
    files: &dyn Files,
    path: &str,
    text: &str,
) -> Result<(), FileError> {
    let mut tries = 1;
    loop {
        match files.write(path, text) {
            Err(error)
                if tries < TRIES
                    && matches!(error.errno(), Some(libc::EBUSY | libc::EAGAIN | libc::EINTR)) =>
            {
                tries += 1;
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}

/// Restores a file's former value, if it has changed. A file that is gone needs nothing.
fn restore_value(files: &dyn Files, file: &FileValue) -> Result<(), FileError> {
    match files.read(&file.path) {
        Ok(now) if is_same_value(&now, &file.value) => Ok(()),
        Ok(_) => files.write(&file.path, &file.value),
        Err(error) if error.is_missing() => Ok(()),
        Err(error) => Err(error),
    }
}
