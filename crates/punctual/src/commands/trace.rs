//! `punctual trace`: kernel events and test points into a bundle.

pub(super) mod command;
pub(super) mod ending;
mod listing;
pub(super) mod watch;

use crate::conduct::interrupt::Interrupts;
use crate::conduct::recording::{self, Recording, Wanted};
use crate::conduct::request;
use crate::exit::{Ending, Failure};
use crate::limits;
use command::Command;
use punctual_bundle::recording::Keeps;
use punctual_bundle::{BundleWriter, Outcome};
use punctual_core::event::{Group, Names};
use punctual_core::{CpuSet, Finding, Limit, Nanos};
use punctual_host::environment;
use punctual_host::files::Root;
use punctual_host::task::clock;
use punctual_plan::ByteSize;
use punctual_record::Backend;
use std::path::PathBuf;
use std::time::Duration;

/// Record kernel events and the test points of applications
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  punctual trace -- ./control-loop\n  punctual trace --events sched,irq,syscall --duration 10s\n  \
                  punctual trace --events +kmem:kmalloc,writeback:writeback_start -- ./control-loop\n  \
                  punctual trace --events list\n  punctual trace --events none -- ./instrumented   (test points alone)\n\n\
                  Recording begins before the command is started and ends with it, after --duration, or with Ctrl-C. What the \
                  command prints stays its own: punctual speaks on standard error.\n\n\
                  Exit codes: that of the command, 128 + n where signal n ended it, as long as the recording went well; without \
                  a command, or where it had success: 0 done; 1 failed while recording; 2 the request was wrong, nothing was \
                  started; 4 recorded, but more than 1 % of the events were lost."
)]
pub struct Args {
    /// Groups of kernel events or tracepoints as GROUP:NAME, separated by commas; `+futex,kmem:kmalloc` adds to the default
    /// ones; `all`, `none`, or `list`, which explains the groups and shows which are available here [default: sched,irq,vectors,softirq,ipi, and futex with a command]
    #[arg(long, short, value_name = "EVENTS", value_delimiter = ',')]
    events: Vec<String>,
    /// Kernel events on these CPUs alone [default: all that are online]
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuSet>,
    /// Kernel events of these processes or threads alone, or about them
    #[arg(long, short, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Kernel events of tasks of this name alone, or about them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    comm: Vec<String>,
    /// Only these system calls, by name or number; adds the group `syscall`
    #[arg(long, value_name = "CALLS", value_delimiter = ',')]
    syscalls: Vec<String>,
    /// End after this time; the command, where it still runs, is sent SIGTERM
    #[arg(long, short, value_name = "DURATION")]
    duration: Option<Nanos>,
    /// The bundle's directory; it must not exist [default: punctual-trace-<time>]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How kernel events are recorded
    #[arg(long, value_name = "BACKEND", value_parser = listing::backend_parser(), default_value = "auto")]
    backend: Backend,
    /// Leave test points of applications out
    #[arg(long)]
    no_points: bool,
    /// The size of each CPU's buffer: what is recorded while the thread that empties them waits for a CPU
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    buffer: ByteSize,
    /// How large the recording may get
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    max_size: ByteSize,
    /// What to keep of a recording that gets larger: `all` ends it there, `newest` removes the oldest events as it goes on
    #[arg(long, value_name = "WHAT", default_value = "all", value_parser = ["all", "newest"])]
    keep: String,
    /// How long intervals may take, as `punctual pairs` understands it: `A->B < 100us`; one beyond it ends with exit code 3
    #[arg(long, value_name = "LIMIT", value_parser = limit)]
    limit: Vec<String>,
    /// No live line and no summary
    #[arg(long, short)]
    quiet: bool,
    /// The command to run while recording
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// How often the live line is renewed and the command looked at.
const TICK: Duration = Duration::from_millis(50);

/// Records, runs the command, sums up.
pub fn run(args: Args) -> Ending {
    if args.events == ["list"] {
        return listing::list();
    }
    let wanted = wanted(&args)?;
    limits::check(&args.limit, &Names::default(), wanted.points)?;
    let program = command::find(&args.command)?;
    let interrupts = Interrupts::listen()?;
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let directory = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("punctual-trace-{stamp}")));
    let writer = BundleWriter::create(&directory, &command::name(&args.command), "trace").map_err(Failure::refused)?;
    let discard = |_: &Failure| drop(std::fs::remove_dir_all(&directory));
    let environment = environment::capture(&Root::system());
    writer.write_document("environment", &environment).map_err(Failure::failed).inspect_err(discard)?;
    let recording = Recording::start(&directory, wanted).inspect_err(discard)?;
    watch::tell_findings(&recording.findings);
    let mut command = match program.map(|program| Command::start(&program, &args.command)).transpose() {
        Ok(command) => command,
        Err(failure) => {
            let _ = recording.stop();
            discard(&failure);
            return Err(failure);
        }
    };
    let outcome = wait(args.duration, args.quiet, &recording, command.as_mut(), &interrupts, &|| true);
    let told = recording.findings.clone();
    let done = recording.stop()?;
    let news: Vec<Finding> = done.recorded.findings.iter().filter(|found| !told.contains(found)).cloned().collect();
    watch::tell_findings(&news);
    ending::end(writer, done, outcome, command.and_then(Command::ended), &args.limit, args.quiet)
}

