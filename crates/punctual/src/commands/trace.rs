//! `punctual trace`: records kernel events and test points into a bundle.

pub(super) mod ending;
mod listing;
pub(super) mod watch;

use super::run::CalibrationArgs;
use crate::exit::{Ending, Failure};
use crate::output;
use punctual_bundle::recording::Keeps;
use punctual_bundle::{BundleWriter, Outcome};
use punctual_core::event::{Group, Names};
use punctual_core::{CpuSet, Fact, Finding, Limit, Nanos};
use punctual_host::environment;
use punctual_host::files::Root;
use punctual_plan::ByteSize;
use punctual_record::Backend;
use punctual_session::command::{self, Command};
use punctual_session::interrupts::SignalRequests;
use punctual_session::limits;
use punctual_session::recording::{self, Recording, RecordingWanted};
use punctual_session::request;
use punctual_session::run::calibration::{self, PREPARING, Recorders, Setup};
use punctual_session::unfinished::UnfinishedBundle;
use punctual_sys::clock;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Record kernel events and test points of applications
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual trace -- ./control-loop\n  punctual trace --events \
                        sched,irq,syscall --duration 10s\n  punctual trace --events \
                        +kmem:kmalloc,writeback:writeback_start -- ./control-loop\n  punctual \
                        trace --events list\n  punctual trace --events none -- ./instrumented  \
                        (test points alone)\n\nRecording begins before the command starts and \
                        ends with it, after --duration, or with Ctrl-C. The command's output is \
                        not changed; messages of punctual go to standard error.\n\nExit codes: \
                        if the recording succeeded and the command failed, that of the command, \
                        or 128 + n if signal n ended it; otherwise: 0 done; 1 failed while \
                        recording; 2 the request was invalid, nothing was started; 4 recorded, but \
                        more than 1 % of the events were lost.")]
pub struct TraceArgs {
    /// Groups of kernel events or tracepoints as GROUP:NAME, separated by commas;
    /// `+futex,kmem:kmalloc` adds to the default ones; `all`,
    /// `none`, or `list`, which describes the groups and shows which are available here [default:
    /// sched,irq,vectors,softirq,ipi, and futex with a command]
    #[arg(long, short, value_name = "EVENTS", value_delimiter = ',')]
    events: Vec<String>,
    /// Only kernel events on these CPUs [default: all online CPUs]
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuSet>,
    /// Only kernel events of or about these processes or threads
    #[arg(long, short, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Only kernel events of or about tasks of this name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    comm: Vec<String>,
    /// Only these system calls, by name or number; adds the group `syscall`
    #[arg(long, value_name = "CALLS", value_delimiter = ',')]
    syscalls: Vec<String>,
    /// End after this time; a command that still runs is sent SIGTERM
    #[arg(long, short, value_name = "DURATION")]
    duration: Option<Nanos>,
    /// The bundle's directory, which must not exist [default: punctual-trace-<time>]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How kernel events are recorded
    #[arg(
        long,
        value_name = "BACKEND",
        value_parser = listing::backend_parser(),
        default_value = "auto"
    )]
    backend: Backend,
    /// Do not record test points of applications
    #[arg(long)]
    no_points: bool,
    /// The buffer size per CPU: it must hold what is recorded while the thread that drains it
    /// waits for a CPU
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    buffer: ByteSize,
    /// Maximum size of the recording
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    max_size: ByteSize,
    /// What to keep when the maximum size is reached: `all` ends the recording, `newest` removes
    /// the oldest events and continues
    #[arg(long, value_name = "WHAT", default_value = "all", value_parser = ["all", "newest"])]
    keep: String,
    /// A limit on intervals, written as for `punctual pairs`: `A->B < 100us`; a violation ends
    /// with exit code 3
    #[arg(long, value_name = "LIMIT", value_parser = parse_limit)]
    limit: Vec<String>,
    #[command(flatten)]
    calibration: CalibrationArgs,
    /// Do not show progress or a summary
    #[arg(long, short)]
    quiet: bool,
    /// Run CMD as this user (name or number), with its groups and no other rights; needs root
    /// [default: as punctual itself]
    #[arg(long, value_name = "USER", requires = "command")]
    user: Option<String>,
    /// The command to run while recording
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Time between two updates of the progress line and polls of the command.
const TICK: Duration = Duration::from_millis(50);

