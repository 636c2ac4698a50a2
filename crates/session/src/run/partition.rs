//! The partition of an experiment: created before anything else, undone after the last phase. Or an
//! existing one (`punctual isolate create`), if the experiment measures on its CPUs: it is entered,
//! and left as it is.

use crate::exit::Failure;
use crate::messages::Listener;
use punctual_core::{CpuSet, Finding, Severity};
use punctual_host::files::Root;
use punctual_host::isolate::{
    self, CreateError, EnteredPartition, Membership, PartitionRequest, TargetCpus, move_process,
};
use punctual_host::journal::record::{CgroupVersion, PartitionNote};
use punctual_host::journal::{IfChanged, JournalDirectory};
use punctual_plan::{PartitionPlan, Plan};
use punctual_sys::attributes;
use std::path::{Path, PathBuf};

/// A partition. One created here exists as long as this lives; after kill -9 the next command
/// reports it, and `punctual isolate undo` undoes it.
pub struct HeldPartition {
    note: PartitionNote,
    /// Whether to undo the partition.
    standing: bool,
    messages: Listener,
}

impl HeldPartition {
    /// Creates the partition; the findings list its defects.
    pub fn make(
        plan: &PartitionPlan,
        whole: &Plan,
        messages: Listener,
    ) -> Result<(HeldPartition, Vec<Finding>), Failure> {
        if plan.found
            && let Some(held) = HeldPartition::found(plan, messages)?
        {
            return Ok((held, Vec::new()));
        }
        // The experiment's own governor is that of all CPUs.
        let own = whole.governor.as_ref().map(|_| "governor".to_owned());
        let request = PartitionRequest {
            rt_name: plan.name.clone(),
            nrt_name: plan
                .housekeeping
                .clone()
                .unwrap_or_else(|| format!("{}-housekeeping", plan.name)),
            without: plan.disable.iter().cloned().chain(own).collect(),
            for_this_process: true,
            ..PartitionRequest::new(TargetCpus::Cpus(plan.cpus.clone()))
        };
        let made = isolate::create(&request, &Root::system(), &JournalDirectory::system())
            .map_err(|error| match error {
                failed @ CreateError::Failed { .. } => Failure::failed(failed),
                refused => Failure::refused(refused),
            })?;
        let mut findings = made.advice.clone();
        let refused: Vec<String> =
            made.refused().map(|one| format!("{} ({})", one.path, one.step)).collect();
        if !refused.is_empty() {
            let message = "the kernel refused some settings of the partition";
            let finding = Finding::new("partition-incomplete", Severity::Advice, "system", message);
            findings.push(
                finding
                    .evidence(refused.join(", "))
                    .remedy("`punctual isolate status` shows what still runs in it"),
            );
        }
        let held = HeldPartition { note: made.note, standing: true, messages };
        held.enter_housekeeping().map_err(Failure::failed)?;
        Ok((held, findings))
    }

    /// The standing partition of the plan's name, of punctual or partrt, entered.
    fn found(plan: &PartitionPlan, messages: Listener) -> Result<Option<HeldPartition>, Failure> {
        let Some(note) = standing().filter(|note| note.rt == plan.name) else { return Ok(None) };
        if !plan.cpus.is_subset(&note.cpus) {
            return Err(Failure::refused(format!(
                "the partition {} has CPU {}, and the experiment needs {}",
                note.rt, note.cpus, plan.cpus
            )));
        }
        let held = HeldPartition { note, standing: false, messages };
        held.enter_housekeeping().map_err(Failure::refused)?;
        Ok(Some(held))
    }

    /// The existing partition, if something of the plan runs on its CPUs and this process is
    /// excluded from them.
    pub fn join(plan: &Plan, messages: Listener) -> Result<Option<HeldPartition>, Failure> {
        let Some(note) = standing() else { return Ok(None) };
        let mine = attributes::affinity(0).unwrap_or_default();
        let held = HeldPartition { note, standing: false, messages };
        let phases = || plan.phases.iter();
        let measured = phases()
            .flat_map(|phase| &phase.measures)
            .flat_map(|m| &m.threads)
            .map(|thread| &thread.cpus);
        let loaded = phases().flat_map(|phase| &phase.loads).map(|load| &load.cpus);
        let enters = |cpus: &CpuSet| !cpus.is_empty() && held.has(cpus) && !cpus.is_subset(&mine);
        if !measured.chain(loaded).any(enters) {
            return Ok(None);
        }
        held.enter_housekeeping().map_err(Failure::refused)?;
        Ok(Some(held))
    }

