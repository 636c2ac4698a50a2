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
    pub fn create(
        plan: &PartitionPlan,
        whole: &Plan,
        messages: Listener,
    ) -> Result<(HeldPartition, Vec<Finding>), Failure> {
        if plan.found
            && let Some(held) = HeldPartition::find_standing(plan, messages)?
        {
            return Ok((held, Vec::new()));
        }
        // The experiment's own governor is that of all CPUs.
        let own_governor = whole.governor.as_ref().map(|_| "governor".to_owned());
        let request = PartitionRequest {
            rt_name: plan.name.clone(),
            nrt_name: plan
                .housekeeping
                .clone()
                .unwrap_or_else(|| format!("{}-housekeeping", plan.name)),
            without: plan.disable.iter().cloned().chain(own_governor).collect(),
            for_this_process: true,
            ..PartitionRequest::new(TargetCpus::Cpus(plan.cpus.clone()))
        };
        let new_partition = isolate::create_partition(
            &request,
            &Root::from_system(),
            &JournalDirectory::from_system(),
        )
        .map_err(|error| match error {
            failed @ CreateError::Failed { .. } => Failure::failed(failed),
            refused => Failure::refused(refused),
        })?;
        let mut findings = new_partition.advice.clone();
        let refused: Vec<String> = new_partition
            .refused_changes()
            .map(|one| format!("{} ({})", one.path, one.step))
            .collect();
        if !refused.is_empty() {
            let message = "the kernel refused some settings of the partition";
            let finding = Finding::new("partition-incomplete", Severity::Advice, "system", message);
            findings.push(
                finding
                    .with_evidence(refused.join(", "))
                    .with_remedy("`punctual isolate status` shows what still runs in it"),
            );
        }
        let held_partition = HeldPartition { note: new_partition.note, standing: true, messages };
        held_partition.enter_housekeeping().map_err(Failure::failed)?;
        Ok((held_partition, findings))
    }

    /// The standing partition of the plan's name, of punctual or partrt, entered.
    fn find_standing(
        plan: &PartitionPlan,
        messages: Listener,
    ) -> Result<Option<HeldPartition>, Failure> {
        let Some(note) = standing_partition().filter(|note| note.rt == plan.name) else {
            return Ok(None);
        };
        if !plan.cpus.is_subset(&note.cpus) {
            return Err(Failure::refused(format!(
                "the partition {} has CPU {}, and the experiment needs {}",
                note.rt, note.cpus, plan.cpus
            )));
        }
        let held_partition = HeldPartition { note, standing: false, messages };
        held_partition.enter_housekeeping().map_err(Failure::refused)?;
        Ok(Some(held_partition))
    }

    /// The existing partition, if something of the plan runs on its CPUs and this process is
    /// excluded from them.
    pub(crate) fn join_standing(
        plan: &Plan,
        messages: Listener,
    ) -> Result<Option<HeldPartition>, Failure> {
        let Some(note) = standing_partition() else { return Ok(None) };
        let mine = attributes::read_affinity(0).unwrap_or_default();
        let held_partition = HeldPartition { note, standing: false, messages };
        let phases = || plan.phases.iter();
        let measured = phases()
            .flat_map(|phase| &phase.measures)
            .flat_map(|m| &m.threads)
            .map(|thread| &thread.cpus);
        let loaded = phases().flat_map(|phase| &phase.loads).map(|load| &load.cpus);
        let enters = |cpus: &CpuSet| {
            !cpus.is_empty() && held_partition.has_cpus(cpus) && !cpus.is_subset(&mine)
        };
        if !measured.chain(loaded).any(enters) {
            return Ok(None);
        }
        held_partition.enter_housekeeping().map_err(Failure::refused)?;
        Ok(Some(held_partition))
    }

    /// Version 1 has moved this process there with all others. Version 2 leaves each in the cgroup
    /// of its service, from where a single thread cannot move into another cgroup.
    fn enter_housekeeping(&self) -> Result<(), String> {
        match self.note.hierarchy.version {
            CgroupVersion::V1 => Ok(()),
            CgroupVersion::V2 => {
                enter_cgroup(&self.note.nrt, std::process::id() as i32, Membership::Process)
            }
        }
    }

    pub fn cpus(&self) -> &CpuSet {
        &self.note.cpus
    }

    /// Whether tasks with this affinity belong into it: the plan allows no mix of both sides.
    pub(crate) fn has_cpus(&self, cpus: &CpuSet) -> bool {
        cpus.is_subset(&self.note.cpus)
    }

    /// The cgroup file for a load on these CPUs; `None` if they are not the partition's.
    pub(crate) fn cgroup_file(&self, cpus: &CpuSet) -> Option<PathBuf> {
        let hierarchy = &self.note.hierarchy;
        let path =
            || Path::new(&hierarchy.mount).join(&self.note.rt).join(hierarchy.members_file());
        self.has_cpus(cpus).then(path)
    }

    /// Runs a function in the partition: threads started meanwhile are created in it, this one
    /// returns.
    pub fn run_in<T>(&self, what: impl FnOnce() -> T) -> Result<T, String> {
        enter_cgroup(&self.note.rt, attributes::thread_id(), Membership::Thread)?;
        let done = what();
        enter_cgroup(&self.note.nrt, attributes::thread_id(), Membership::Thread)?;
        Ok(done)
    }

    /// The settings of it that are not in force now.
    pub fn missing_settings(&self) -> Result<Vec<String>, String> {
        let status =
            isolate::partition_status(&Root::from_system(), &JournalDirectory::from_system())
                .map_err(|why| why.to_string())?;
        let Some(status) = status else {
            // One of partrt has no journal: it is recognised by its settings.
            let is_there = standing_partition().is_some_and(|note| note == self.note);
            return Ok(if is_there { Vec::new() } else { vec!["it is gone".to_owned()] });
        };
        let kind =
            status.kind.known_value().filter(|kind| !["root", "isolated"].contains(&kind.as_str()));
        let kind = kind.map(|kind| format!("cpuset.cpus.partition is {kind}"));
        let changed = status.in_force.iter().filter(|setting| !setting.in_force).map(|setting| {
            let holds = setting.holds.known_value().map_or("an unreadable value", String::as_str);
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
        let undo_error = match isolate::undo_partition(
            &JournalDirectory::from_system(),
            &Root::from_system(),
            IfChanged::Report,
        ) {
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
            finding.with_evidence(undo_error).with_remedy(
                "`punctual isolate undo` shows the remaining changes and reverts them",
            ),
        )
    }
}

/// The standing partition, of punctual or of partrt. A user who cannot read the journal did not
/// create it, and could not enter.
fn standing_partition() -> Option<PartitionNote> {
    let files = Root::from_system();
    let ours = isolate::partition_status(&files, &JournalDirectory::from_system()).ok()?;
    match ours {
        Some(status) => Some(status.note),
        None => isolate::find_partrt(&files).ok().flatten(),
    }
}

fn enter_cgroup(half: &str, tid: i32, membership: Membership) -> Result<(), String> {
    let entry = EnteredPartition { partition: half.to_owned(), ..EnteredPartition::default() };
    let moved = move_process(
        &Root::from_system(),
        &JournalDirectory::from_system(),
        tid,
        membership,
        &entry,
    );
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