/// Records, runs the command and prints a summary.
pub fn run(args: TraceArgs) -> Ending {
    if args.events == ["list"] {
        return listing::list_events();
    }
    let wanted = wanted_recording(&args)?;
    limits::check_limits(&args.limit, &Names::default(), wanted.points)?;
    let program = command::find_command(&args.command)?;
    let user = command::find_user(args.user.as_deref())?;
    let interrupts = SignalRequests::listen()?;
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let directory =
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("punctual-trace-{stamp}")));
    let mut writer =
        BundleWriter::create(&directory, &command::bundle_name(&args.command), "trace")
            .map_err(Failure::refused)?;
    let mut unfinished = UnfinishedBundle::from_directory(&directory);
    let environment = environment::capture_environment(&Root::from_system());
    writer.write_document("environment", &environment).map_err(Failure::failed)?;
    let calibration = calibrate_recording(&args, &wanted, &directory, &interrupts);
    writer.set_calibration(calibration).map_err(Failure::failed)?;
    let recording = Recording::start(&directory, wanted)?;
    watch::report_findings(&recording.findings);
    let start = |program: PathBuf| Command::start(&program, &args.command, user.as_ref());
    let mut command = match program.map(start).transpose() {
        Ok(command) => command,
        Err(failure) => {
            let _ = recording.stop();
            return Err(failure);
        }
    };
    unfinished.keep();
    let outcome =
        wait_for_end(args.duration, args.quiet, &recording, command.as_mut(), &interrupts, &|| {
            true
        });
    let shown_findings = recording.findings.clone();
    let done = recording.stop()?;
    let news: Vec<Finding> = done
        .recorded
        .findings
        .iter()
        .filter(|found| !shown_findings.contains(found))
        .cloned()
        .collect();
    watch::report_findings(&news);
    ending::end_recording(
        writer,
        done,
        outcome,
        command.and_then(Command::into_end),
        &args.limit,
        args.quiet,
    )
}

/// Waits until the command, the time, the user or the recording itself ends it, or the recorded
/// process has ended.
pub(super) fn wait_for_end(
    duration: Option<Nanos>,
    quiet: bool,
    recording: &Recording,
    mut command: Option<&mut Command>,
    interrupts: &SignalRequests,
    goes_on: &dyn Fn() -> bool,
) -> Outcome {
    let began = clock::monotonic_now();
    let mut line = watch::TraceLine::new(quiet, began);
    loop {
        std::thread::sleep(TICK);
        line.refresh_if_due(recording.progress());
        if let Some(command) = &mut command {
            if command.has_ended() {
                return Outcome::Completed;
            }
        } else if recording.has_ended() || !goes_on() {
            // The reason is a finding of the recording.
            return Outcome::Completed;
        }
        let over = duration.is_some_and(|duration| clock::monotonic_now() - began >= duration);
        if over || interrupts.end_requested() {
            command.into_iter().for_each(Command::terminate);
            return if over { Outcome::Completed } else { Outcome::Interrupted };
        }
    }
}

/// Measures the cost of this recording; else the reason why not.
fn calibrate_recording(
    args: &TraceArgs,
    wanted: &RecordingWanted,
    directory: &Path,
    interrupts: &SignalRequests,
) -> Fact<punctual_bundle::Calibration> {
    let (Some(recorders), Some(cpu)) = (Recorders::of_recording(wanted), wanted.cpus.first_cpu())
    else {
        return Fact::NotAsked;
    };
    // Without a duration, a command or the user ends it at an unknown time.
    let time = Some(args.duration.unwrap_or(Nanos::ZERO));
    match punctual_plan::calibration::decide_calibration(
        args.calibration.requested_calibration(),
        time,
    ) {
        Fact::Known(()) => {}
        Fact::Unavailable(why) => return Fact::Unavailable(why),
        Fact::NotAsked => return Fact::NotAsked,
    }
    if !args.quiet {
        output::print_stderr(&format!("{PREPARING}\n"));
    }
    let setup = Setup::with_cpu(cpu, directory);
    let measured = calibration::measure_cost(&setup, recorders, &|| !interrupts.end_requested());
    measured.map_or_else(Fact::Unavailable, Fact::Known)
}

fn parse_limit(text: &str) -> Result<String, String> {
    Limit::parse_with_subject(text).map(|_| text.to_owned()).map_err(|why| why.to_string())
}

fn wanted_recording(args: &TraceArgs) -> Result<RecordingWanted, Failure> {
    let online = request::online_cpus()?;
    let cpus = args.cpus.clone().unwrap_or_else(|| online.clone());
    if !cpus.is_subset(&online) {
        let absent = cpus.difference(&online);
        return Err(Failure::refused(format!(
            "CPU {absent} is not online; online CPUs are {online}"
        )));
    }
    // Futex events identify the holder when the command waits for a mutex (docs/explain.md);
    // system-wide there are too many.
    let futex: &[Group] = if args.command.is_empty() { &[] } else { &[Group::Futex] };
    let mut events = recording::parse_events(&args.events, &[&Group::USUAL, futex].concat())?;
    if !args.syscalls.is_empty() && !events.groups.contains(&Group::Syscall) {
        events.groups.push(Group::Syscall);
    }
    let points = !args.no_points;
    if events.is_empty() && !points {
        return Err(Failure::refused("nothing to record: neither kernel events nor test points"));
    }
    if args.max_size < MIN_RECORDING_SIZE {
        return Err(Failure::refused(format!(
            "--max-size {}: a recording needs at least {MIN_RECORDING_SIZE}",
            args.max_size
        )));
    }
    Ok(RecordingWanted {
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
            .ok_or_else(|| {
                Failure::refused(format!(
                    "--buffer {}: the size must be between 64KiB and 1GiB",
                    args.buffer
                ))
            })?,
        probes: None,
        max_size: args.max_size.0,
        keeps: if args.keep == "newest" { Keeps::Newest } else { Keeps::All },
    })
}

/// The range of buffer sizes per CPU.
const BUFFERS: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 30;
/// As in experiment files.
const MIN_RECORDING_SIZE: ByteSize = ByteSize(punctual_plan::limits::MIN_RECORDING);
