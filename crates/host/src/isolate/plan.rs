//! The difference between the actual and the requested system: an ordered list of changes. Changes
//! nothing.

use super::machine::MachineSplit;
use super::request::PartitionRequest;
use super::tweaks::{self, Draft, TweakPhase};
use super::{Refusal, evict};
use crate::files::Files;
use crate::isolate;
use crate::journal::record::KernelWrite;
use punctual_core::CpuSet;
use serde::Serialize;

/// The changes in order, and the omitted ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IsolationPlan {
    /// The machine that it was made for.
    pub machine: MachineSplit,
    pub steps: Vec<PlanStep>,
    /// Omitted changes, with the reasons.
    pub skipped: Vec<Skipped>,
}

/// One change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanStep {
    /// The tweak, or the part of the partition, that needs it.
    pub name: String,
    /// The subject of the file, if the path does not show it: an interrupt's name.
    pub about: Option<String>,
    /// Whether there can be no partition without it.
    pub essential: bool,
    pub change: Change,
}

/// A planned change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Note all tasks' affinities.
    NoteAffinities,
    /// Make the controller available to the root's children (version 2).
    EnableController {
        /// The `cgroup.subtree_control` of the root or of a child.
        path: String,
    },
    MakeCgroup {
        path: String,
    },
    Write(KernelWrite),
    /// Move every movable task into a cgroup (version 1).
    MoveTasks {
        to: String,
        /// The current number of such tasks.
        now: usize,
    },
    /// Keep tasks that may still run on the partition's CPUs off them, by their affinity.
    ConfineTasks,
    /// Take a CPU offline and online again.
    Replug {
        cpu: usize,
        /// Files that the kernel may change by itself when the CPU goes offline.
        may_change: Vec<String>,
    },
    /// Turn a cgroup into a partition (version 2), of the first kind that the kernel knows.
    BecomePartition {
        /// Its `cpuset.cpus.partition`.
        path: String,
        /// `isolated` (since Linux 6.1) and `root`, or only `root`.
        kinds: &'static [&'static str],
    },
    /// Check that the partition is still valid (version 2).
    Verify {
        /// Its `cpuset.cpus.partition`.
        path: String,
        kinds: &'static [&'static str],
    },
}

/// An omitted change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Skipped {
    pub tweak: String,
    pub reason: String,
}

/// Refuses requests that are invalid on any machine.
pub(crate) fn check_request(request: &PartitionRequest) -> Result<(), Refusal> {
    request.check_names()?;
    tweaks::check_names(&request.without)
}

/// Compares the system with the request.
pub fn plan_partition(
    files: &dyn Files,
    request: &PartitionRequest,
) -> Result<IsolationPlan, Refusal> {
    check_request(request)?;
    let machine = MachineSplit::survey_machine(files, request)?;
    let mut plan =
        IsolationPlan { machine: machine.clone(), steps: Vec::new(), skipped: Vec::new() };
    let nrt = machine.cpusets.child_path(&request.nrt_name);
    let rt = machine.cpusets.child_path(&request.rt_name);
    let maker = PlanMaker { files, request, machine: &machine };
    plan.steps.push(new_step("affinities", Change::NoteAffinities));
    if machine.cpusets.is_v1() {
        maker.plan_v1(&mut plan, &nrt, &rt)?;
    } else {
        maker.plan_v2(&mut plan, &nrt, &rt)?;
    }
    plan.steps.push(new_step("tasks", Change::ConfineTasks));
    maker.plan_tweaks(&mut plan, TweakPhase::Last);
    Ok(plan)
}

fn new_step(name: &str, change: Change) -> PlanStep {
    PlanStep { name: name.to_owned(), about: None, essential: true, change }
}

/// A write in a cgroup that the plan creates: it is removed with the cgroup, and needs no undo.
fn write_inside(path: String, new: impl ToString) -> Change {
    Change::Write(KernelWrite::without_undo(path, new.to_string()))
}

struct PlanMaker<'a> {
    files: &'a dyn Files,
    request: &'a PartitionRequest,
    machine: &'a MachineSplit,
}

