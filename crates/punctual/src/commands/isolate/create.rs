//! `punctual isolate create`.

use super::journals::{journal_failure, system_journals};
use super::tweaks::Without;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_core::format::escape_unsafe;
use punctual_host::files::Root;
use punctual_host::isolate::{
    self, Change, CreateError, IsolationPlan, Partition, PartitionRequest, PlanStep, TargetCpus,
    parse_cpus_on,
};
use punctual_host::journal::{ChangeResult, StepResult};
use std::fmt::Write;

/// Create a partition and keep all other tasks off its CPUs
///
/// Every change is recorded in /run/punctual before it is made; `punctual isolate undo` reverts all
/// of them, even after a crash.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual isolate create 3\n  punctual isolate create 2-3 \
                        --dry-run\n  punctual isolate create 0xc --no-replug --no-governor\n  \
                        punctual isolate create --node 1")]
pub struct IsolateCreateArgs {
    /// The CPUs: a list (`3`, `2-3`, `0,4`, `2-N`: N is the last present CPU), or a hexadecimal
    /// mask starting with `0x` (`0x8`) or in 32-bit words separated by commas (`1,00000000` is CPU
    /// 32). A plain number is a list.
    #[arg(required_unless_present = "node", conflicts_with = "node")]
    cpus: Option<String>,
    /// All CPUs of a NUMA node, together with its memory
    #[arg(long, value_name = "N")]
    node: Option<usize>,
    /// The name of the real-time cgroup
    #[arg(long, value_name = "NAME", default_value = "rt")]
    rt_name: String,
    /// The name of the housekeeping cgroup
    #[arg(long, value_name = "NAME", default_value = "nrt")]
    nrt_name: String,
    /// Do not move this process or any of its threads (cgroup version 1); can be repeated
    #[arg(long, value_name = "PID")]
    leave: Vec<i32>,
    /// Print the writes without applying them
    #[arg(long)]
    dry_run: bool,
    /// Print all changes as JSON
    #[arg(long, conflicts_with = "dry_run")]
    json: bool,
    #[command(flatten)]
    without: Without,
}

/// Creates the partition, or prints the changes that would be made.
pub fn run(args: IsolateCreateArgs) -> Ending {
    let request = partition_request(&args)?;
    let (files, store) = system_journals();
    if args.dry_run {
        let plan = isolate::plan_partition(&files, &request).map_err(Failure::refused)?;
        output::print_stdout(&format_plan(&plan))?;
        return Ok(Exit::Done);
    }
    let partition =
        isolate::create_partition(&request, &files, &store).map_err(|error| match error {
            CreateError::Refused(refusal) => Failure::refused(refusal),
            CreateError::Journal(error) => journal_failure(error),
            failed @ CreateError::Failed { .. } => Failure::failed(failed),
        })?;
    if args.json {
        output::print_json(&partition)?
    } else {
        output::print_stdout(&format_changes(&partition))?
    }
    Ok(Exit::Done)
}

fn partition_request(args: &IsolateCreateArgs) -> Result<PartitionRequest, Failure> {
    let target = match (&args.cpus, args.node) {
        (_, Some(node)) => TargetCpus::Node(node),
        (Some(text), None) => {
            TargetCpus::Cpus(parse_cpus_on(&Root::from_system(), text).map_err(Failure::refused)?)
        }
        (None, None) => return Err(Failure::refused("which CPUs?")),
    };
    Ok(PartitionRequest {
        rt_name: args.rt_name.clone(),
        nrt_name: args.nrt_name.clone(),
        without: args.without.0.clone(),
        leave: args.leave.clone(),
        ..PartitionRequest::new(target)
    })
}

/// The plan, a line per change.
fn format_plan(plan: &IsolationPlan) -> String {
    let mut text = format!(
        "CPU {} for real-time tasks, {} for all others\n",
        plan.machine.rt, plan.machine.housekeeping
    );
    for step in &plan.steps {
        let _ = writeln!(text, "  {:<22} {}", step.name, format_change(step));
    }
    if !plan.skipped.is_empty() {
        text += "skipped\n";
    }
    for skipped in &plan.skipped {
        let _ = writeln!(text, "  {:<22} {}", skipped.tweak, escape_unsafe(&skipped.reason));
    }
    text
}

