//! `punctual isolate status`.

use super::create::write_section;
use super::journals::{journal_failure, system_journals};
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_core::format::{count_with_noun, escape_unsafe};
use punctual_core::{CpuSet, Fact, Nanos};
use punctual_host::isolate::{
    self, Activity, CpuActivity, InterruptActivity, JournalState, PartitionStatus, Sampling,
    TaskActivity,
};
use punctual_host::journal::record::PartitionNote;
use serde::Serialize;
use std::fmt::Write;

/// Show which settings are in force and what still runs in the partition
///
/// Interrupts and context switches are counted over the interval. Tasks are polled: a task that
/// starts and ends between two polls is missed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual isolate status --interval 10s\n  punctual isolate \
                        status --cpus 3 --json")]
pub struct IsolateStatusArgs {
    /// How long to observe the CPUs; 0 to skip it
    #[arg(long, default_value = "2s", value_name = "DURATION")]
    interval: Nanos,
    /// How often to poll the tasks
    #[arg(long, default_value = "50ms", value_name = "DURATION")]
    period: Nanos,
    /// Observe these CPUs instead of the partition's
    #[arg(long, value_name = "CPUS")]
    cpus: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// All known facts.
#[derive(Serialize)]
struct StatusAnswer {
    /// The partition, if there is one; unavailable without access to the journals.
    partition: Fact<Option<PartitionStatus>>,
    /// One that partrt made; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    partrt: Option<PartitionNote>,
    /// The tasks that ran on the CPUs.
    visits: Fact<Activity>,
}

/// Polls, counts and prints.
pub fn run(args: IsolateStatusArgs) -> Ending {
    let (files, store) = system_journals();
    let wanted = args
        .cpus
        .as_deref()
        .map(|text| isolate::parse_cpus_on(&files, text).map_err(Failure::refused))
        .transpose()?;
    let partition = match isolate::partition_status(&files, &store) {
        // With named CPUs, visits can be counted without any rights.
        Err(error) if wanted.is_some() => Fact::Unavailable(error.to_string()),
        other => Fact::Known(other.map_err(journal_failure)?),
    };
    let standing = partition.known_value().and_then(Option::as_ref);
    let partrt = match standing {
        Some(_) => None,
        None => isolate::find_partrt(&files).ok().flatten(),
    };
    let note = standing.map(|status| &status.note).or(partrt.as_ref());
    let cpus = wanted.or_else(|| note.map(|note| note.cpus.clone())).unwrap_or_default();
    let members = standing.map(|status| status.members.clone()).unwrap_or_default();
    let sampling = Sampling { interval: args.interval, period: args.period };
    let visits = match cpus.is_empty() || args.interval <= Nanos::ZERO {
        true => Fact::NotAsked,
        false => Fact::Known(isolate::sample_cpus(&files, &cpus, &members, sampling)),
    };
    let answer = StatusAnswer { partition, partrt, visits };
    if args.json {
        output::print_json(&answer)?
    } else {
        output::print_stdout(&format_answer(&answer, &cpus))?
    }
    Ok(Exit::Done)
}

fn format_answer(answer: &StatusAnswer, cpus: &CpuSet) -> String {
    let mut text = String::new();
    match &answer.partition {
        Fact::Known(Some(status)) => print_partition(&mut text, status),
        Fact::Unavailable(why) => {
            let _ = writeln!(text, "partition: unavailable: {}", escape_unsafe(why));
        }
        Fact::Known(None) | Fact::NotAsked => match &answer.partrt {
            Some(note) => {
                let _ = writeln!(
                    text,
                    "partition {} of partrt: CPU {}; housekeeping {}: CPU {}\n`punctual isolate \
                     undo` undoes it",
                    escape_unsafe(&note.rt),
                    note.cpus,
                    escape_unsafe(&note.nrt),
                    note.housekeeping
                );
            }
            None => text += "no partition created by punctual\n",
        },
    }
    if let Some(visits) = answer.visits.known_value() {
        print_visits(&mut text, visits, cpus);
    }
    text
}

fn print_partition(text: &mut String, status: &PartitionStatus) {
    let note = &status.note;
    let kind = status
        .kind
        .known_value()
        .map(|kind| format!(", {}", escape_unsafe(kind)))
        .unwrap_or_default();
    let _ = writeln!(
        text,
        "partition {}: CPU {}{kind}; housekeeping {}: CPU {}",
        note.rt, note.cpus, note.nrt, note.housekeeping
    );
    let standing = match status.journal.standing {
        JournalState::InForce => None,
        JournalState::HalfMade => Some("incomplete: the process that created it was killed"),
        JournalState::HalfUndone => Some("it was only partly undone"),
        JournalState::Abandoned => Some("the experiment that created it was killed"),
    };
    write_section(text, "run `punctual isolate undo`", standing.into_iter().map(str::to_owned));
    let in_force = status.in_force.iter().filter(|one| one.in_force).count();
    let _ = writeln!(text, "{in_force} of {} settings in force", status.in_force.len());
    let changed = status.in_force.iter().filter(|one| !one.in_force).map(|one| {
        let holds = match &one.holds {
            Fact::Known(value) => format!("`{}`", escape_unsafe(value)),
            Fact::Unavailable(why) => escape_unsafe(why),
            Fact::NotAsked => "?".into(),
        };
        format!(
            "{:<22} {}: {holds}, not `{}`",
            one.step,
            escape_unsafe(&one.path),
            escape_unsafe(&one.set_to)
        )
    });
    write_section(text, "changed since", changed);
    let budgets = status.without_rt_budget.iter();
    let budgets = budgets.map(|(cgroup, tasks)| {
        format!("{}/cpu.rt_runtime_us is 0: {tasks} tasks", escape_unsafe(cgroup))
    });
    write_section(
        text,
        "cgroups without a real-time budget: SCHED_FIFO and SCHED_RR are refused in them",
        budgets,
    );
}

fn print_visits(text: &mut String, visits: &Activity, cpus: &CpuSet) {
    let _ = writeln!(text, "activity on CPU {cpus} in {:.3} s:", visits.interval.as_secs_f64());
    for cpu in &visits.cpus {
        print_cpu(text, cpu);
    }
    match &visits.tasks {
        Fact::Known(tasks) => {
            let of_others = tasks.iter().filter(|task| !task.member).map(format_visit);
            write_section(text, &format!("  tasks seen in {} polls", visits.samples), of_others);
            let members = tasks.iter().filter(|task| task.member).count();
            let _ = writeln!(text, "  {members} tasks of the partition ran");
        }
        Fact::Unavailable(why) => {
            let _ = writeln!(text, "  tasks: unavailable: {}", escape_unsafe(why));
        }
        Fact::NotAsked => {}
    }
    if visits.tasks_left_out > 0 {
        let _ = writeln!(text, "  {} more tasks are not listed", visits.tasks_left_out);
    }
}

fn print_cpu(text: &mut String, cpu: &CpuActivity) {
    let count = |fact: &Fact<u64>| match fact {
        Fact::Known(count) => count.to_string(),
        Fact::Unavailable(why) => format!("unavailable ({})", escape_unsafe(why)),
        Fact::NotAsked => "not counted".into(),
    };
    let (timers, switches) = (count(&cpu.timer_interrupts), count(&cpu.context_switches));
    let _ = writeln!(
        text,
        "  CPU {}: timer interrupts (ticks among them): {timers}; context switches: {switches}",
        cpu.cpu
    );
    for (what, fact) in [("interrupt", &cpu.interrupts), ("softirq", &cpu.softirqs)] {
        match fact {
            Fact::Known(all) => all.iter().for_each(|one| print_interrupt(text, what, one)),
            Fact::Unavailable(why) => {
                let _ = writeln!(text, "    {what}s: unavailable: {}", escape_unsafe(why));
            }
            Fact::NotAsked => {}
        }
    }
}

fn print_interrupt(text: &mut String, what: &str, one: &InterruptActivity) {
    let _ = writeln!(
        text,
        "    {:>8} × {what} {} {}",
        one.count,
        escape_unsafe(&one.id),
        escape_unsafe(&one.name)
    );
}

fn format_visit(task: &TaskActivity) -> String {
    let kind = match (task.kernel, task.bound) {
        (_, true) => "kernel thread, bound to its CPUs",
        (true, _) => "kernel thread",
        _ => "task",
    };
    let (seen, ran) = (task.seen, task.run_time.as_micros_f64());
    format!(
        "  {:>7} {:<24} seen {}, ran at most {ran:.0} µs; {kind}",
        task.tid,
        escape_unsafe(&task.name),
        count_with_noun(seen as u64, "time")
    )
}