/// Until the command, the time, the user or the recording itself ends it, or what is recorded no longer goes on.
pub(super) fn wait(
    duration: Option<Nanos>,
    quiet: bool,
    recording: &Recording,
    mut command: Option<&mut Command>,
    interrupts: &Interrupts,
    goes_on: &dyn Fn() -> bool,
) -> Outcome {
    let began = clock::monotonic();
    let mut line = watch::Line::new(quiet, began);
    loop {
        std::thread::sleep(TICK);
        line.refresh(recording.progress());
        if let Some(command) = &mut command {
            if command.has_ended() {
                return Outcome::Completed;
            }
        } else if recording.has_ended() || !goes_on() {
            // Why is a finding of the recording.
            return Outcome::Completed;
        }
        let over = duration.is_some_and(|duration| clock::monotonic() - began >= duration);
        if over || interrupts.asked() {
            command.into_iter().for_each(Command::terminate);
            return if over { Outcome::Completed } else { Outcome::Interrupted };
        }
    }
}

fn limit(text: &str) -> Result<String, String> {
    Limit::split(text).map(|_| text.to_owned()).map_err(|why| why.to_string())
}

fn wanted(args: &Args) -> Result<Wanted, Failure> {
    let online = request::online_cpus()?;
    let cpus = args.cpus.clone().unwrap_or_else(|| online.clone());
    if !cpus.is_subset(&online) {
        let absent = cpus.difference(&online);
        return Err(Failure::refused(format!("CPU {absent} is not online here; online are {online}")));
    }
    // With them a wait for a mutex of the command has its holder (docs/explain.md); of the whole system they are many.
    let futex: &[Group] = if args.command.is_empty() { &[] } else { &[Group::Futex] };
    let mut events = recording::events(&args.events, &[&Group::USUAL, futex].concat())?;
    if !args.syscalls.is_empty() && !events.groups.contains(&Group::Syscall) {
        events.groups.push(Group::Syscall);
    }
    let points = !args.no_points;
    if events.is_empty() && !points {
        return Err(Failure::refused("nothing is left to record: no kernel event and no test point"));
    }
    if args.max_size < LEAST {
        return Err(Failure::refused(format!("--max-size {}: a recording takes {LEAST} at least", args.max_size)));
    }
    Ok(Wanted {
        insist: true,
        events,
        thread_cpus: online.difference(&cpus),
        online,
        cpus,
        pids: args.pid.clone(),
        follow_children: false,
        comms: args.comm.clone(),
        syscalls: listing::syscall_numbers(&args.syscalls)?,
        backend: args.backend,
        points,
        buffer: usize::try_from(args.buffer.0)
            .ok()
            .filter(|size| BUFFERS.contains(size))
            .ok_or_else(|| Failure::refused(format!("--buffer {}: a buffer has 64KiB to 1GiB", args.buffer)))?,
        probes: None,
        max_size: args.max_size.0,
        keeps: if args.keep == "newest" { Keeps::Newest } else { Keeps::All },
    })
}

/// Buffers of a CPU.
const BUFFERS: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 30;
/// As in experiment files.
const LEAST: ByteSize = ByteSize(punctual_plan::limits::MIN_RECORDING);
