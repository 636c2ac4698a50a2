//! `punctual count`: the kernel's counts for a command or a process.

mod counters;
mod live;
mod process;
mod request;

use crate::exit::{self, Ending, Exit, Failure};
use crate::output;
use crate::output::is_colored;
use counters::{KernelCounts, RequestedCounters};
use live::Live;
use process::CountedProcess;
use punctual_bundle::counts::COUNTS_SCHEMA;
use punctual_bundle::{CommandCounts, CpuTime};
use punctual_core::format;
use punctual_core::{MonotonicNs, Nanos};
use punctual_report::terminal::{self, ShowOptions};
use punctual_session::command;
use punctual_session::interrupts::SignalRequests;
use punctual_sys::{children, clock};
use request::WantedCount;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Count context switches, page faults, system calls and other events of a command or a process
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual count -- ./control-loop\n  punctual count --events \
                        +sched:sched_wakeup,cycles -- ./control-loop\n  punctual count --live \
                        -p 1234 --duration 10s\n  punctual count --json -- \
                        ls | jq '.counts[] | {name, count}'\n  punctual count --events \
                        list\n\nCounting begins with the first instruction of the command and \
                        includes all threads and processes that it starts. With --pid, it begins \
                        at once and ends with the process, after --duration or with Ctrl-C. \
                        Nothing is recorded. \
                        The result goes to standard error; with --json it goes to standard output, \
                        and the standard output of the command goes to standard error. Unavailable \
                        counts are listed with the reason.\n\nExit codes: that of the command, 128 \
                        + n where signal n ended it, 0 with --pid; 1 counting failed; 2 the \
                        request was invalid, nothing was started.")]
pub struct CountArgs {
    /// What to count, separated by commas: names of perf-list(1) or GROUP:NAME of tracepoints;
    /// `+cycles` adds to the default counts; `list` shows the names
    #[arg(long, short, value_name = "EVENTS", value_delimiter = ',')]
    events: Vec<String>,
    /// Count this process, with all its threads and all that they start from now on
    #[arg(long, short, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,
    /// End after this time; a command that still runs is sent SIGTERM
    #[arg(long, short, value_name = "DURATION")]
    duration: Option<Nanos>,
    /// Also print the rate per second in each interval: a line on standard error
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, require_equals = true,
          default_missing_value = "1s", value_parser = parse_interval)]
    live: Option<Nanos>,
    /// Print JSON in the format punctual-counts/1 (docs/reference/count.md)
    #[arg(long)]
    json: bool,
    /// Write JSON (punctual-counts/1) to this file; the command keeps its standard output
    #[arg(long, short, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    /// Run CMD as this user (name or number), with its groups and no other rights; needs root
    /// [default: as punctual itself]
    #[arg(long, value_name = "USER", requires = "command")]
    user: Option<String>,
    /// The command
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// The maximum delay of a signal to the command, and the time between two reads of a process.
const TICK: Duration = Duration::from_millis(50);
/// The shortest interval of `--live`: some ticks.
const MIN_LIVE_INTERVAL: Nanos = Nanos(200_000_000);

/// Opens the counters, runs the command or follows the process, reads them.
pub fn run(args: CountArgs) -> Ending {
    if args.events == ["list"] {
        output::print_stdout(&request::list_events())?;
        return Ok(Exit::Done);
    }
    let wanted = request::parse_events(&args.events)?;
    let mut counts = match args.pid {
        Some(pid) => of_process(&args, pid, wanted)?,
        None => of_command(&args, wanted)?,
    };
    punctual_stats::counts::derive_rates(&mut counts);
    match (&args.output, args.json) {
        (Some(path), _) => {
            let text = serde_json::to_string_pretty(&counts).map_err(Failure::failed)?;
            output::write_to(Some(path), format!("{text}\n").as_bytes())?;
        }
        (None, true) => output::print_json(&counts)?,
        (None, false) => {
            let width = output::terminal_size(io::stderr()).map_or(100, |(columns, _)| columns);
            let options =
                ShowOptions { width, color: is_colored(&io::stderr()), ..ShowOptions::default() };
            output::print_stderr(&terminal::show_counts(&counts, &options));
        }
    }
    exit::of_code(counts.exit_code.unwrap_or(0))
}