    /// Version 1 has moved this process there with all others. Version 2 leaves each in the cgroup
    /// of its service, from where a single thread cannot move into another cgroup.
    fn enter_housekeeping(&self) -> Result<(), String> {
        match self.note.hierarchy.version {
            CgroupVersion::V1 => Ok(()),
            CgroupVersion::V2 => go(&self.note.nrt, std::process::id() as i32, Membership::Process),
        }
    }

    pub fn cpus(&self) -> &CpuSet {
        &self.note.cpus
    }

    /// Whether tasks with this affinity belong into it: the plan allows no mix of both sides.
    pub fn has(&self, cpus: &CpuSet) -> bool {
        cpus.is_subset(&self.note.cpus)
    }

    /// The cgroup file for a load on these CPUs; `None` if they are not the partition's.
    pub(crate) fn entrance(&self, cpus: &CpuSet) -> Option<PathBuf> {
        let hierarchy = &self.note.hierarchy;
        let path =
            || Path::new(&hierarchy.mount).join(&self.note.rt).join(hierarchy.members_file());
        self.has(cpus).then(path)
    }

    /// Runs a function in the partition: threads started meanwhile are created in it, this one
    /// returns.
    pub fn run_in<T>(&self, what: impl FnOnce() -> T) -> Result<T, String> {
        go(&self.note.rt, attributes::tid(), Membership::Thread)?;
        let done = what();
        go(&self.note.nrt, attributes::tid(), Membership::Thread)?;
        Ok(done)
    }

    /// The settings of it that are not in force now.
    pub fn missing(&self) -> Result<Vec<String>, String> {
        let status = isolate::status(&Root::system(), &JournalDirectory::system())
            .map_err(|why| why.to_string())?;
        let Some(status) = status else {
            // One of partrt has no journal: it is recognised by its settings.
            let is_there = standing().is_some_and(|note| note == self.note);
            return Ok(if is_there { Vec::new() } else { vec!["it is gone".to_owned()] });
        };
        let kind =
            status.kind.known().filter(|kind| !["root", "isolated"].contains(&kind.as_str()));
        let kind = kind.map(|kind| format!("cpuset.cpus.partition is {kind}"));
        let changed = status.in_force.iter().filter(|setting| !setting.in_force).map(|setting| {
            let holds = setting.holds.known().map_or("an unreadable value", String::as_str);
            format!("{} was set to {} and holds {holds}", setting.path, setting.set_to)
        });
        Ok(kind.into_iter().chain(changed).collect())
    }

    /// Undoes the partition; the finding lists failures.
    pub fn undo(mut self) -> Option<Finding> {
        self.take_back()
    }

    fn take_back(&mut self) -> Option<Finding> {
        if !std::mem::take(&mut self.standing) {
            return None;
        }
        let why =
            match isolate::undo(&JournalDirectory::system(), &Root::system(), IfChanged::Report) {
                Ok(report) if report.is_complete() => return None,
                Ok(_) => "another program changed settings while the experiment ran".to_owned(),
                Err(why) => why.to_string(),
            };
        let finding = Finding::new(
            "partition-not-undone",
            Severity::Bad,
            "system",
            "the partition could not be undone completely",
        );
        Some(
            finding
                .evidence(why)
                .remedy("`punctual isolate undo` shows the remaining changes and reverts them"),
        )
    }
}

/// The standing partition, of punctual or of partrt. A user who cannot read the journal did not
/// create it, and could not enter.
fn standing() -> Option<PartitionNote> {
    let files = Root::system();
    let ours = isolate::status(&files, &JournalDirectory::system()).ok()?;
    match ours {
        Some(status) => Some(status.note),
        None => isolate::find_partrt(&files).ok().flatten(),
    }
}

fn go(half: &str, tid: i32, membership: Membership) -> Result<(), String> {
    let entry = EnteredPartition { partition: half.to_owned(), ..EnteredPartition::default() };
    let moved = move_process(&Root::system(), &JournalDirectory::system(), tid, membership, &entry);
    moved.map(drop).map_err(|why| format!("cannot enter the cgroup {half}: {why}"))
}

impl Drop for HeldPartition {
    fn drop(&mut self) {
        if let Some(finding) = self.take_back() {
            self.messages.say(&format!(
                "warning: {}: {}\n",
                finding.message,
                finding.evidence.unwrap_or_default()
            ));
        }
    }
}