impl PlanMaker<'_> {
    /// Version 1: housekeeping first; the tasks move; the CPUs are unplugged while none of our
    /// cpusets holds them, because unplugging permanently takes a CPU out of every cpuset but the
    /// root (kernel/cgroup/cpuset-v1.c); the partition last.
    fn plan_v1(&self, plan: &mut IsolationPlan, nrt: &str, rt: &str) -> Result<(), Refusal> {
        let machine = self.machine;
        let exclusive = self.may_be_exclusive(plan)?;
        let cpuset =
            |plan: &mut IsolationPlan, name: &str, path: &str, cpus: &CpuSet, nodes: &CpuSet| {
                let file = |file: &str| machine.cpusets.file_path(path, file);
                plan.steps.push(new_step(name, Change::MakeCgroup { path: path.to_owned() }));
                plan.steps.push(new_step(name, write_inside(file("cpus"), cpus)));
                plan.steps.push(new_step(name, write_inside(file("mems"), nodes)));
                if exclusive {
                    plan.steps.push(PlanStep {
                        essential: false,
                        ..new_step(name, write_inside(file("cpu_exclusive"), 1))
                    });
                }
            };
        let nodes = |own: &Option<CpuSet>| own.clone().unwrap_or_else(|| machine.nodes.clone());
        cpuset(plan, "housekeeping", nrt, &machine.housekeeping, &nodes(&machine.nrt_nodes));
        self.plan_tweaks(plan, TweakPhase::First);
        let now = evict::count_movable(self.files, machine, nrt, &self.request.leave)?;
        plan.steps.push(new_step("tasks", Change::MoveTasks { to: nrt.to_owned(), now }));
        self.plan_replug(plan)?;
        cpuset(plan, "partition", rt, &machine.rt, &nodes(&machine.rt_nodes));
        if self.request.includes_tweak(tweaks::LOAD_BALANCE) {
            let path = machine.cpusets.file_path(rt, "sched_load_balance");
            plan.steps.push(PlanStep {
                essential: false,
                ..new_step(tweaks::LOAD_BALANCE, write_inside(path, 0))
            });
        }
        Ok(())
    }

    /// Version 2: the kernel takes a partition's CPUs away from every other cgroup, so that tasks
    /// need not be moved.
    fn plan_v2(&self, plan: &mut IsolationPlan, nrt: &str, rt: &str) -> Result<(), Refusal> {
        let machine = self.machine;
        let control = |cgroup: &str| format!("{cgroup}/cgroup.subtree_control");
        let root = control(&machine.cpusets.hierarchy.mount);
        plan.steps.push(new_step("controller", Change::EnableController { path: root }));
        let kinds: &[&str] = if self.request.includes_tweak(tweaks::LOAD_BALANCE) {
            &["isolated", "root"]
        } else {
            &["root"]
        };
        let partition = machine.cpusets.file_path(rt, "cpus.partition");
        let parts = [
            ("housekeeping", nrt, &machine.housekeeping, &machine.nrt_nodes),
            ("partition", rt, &machine.rt, &machine.rt_nodes),
        ];
        for (name, path, cpus, nodes) in parts {
            plan.steps.push(new_step(name, Change::MakeCgroup { path: path.to_owned() }));
            if self.request.for_this_process {
                plan.steps
                    .push(new_step(name, write_inside(format!("{path}/cgroup.type"), "threaded")));
            }
            plan.steps
                .push(new_step(name, write_inside(machine.cpusets.file_path(path, "cpus"), cpus)));
            if let Some(nodes) = nodes {
                plan.steps.push(new_step(
                    name,
                    write_inside(machine.cpusets.file_path(path, "mems"), nodes),
                ));
            }
            // While a child passes the controller on, it cannot be taken away from the root (by
            // systemd, on a reload): kernel/cgroup/cgroup.c, cgroup_subtree_control_write, returns
            // EBUSY.
            let hold = Change::EnableController { path: control(path) };
            plan.steps.push(PlanStep { essential: false, ..new_step(name, hold) });
            if path == nrt {
                self.plan_tweaks(plan, TweakPhase::First);
            }
        }
        plan.steps.push(new_step(
            "partition",
            Change::BecomePartition { path: partition.clone(), kinds },
        ));
        self.plan_replug(plan)?;
        plan.steps.push(new_step("partition", Change::Verify { path: partition, kinds }));
        Ok(())
    }

    /// A cpuset can be exclusive only if no other shares its CPUs (kernel/cgroup/cpuset.c,
    /// validate_change).
    fn may_be_exclusive(&self, plan: &mut IsolationPlan) -> Result<bool, Refusal> {
        let other_cpusets = isolate::cpusets_of_others(self.files, &self.machine.cpusets)?;
        match other_cpusets.first() {
            Some(other) => {
                let reason = format!(
                    "{} (CPUs {}) shares CPUs with both cgroups of the partition: they are not \
                     exclusive",
                    other.path, other.cpus
                );
                plan.skipped.push(Skipped { tweak: "cpu_exclusive".into(), reason });
                Ok(false)
            }
            None => Ok(true),
        }
    }

    fn plan_tweaks(&self, plan: &mut IsolationPlan, phase: TweakPhase) {
        for tweak in tweaks::all_tweaks().filter(|tweak| tweak.phase == phase) {
            let skip = |reason: &str| Skipped { tweak: tweak.name.into(), reason: reason.into() };
            if !self.request.includes_tweak(tweak.name) {
                plan.skipped.push(skip("not requested"));
                continue;
            }
            let mut draft = Draft::default();
            if let Err(reason) = (tweak.settings)(self.files, self.machine, &mut draft) {
                plan.skipped.push(skip(&reason));
            }
            plan.skipped.extend(draft.skipped.iter().map(|reason| skip(reason)));
            let silent = draft.writes.is_empty()
                && !plan.skipped.iter().any(|skipped| skipped.tweak == tweak.name);
            if silent {
                plan.skipped.push(skip("nothing to change: already set"));
            }
            let steps = draft.writes.into_iter().map(|(about, write)| PlanStep {
                name: tweak.name.into(),
                about,
                essential: false,
                change: Change::Write(write),
            });
            plan.steps.extend(steps);
        }
    }

    fn plan_replug(&self, plan: &mut IsolationPlan) -> Result<(), Refusal> {
        let skip = |reason: String| Skipped { tweak: tweaks::REPLUG.into(), reason };
        if !self.request.includes_tweak(tweaks::REPLUG) {
            plan.skipped.push(skip("not requested".into()));
            return Ok(());
        }
        for cpu in self.machine.rt.iter() {
            match self.side_effects(cpu)? {
                Ok(may_change) => {
                    let change = Change::Replug { cpu, may_change };
                    plan.steps
                        .push(PlanStep { essential: false, ..new_step(tweaks::REPLUG, change) });
                }
                Err(reason) => plan.skipped.push(skip(reason)),
            }
        }
        Ok(())
    }

    /// The files that the kernel may change by itself when a CPU goes offline, or why it must not.
    fn side_effects(&self, cpu: usize) -> Result<Result<Vec<String>, String>, Refusal> {
        if !self.files.exists(&crate::journal::apply::online_file(cpu)) {
            return Ok(Err(format!("CPU {cpu} cannot be unplugged: it has no `online` file")));
        }
        // An interrupt without another allowed CPU moves to any CPU (kernel/irq/cpuhotplug.c).
        let mut may_change = tweaks::irq::bound_to(self.files, &self.machine.rt);
        if self.machine.cpusets.is_v1() {
            for other in isolate::cpusets_of_others(self.files, &self.machine.cpusets)? {
                if other.cpus.is_subset(&self.machine.rt) {
                    let reason = "has no other CPUs: unplugging would force its tasks out";
                    return Ok(Err(format!(
                        "CPU {cpu} is not unplugged: the cpuset {} {reason}",
                        other.path
                    )));
                }
                if other.cpus.contains(cpu) {
                    may_change.push(self.machine.cpusets.file_path(&other.path, "cpus"));
                }
            }
        }
        Ok(Ok(may_change))
    }
}
