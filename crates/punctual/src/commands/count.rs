//! `punctual count`: what the kernel counts while a command runs.

mod counted;
mod wanted;

use crate::exit::{Ending, Exit, Failure};
use crate::output;
use crate::output::colored;
use counted::Counters;
use punctual_bundle::counts::COUNTS_SCHEMA;
use punctual_bundle::{Counts, CpuTime};
use punctual_core::Nanos;
use punctual_report::terminal::{self, ShowOptions};
use punctual_session::command;
use punctual_session::interrupts::Interrupts;
use punctual_sys::{children, clock};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Count context switches, page faults, system calls and other events of a command
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual count -- ./control-loop\n  punctual count --events \
                        +sched:sched_wakeup,cycles -- ./control-loop\n  punctual count --json -- \
                        ls | jq '.counts[] | {name, count}'\n  punctual count --events \
                        list\n\nCounting begins with the first instruction of the command and \
                        includes all threads and processes that it starts. Nothing is recorded. \
                        The result goes to standard error; with --json it goes to standard output, \
                        and the standard output of the command goes to standard error. Unavailable \
                        counts are listed with the reason.\n\nExit codes: that of the command, 128 \
                        + n where signal n ended it; 1 counting failed; 2 the request was invalid, \
                        nothing was started.")]
pub struct Args {
    /// What to count, separated by commas: names of perf-list(1) or GROUP:NAME of tracepoints;
    /// `+cycles` adds to the default counts; `list` shows the names
    #[arg(long, short, value_name = "EVENTS", value_delimiter = ',')]
    events: Vec<String>,
    /// Print JSON in the format punctual-counts/1 (docs/count.md)
    #[arg(long)]
    json: bool,
    /// Write JSON (punctual-counts/1) to this file; the command keeps its standard output
    #[arg(long, short, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    /// Run CMD as this user (name or number), in his groups and with none of our rights; needs root
    /// [default: as punctual itself]
    #[arg(long, value_name = "USER", requires = "command")]
    user: Option<String>,
    /// The command
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// How soon a signal to punctual reaches the command.
const TICK: Duration = Duration::from_millis(50);

/// Opens the counters, runs the command, reads them.
pub fn run(args: Args) -> Ending {
    if args.events == ["list"] {
        output::print(&wanted::list())?;
        return Ok(Exit::Done);
    }
    let wanted = wanted::wanted(&args.events)?;
    let program = command::find(&args.command)?
        .ok_or_else(|| Failure::refused("no command to count: punctual count -- COMMAND …"))?;
    let user = command::user(args.user.as_deref())?;
    let interrupts = Interrupts::listen()?;
    let mut prepared = command::prepared(&program, &args.command, args.json, user.as_ref());
    // They are inherited from the thread that starts the command.
    let counters = Counters::open(wanted);
    let began = clock::monotonic();
    let child = prepared.spawn();
    let child = child
        .map_err(|why| Failure::refused(format!("cannot run `{}`: {why}", args.command[0])))?;
    let ended = wait(child.id() as i32, &interrupts);
    let wall = clock::monotonic() - began;
    let (exit, used) =
        ended.map_err(|why| Failure::failed(format!("waiting for the command failed: {why}")))?;
    let mut counts = Counts {
        schema: COUNTS_SCHEMA.to_owned(),
        command: args.command,
        exit_code: code(exit),
        wall,
        cpu: CpuTime {
            total: Nanos(used.user.0 + used.system.0),
            user: used.user,
            system: used.system,
        },
        counts: counters.read(&used),
    };
    punctual_analyze::counts::derive(&mut counts);
    match (&args.output, args.json) {
        (Some(path), _) => {
            let text = serde_json::to_string_pretty(&counts).map_err(Failure::failed)?;
            output::write_to(Some(path), format!("{text}\n").as_bytes())?;
        }
        (None, true) => output::print_json(&counts)?,
        (None, false) => {
            let width = output::terminal_size(io::stderr()).map_or(100, |(columns, _)| columns);
            let options =
                ShowOptions { width, color: colored(&io::stderr()), ..ShowOptions::default() };
            output::say(&terminal::counts(&counts, &options));
        }
    }
    // The command's own code, which the five of punctual cannot hold.
    std::process::exit(counts.exit_code.into());
}

/// Waits for the command; what asks punctual to end is passed on. Ctrl-C has reached the command
/// already.
fn wait(pid: i32, interrupts: &Interrupts) -> io::Result<(children::Exit, children::Used)> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let forward = || {
            while !over.load(Ordering::Acquire) && !interrupts.end_requested() {
                std::thread::park_timeout(TICK);
            }
            // It is not collected yet: its number is its own.
            if !over.load(Ordering::Acquire) {
                let _ = children::send(pid, libc::SIGTERM);
            }
        };
        let forwarding = std::thread::Builder::new().spawn_scoped(scope, forward);
        let ended = children::wait_for_end(pid);
        over.store(true, Ordering::Release);
        if let Ok(thread) = forwarding {
            thread.thread().unpark();
            let _ = thread.join();
        }
        ended
    })?;
    children::collect(pid)
}

/// As a shell reports it.
fn code(exit: children::Exit) -> u8 {
    let code = match exit {
        children::Exit::Status(status) => status,
        children::Exit::Signal(signal) => 128 + signal,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}
