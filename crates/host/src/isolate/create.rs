//! Creates a partition: executes the plan step by step; the failure of an essential step reverts
//! everything.

use super::NotedAffinities;
use super::evict::{self, Eviction};
use super::machine::check_rights;
use super::plan::{self, Change, IsolationPlan, PlanStep, Skipped, plan_partition};
use super::request::PartitionRequest;
use super::{Refusal, advice};
use crate::files::Files;
use crate::journal::record::{ChangePurpose, KernelWrite, PartitionNote};
use crate::journal::undo::undo_locked;
use crate::journal::{
    self, ChangeResult, IfChanged, Journal, JournalError, StepResult, Store, UndoReport,
};
use punctual_core::Finding;
use serde::Serialize;
use std::time::Duration;

/// The time for a partition of version 2 to become valid again after its CPUs were unplugged:
/// before Linux 6.10 a workqueue does that.
const VERIFY_TRIES: u32 = 100;
const VERIFY_PAUSE: Duration = Duration::from_millis(20);

/// An existing partition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Partition {
    /// Its CPUs, names and hierarchy.
    pub note: PartitionNote,
    /// The journal that reverts it.
    pub journal: String,
    /// Every requested change and its result, in order.
    pub applied: Vec<StepResult>,
    /// Omitted changes, with the reasons.
    pub skipped: Vec<Skipped>,
    /// The result of moving the tasks.
    pub tasks: Eviction,
    pub advice: Vec<Finding>,
    /// Journals of an earlier boot that were set aside.
    pub put_aside: Vec<String>,
}

impl Partition {
    /// The requested changes that did not take effect.
    pub fn refused_changes(&self) -> impl Iterator<Item = &StepResult> {
        self.applied.iter().filter(|one| !one.effect.has_requested_value())
    }
}

/// Why there is no partition.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Nothing has been changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nothing has been changed: the journals cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An essential step failed half way; everything was undone, as the report shows.
    #[error(
        "{what}; {} taken back",
        if undone.is_complete() { "everything was" } else { "not everything could be" }
    )]
    Failed { what: String, undone: UndoReport },
}

/// Makes a partition.
///
/// Refuses requests that would make the machine unusable before anything is changed. Holds the lock
/// of the journals throughout.
pub fn create_partition(
    request: &PartitionRequest,
    files: &dyn Files,
    store: &dyn Store,
) -> Result<Partition, CreateError> {
    plan::check_request(request)?;
    check_rights(files)?;
    let _lock = journal::acquire_lock(store)?;
    let put_aside = journal::put_aside_stale(store, &journal::boot_id(files)?)?;
    if let Some(standing) =
        journal::read_all(store)?.iter().find(|saved| saved.partition_note().is_some())
    {
        return Err(
            Refusal::AlreadyActive(format!("{}/{}", store.store_path(), standing.name)).into()
        );
    }
    let plan = plan_partition(files, request)?;
    let note = PartitionNote {
        cpus: plan.machine.rt.clone(),
        housekeeping: plan.machine.housekeeping.clone(),
        hierarchy: plan.machine.cpusets.hierarchy.clone(),
        rt: request.rt_name.clone(),
        nrt: request.nrt_name.clone(),
    };
    let advice = advice::find_advice(files, &plan.machine);
    let mut journal = Journal::begin_new(
        store,
        files,
        ChangePurpose::Partition(note.clone()),
        request.for_this_process,
    )?;
    let name = journal.file_name().to_owned();
    let mut maker = PartitionMaker {
        files,
        request,
        plan: &plan,
        journal: &mut journal,
        noted: NotedAffinities::default(),
        done: CreatedParts::default(),
    };
    match maker.make_all() {
        Ok(()) => {
            let CreatedParts { applied, tasks } = maker.done;
            let journal = format!("{}/{name}", store.store_path());
            Ok(Partition {
                note,
                journal,
                applied,
                skipped: plan.skipped,
                tasks,
                advice,
                put_aside,
            })
        }
        Err(what) => {
            let undone = undo_locked(store, files, IfChanged::Report, |saved| saved.name == name)?;
            Err(CreateError::Failed { what, undone })
        }
    }
}

#[derive(Default)]
struct CreatedParts {
    applied: Vec<StepResult>,
    tasks: Eviction,
}

struct PartitionMaker<'a, 'j> {
    files: &'a dyn Files,
    request: &'a PartitionRequest,
    plan: &'a IsolationPlan,
    journal: &'a mut Journal<'j>,
    noted: NotedAffinities,
    done: CreatedParts,
}

