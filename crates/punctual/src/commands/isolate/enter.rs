//! `punctual isolate run` and `punctual isolate move`.

use super::journals::{journal_failure, system_journals};
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_core::{CpuSet, Nanos, Policy, Priority};
use punctual_host::files::Root;
use punctual_host::isolate::{
    EnterError, EnteredPartition, Membership, enter_self, move_process, parse_cpus_on,
};
use punctual_sys::attributes::{DeadlineAttributes, Scheduling};
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Run a command in a partition
///
/// The process is replaced by the command (exec): signals, output and exit code are the command's.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual isolate run rt -- ./control-loop\n  punctual \
                        isolate run --cpus 3 --fifo 80 rt -- cyclictest -m -p 80\n  punctual \
                        isolate run --deadline 1ms,5ms,10ms rt -- ./sampler")]
pub struct IsolateRunArgs {
    /// A subset of the partition's CPUs: a list, or a mask starting with `0x`
    #[arg(short, long, value_name = "CPUS")]
    cpus: Option<String>,
    /// SCHED_FIFO with this priority, 1 to 99
    #[arg(short, long, value_name = "P", group = "policy")]
    fifo: Option<u8>,
    /// SCHED_RR with this priority, 1 to 99
    #[arg(short, long, value_name = "P", group = "policy")]
    rr: Option<u8>,
    /// SCHED_DEADLINE with runtime, deadline and period (`1ms,5ms,10ms`); such a task cannot fork
    /// (sched(7))
    #[arg(short, long, value_name = "R,D,T", group = "policy")]
    deadline: Option<String>,
    /// SCHED_OTHER
    #[arg(short, long, group = "policy")]
    other: bool,
    /// The partition's name
    partition: String,
    /// The command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Move running tasks into a partition
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual isolate move 1234 rt\n  punctual isolate move \
                        --thread 1240 rt")]
pub struct MoveArgs {
    /// Only this thread, not all threads of its process (cgroup version 1)
    #[arg(short, long)]
    thread: bool,
    /// A subset of the partition's CPUs: a list, or a mask starting with `0x`
    #[arg(short, long, value_name = "CPUS")]
    cpus: Option<String>,
    /// The tasks
    #[arg(required = true, value_name = "PID")]
    pids: Vec<i32>,
    /// The partition's name
    partition: String,
}

/// Enters the partition and executes the command.
pub fn run(args: IsolateRunArgs) -> Ending {
    let (files, store) = system_journals();
    let scheduling = requested_scheduling(&args)?;
    let entry = EnteredPartition {
        partition: args.partition,
        cpus: parse_cpus(args.cpus.as_deref())?,
        scheduling,
    };
    enter_self(&files, &store, &entry).map_err(to_failure)?;
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::refused("which command?"));
    };
    let error = Command::new(program).args(arguments).exec();
    Err(Failure::failed(format!(
        "cannot run {}: {error}",
        program.display().to_string().escape_debug()
    )))
}

/// Moves each task.
pub fn run_move(args: MoveArgs) -> Ending {
    let (files, store) = system_journals();
    let entry = EnteredPartition {
        partition: args.partition,
        cpus: parse_cpus(args.cpus.as_deref())?,
        scheduling: None,
    };
    let membership = if args.thread { Membership::Thread } else { Membership::Process };
    let mut text = String::new();
    for pid in args.pids {
        let entered = move_process(&files, &store, pid, membership, &entry).map_err(to_failure)?;
        let recorded = if entered.recorded {
            ""
        } else {
            "; undo cannot move them back: their previous cgroup was not recorded"
        };
        let _ = writeln!(
            text,
            "{pid}: {} threads on CPU {}{recorded}",
            entered.threads.len(),
            entered.cpus
        );
    }
    output::print_stdout(&text)?;
    Ok(Exit::Done)
}

fn parse_cpus(text: Option<&str>) -> Result<Option<CpuSet>, Failure> {
    text.map(|text| parse_cpus_on(&Root::from_system(), text).map_err(Failure::refused)).transpose()
}

fn to_failure(error: EnterError) -> Failure {
    match error {
        EnterError::Journal(error) => journal_failure(error),
        EnterError::Stays { .. } | EnterError::Scheduling { .. } | EnterError::File(_) => {
            Failure::failed(error)
        }
        refused => Failure::refused(refused),
    }
}

fn requested_scheduling(args: &IsolateRunArgs) -> Result<Option<Scheduling>, Failure> {
    let fixed = |policy: Policy, value: u8| {
        let priority = Priority::try_from(value).map_err(Failure::refused)?;
        Ok(Some(Scheduling::new(policy, Some(priority))))
    };
    match (args.fifo, args.rr, &args.deadline, args.other) {
        (Some(priority), ..) => fixed(Policy::Fifo, priority),
        (_, Some(priority), ..) => fixed(Policy::Rr, priority),
        (_, _, Some(text), _) => parse_deadline(text).map(Some),
        (.., true) => Ok(Some(Scheduling::new(Policy::Other, None))),
        _ => Ok(None),
    }
}

fn parse_deadline(text: &str) -> Result<Scheduling, Failure> {
    let spans: Vec<Nanos> = text
        .split(',')
        .map(|part| part.parse().map_err(Failure::refused))
        .collect::<Result<_, _>>()?;
    let [runtime, deadline, period] = spans[..] else {
        return Err(Failure::refused(
            "--deadline takes three durations: runtime, deadline, period (`1ms,5ms,10ms`)",
        ));
    };
    // sched(7): the kernel requires 1024 ns ≤ runtime ≤ deadline ≤ period.
    if runtime.ns() < 1024 || runtime > deadline || deadline > period {
        return Err(Failure::refused("--deadline requires 1024ns ≤ runtime ≤ deadline ≤ period"));
    }
    let deadline = Some(DeadlineAttributes { runtime, deadline, period });
    Ok(Scheduling { deadline, ..Scheduling::new(Policy::Deadline, None) })
}