fn of_command(args: &CountArgs, wanted: Vec<WantedCount>) -> Result<CommandCounts, Failure> {
    let program = command::find_command(&args.command)?.ok_or_else(|| {
        Failure::refused("nothing to count: punctual count -- COMMAND …, or a process with --pid")
    })?;
    let user = command::find_user(args.user.as_deref())?;
    let interrupts = SignalRequests::listen()?;
    let mut prepared = command::prepare_command(&program, &args.command, args.json, user.as_ref());
    // Counters are inherited from the thread that starts the command.
    let counters = RequestedCounters::open_for_programs(wanted);
    let began = clock::monotonic_now();
    let child = prepared.spawn();
    let child = child
        .map_err(|why| Failure::refused(format!("cannot run `{}`: {why}", args.command[0])))?;
    let mut count_progress = Meanwhile::new(args, &counters);
    let goes_on = || count_progress.goes_on(&interrupts);
    let ended = wait_for_command(child.id() as i32, goes_on);
    let wall = clock::monotonic_now() - began;
    let (exit, used) =
        ended.map_err(|why| Failure::failed(format!("waiting for the command failed: {why}")))?;
    let cpu = CpuTime { total: used.user + used.system, user: used.user, system: used.system };
    Ok(CommandCounts {
        schema: COUNTS_SCHEMA.to_owned(),
        command: args.command.clone(),
        pid: None,
        exit_code: Some(exit_code(exit)),
        wall,
        cpu,
        counts: counters.read(&KernelCounts::Wait4(&used)),
    })
}

fn of_process(
    args: &CountArgs,
    pid: u32,
    wanted: Vec<WantedCount>,
) -> Result<CommandCounts, Failure> {
    let mut process = CountedProcess::from_pid(pid)?;
    let command = process.command_line();
    let interrupts = SignalRequests::listen()?;
    let counters = RequestedCounters::attach_to_process(wanted, &process);
    let began = clock::monotonic_now();
    let new = process.begin_count();
    if new > 0 {
        let threads = format::count_with_noun(new as u64, "thread");
        output::print_stderr(&format!(
            "note: {threads} began while the counters were opened, and may not be counted\n"
        ));
    }
    let mut count_progress = Meanwhile::new(args, &counters);
    while process.update_reading() && count_progress.goes_on(&interrupts) {
        std::thread::sleep(TICK);
    }
    let wall = clock::monotonic_now() - began;
    Ok(CommandCounts {
        schema: COUNTS_SCHEMA.to_owned(),
        command,
        pid: Some(pid),
        exit_code: None,
        wall,
        cpu: process.cpu_time(),
        counts: counters.read(&KernelCounts::Proc(&process)),
    })
}

/// The work during the count.
struct Meanwhile<'c> {
    live: Option<Live<'c>>,
    end: Option<MonotonicNs>,
}

impl<'c> Meanwhile<'c> {
    fn new(args: &CountArgs, counters: &'c RequestedCounters) -> Meanwhile<'c> {
        let now = clock::monotonic_now();
        Meanwhile {
            live: args.live.map(|every| Live::new(counters, every)),
            end: args.duration.map(|duration| MonotonicNs(now.0.saturating_add(duration.0))),
        }
    }

    /// Shows new counts; false: stop.
    fn goes_on(&mut self, interrupts: &SignalRequests) -> bool {
        self.live.iter_mut().for_each(Live::print_if_due);
        !interrupts.end_requested() && self.end.is_none_or(|end| clock::monotonic_now() < end)
    }
}

/// Waits for the command, or asks it to end when the count stops. Ctrl-C has reached it already.
fn wait_for_command(
    pid: i32,
    mut goes_on: impl FnMut() -> bool + Send,
) -> io::Result<(children::ProcessEnd, children::Used)> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let forward = || {
            while !over.load(Ordering::Acquire) && goes_on() {
                std::thread::park_timeout(TICK);
            }
            // The process has not been reaped: its id is its own.
            if !over.load(Ordering::Acquire) {
                let _ = children::send_signal(pid, libc::SIGTERM);
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
    children::reap_with_usage(pid)
}

/// Parses an interval of `--live`.
fn parse_interval(text: &str) -> Result<Nanos, String> {
    let every: Nanos = text.parse().map_err(|why| format!("{why}"))?;
    match every >= MIN_LIVE_INTERVAL {
        true => Ok(every),
        false => Err(format!("an interval is at least {MIN_LIVE_INTERVAL}")),
    }
}

/// The exit code as from a shell.
fn exit_code(exit: children::ProcessEnd) -> u8 {
    let code = match exit {
        children::ProcessEnd::Status(status) => status,
        children::ProcessEnd::Signal(signal) => 128 + signal,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}