impl PartitionMaker<'_, '_> {
    fn make_all(&mut self) -> Result<(), String> {
        for step in &self.plan.steps {
            self.make_change(step).map_err(|why| format!("{}: {why}", step.name))?;
        }
        self.journal.mark_ready().map_err(|error| error.to_string())
    }

    /// Makes one change. An error means that no partition is possible without it.
    fn make_change(&mut self, step: &PlanStep) -> Result<(), String> {
        let (files, name, journal) = (self.files, step.name.as_str(), &mut *self.journal);
        let hierarchy = &self.plan.machine.cpusets.hierarchy;
        let (path, requested, effect) = match &step.change {
            Change::NoteAffinities => {
                let noted =
                    self.noted.note_all(files, journal, name).map_err(|error| error.to_string())?;
                return noted.map_err(|error| error.to_string());
            }
            Change::MoveTasks { to, .. } => {
                let evicted = evict::evict_tasks(
                    files,
                    journal,
                    &self.plan.machine,
                    &mut self.noted,
                    to,
                    &self.request.leave,
                );
                self.done.tasks = evicted.map_err(|error| error.to_string())?;
                return Ok(());
            }
            Change::ConfineTasks => {
                let (machine, tasks) = (&self.plan.machine, &mut self.done.tasks);
                let confined = evict::confine_threads(
                    files,
                    journal,
                    machine,
                    &mut self.noted,
                    tasks,
                    &self.request.leave,
                );
                return confined.map_err(|error| error.to_string());
            }
            Change::BecomePartition { path, kinds } => return self.become_partition(path, kinds),
            Change::Verify { path, kinds } => return self.wait_until_valid(path, kinds),
            Change::EnableController { path } => (
                path.clone(),
                "+cpuset".into(),
                journal.enable_controller(files, name, hierarchy, path, "cpuset"),
            ),
            Change::MakeCgroup { path } => {
                (path.clone(), "a cgroup".into(), journal.make_cgroup(files, name, hierarchy, path))
            }
            Change::Write(write) => {
                (write.path.clone(), write.new.clone(), journal.write(files, name, write.clone()))
            }
            Change::Replug { cpu, may_change } => {
                let path = journal::apply::online_file(*cpu);
                (path, "0, then 1".into(), journal.replug_cpu(files, name, *cpu, may_change))
            }
        };
        let effect = effect.map_err(|error| error.to_string())?;
        let failure = match &effect {
            ChangeResult::Refused { why, .. } if step.essential => {
                Some(format!("cannot write `{requested}` to {path}: {why}"))
            }
            // A lost CPU is a failure, even if moving its timers was not essential.
            ChangeResult::HalfMade { why } => Some(why.clone()),
            _ => None,
        };
        let path = step.about.as_ref().map_or(path.clone(), |about| format!("{path} ({about})"));
        self.done.applied.push(StepResult { step: step.name.clone(), path, requested, effect });
        failure.map_or(Ok(()), Err)
    }

    /// Requests the best kind of partition that the kernel knows (kernel/cgroup/cpuset.c,
    /// cpuset_partition_write).
    fn become_partition(&mut self, path: &str, kinds: &[&str]) -> Result<(), String> {
        let mut reason = String::new();
        for kind in kinds {
            let write = KernelWrite::without_undo(path.to_owned(), (*kind).to_owned());
            let effect = self
                .journal
                .write(self.files, "partition", write)
                .map_err(|error| error.to_string())?;
            let (step, path, requested) = ("partition".into(), path.to_owned(), (*kind).to_owned());
            self.done.applied.push(StepResult { step, path, requested, effect: effect.clone() });
            match effect {
                ChangeResult::Refused { why: refusal, .. } => reason = refusal,
                _ => return Ok(()),
            }
        }
        Err(format!("the kernel does not make it a partition: {path}: {reason}"))
    }

    /// Waits until the kernel reports the partition as valid.
    fn wait_until_valid(&mut self, path: &str, kinds: &[&str]) -> Result<(), String> {
        let mut holds = String::new();
        for _ in 0..VERIFY_TRIES {
            holds = self.files.read_trimmed(path).map_err(|error| error.to_string())?;
            if kinds.contains(&holds.as_str()) {
                return Ok(());
            }
            std::thread::sleep(VERIFY_PAUSE);
        }
        Err(format!("the kernel does not make it a partition: {path} holds `{holds}`"))
    }
}