fn format_change(step: &PlanStep) -> String {
    let about =
        step.about.as_ref().map(|about| format!(" ({})", escape_unsafe(about))).unwrap_or_default();
    match &step.change {
        Change::NoteAffinities => "record the affinity of every task".into(),
        Change::EnableController { path } => format!("write `+cpuset` to {path}"),
        Change::MakeCgroup { path } => format!("mkdir {path}"),
        Change::Write(write) if write.old.is_empty() => {
            format!("write `{}` to {}{about}", write.new, write.path)
        }
        Change::Write(write) => {
            format!(
                "write `{}` to {}{about}, which holds `{}`",
                write.new,
                write.path,
                escape_unsafe(&write.old)
            )
        }
        Change::MoveTasks { to, now } => {
            format!("write the ids of all tasks ({now} at present), one at a time, to {to}/tasks")
        }
        Change::ConfineTasks => {
            "remove the CPUs from the affinity of tasks that still have them".into()
        }
        Change::Replug { cpu, may_change } => {
            let restored = if may_change.is_empty() {
                String::new()
            } else {
                format!("; restore {}", may_change.join(", "))
            };
            format!("write `0`, then `1` to /sys/devices/system/cpu/cpu{cpu}/online{restored}")
        }
        Change::BecomePartition { path, kinds } => {
            format!("write `{}` to {path}", kinds.join("`, or else `"))
        }
        Change::Verify { path, kinds } => {
            format!("wait until {path} holds `{}`", kinds.join("` or `"))
        }
    }
}

/// The changes that were made.
fn format_changes(partition: &Partition) -> String {
    let note = &partition.note;
    let changed = partition
        .applied
        .iter()
        .filter(|one| matches!(one.effect, ChangeResult::Changed { .. }))
        .count();
    let tasks = &partition.tasks;
    let mut text = format!(
        "partition {}: CPU {}; housekeeping {}: CPU {}\n{changed} changes made, {} tasks moved, \
         {} kept off by their affinity\n",
        note.rt, note.cpus, note.nrt, note.housekeeping, tasks.moved, tasks.confined
    );
    let refused: Vec<&StepResult> = partition.refused_changes().collect();
    write_section(
        &mut text,
        "refused by the kernel",
        refused.iter().map(|one| format_refusal(one)),
    );
    let skipped = partition
        .skipped
        .iter()
        .map(|one| format!("{:<22} {}", one.tweak, escape_unsafe(&one.reason)));
    write_section(&mut text, "skipped", skipped);
    let visiting = tasks.not_moved.iter().filter(|task| task.may_run_in_partition);
    let visiting = visiting
        .map(|task| format!("{:>7} {:<28} {}", task.tid, escape_unsafe(&task.name), task.why));
    write_section(&mut text, "tasks that may still run on the partition's CPUs", visiting);
    let elsewhere = tasks.not_moved.iter().filter(|task| !task.may_run_in_partition).count();
    if elsewhere > 0 {
        let _ = writeln!(
            text,
            "{elsewhere} more tasks could not be moved; they only run on other CPUs (--json lists \
             them)"
        );
    }
    if tasks.restless {
        text += "new tasks kept appearing during the move: run `punctual isolate status` to see \
                 what still runs on these CPUs\n";
    }
    let advice = partition.advice.iter().map(|one| match &one.remedy {
        Some(remedy) => format!("{}: {remedy}", escape_unsafe(&one.message)),
        None => escape_unsafe(&one.message),
    });
    write_section(&mut text, "advice", advice);
    let aside = partition.put_aside.iter().map(|name| format!("{name}: left by an earlier boot"));
    write_section(&mut text, "moved aside", aside);
    text + "to revert: punctual isolate undo\n"
}

fn format_refusal(one: &StepResult) -> String {
    let reason = match &one.effect {
        ChangeResult::Refused { why, .. } | ChangeResult::HalfMade { why } => escape_unsafe(why),
        ChangeResult::Ignored { value } => {
            format!("accepted the write and kept `{}`", escape_unsafe(value))
        }
        ChangeResult::Changed { .. } | ChangeResult::Already => String::new(),
    };
    format!("{:<22} `{}` to {}: {reason}", one.step, one.requested, escape_unsafe(&one.path))
}

/// A heading with its lines; empty without lines.
pub fn write_section(text: &mut String, heading: &str, lines: impl Iterator<Item = String>) {
    for (place, line) in lines.enumerate() {
        if place == 0 {
            let _ = writeln!(text, "{heading}");
        }
        let _ = writeln!(text, "  {line}");
    }
}
