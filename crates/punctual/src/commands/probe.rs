//! `punctual probe`: durations of functions in unmodified programs, and passes of source lines.

mod lines;
pub mod target;

use super::pairs;
use super::trace::{ending, wait_for_end, watch};
use crate::exit::{self, Ending, Exit, Failure};
use crate::output;
use punctual_bundle::BundleWriter;
use punctual_bundle::recording::Keeps;
use punctual_core::event::{FunctionName, Group, Names};
use punctual_core::{CpuSet, Nanos};
use punctual_host::environment;
use punctual_host::files::Root;
use punctual_plan::ByteSize;
use punctual_record::Backend;
use punctual_record::probe::{ProbeRequest, cost};
use punctual_record::symbols::lines::{LineSpec, SourceLine, resolve_lines};
use punctual_record::symbols::{
    Function, FunctionSpec, Site, is_of_kernel, resolve_functions, resolve_in_kernel,
};
use punctual_session::command::Command;
use punctual_session::interrupts::SignalRequests;
use punctual_session::limits;
use punctual_session::messages::display_path;
use punctual_session::programs::is_there;
use punctual_session::recording::{self, Recording, RecordingWanted, WantedProbes};
use punctual_session::request;
use punctual_session::unfinished::UnfinishedBundle;
use std::path::PathBuf;
use target::ProbeTarget;

/// Measure the duration of functions in unmodified programs or in the kernel, or between source
/// lines
///
/// A function is NAME, FILE:NAME or a pattern: `fopen`, `libc:fopen`, `./netio:netio_task`,
/// `libc:f*open`, `ns::Class::method`, or `kernel:do_sys_openat2` for a function of the kernel, if
/// it has kprobes. Names are looked up in the program and its libraries (demangled) and in separate
/// debug files. A source line is SOURCE:LINE or FILE:SOURCE:LINE, by the debug information of the
/// program: it is a point, and two lines are an interval. The overhead of probes on this machine is
/// measured first and shown with the result.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual probe libc:fopen libc:fclose -- ls -l\n  punctual \
                        probe -p 1234 'control_*' --duration 10s\n  punctual probe \
                        ./netio:netio_task --limit 'netio_task < 1ms' -- ./netio\n  punctual probe \
                        --argument 1 --calls libc:malloc -- ls\n  punctual probe loop.c:42 \
                        loop.c:57 --limit 'loop.c:42->loop.c:57 < 1ms' -- ./loop\n  punctual probe \
                        'kernel:vfs_*' -- dd if=/dev/zero of=file count=100\n\nMessages go to \
                        standard error. With --json, the result goes to standard output, and the \
                        command's standard output goes to standard error.\n\nExit codes: 0 done; 1 \
                        failed while recording; 2 the request was invalid, nothing was started; 3 \
                        a limit was violated; 4 the recording does not decide a limit, or lost too \
                        many events. If the command fails, its exit code is used.")]
pub struct ProbeArgs {
    /// Functions: NAME, FILE:NAME, kernel:NAME, or with `*` and `?`; source lines: SOURCE:LINE,
    /// FILE:SOURCE:LINE
    #[arg(value_name = "FUNCTION", required_unless_present = "lines")]
    functions: Vec<String>,
    /// List the source lines that can be probed, and probe nothing: of the named source files and
    /// functions; without any, the source files
    #[arg(long, conflicts_with_all = ["everyone", "limit", "argument", "calls"])]
    lines: bool,
    /// Probe this running process
    #[arg(long, short, value_name = "PID", conflicts_with_all = ["command", "everyone"])]
    pid: Option<u32>,
    /// Probe all processes; files must be given by path
    #[arg(long, conflicts_with_all = ["pid", "children"])]
    everyone: bool,
    /// Also probe child processes; this slows down all other processes that run these functions
    #[arg(long)]
    children: bool,
    /// Record this argument of each call (1 to 6; integers and pointers)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=6))]
    argument: Option<u8>,
    /// A limit on the duration of calls or from line to line: `NAME < 100us`, `a.c:3->a.c:9 < 1ms`
    #[arg(long, value_name = "LIMIT")]
    limit: Vec<String>,
    /// Print one line per call instead of figures
    #[arg(long)]
    calls: bool,
    /// How many of the longest calls of each function to show
    #[arg(long, value_name = "N", default_value_t = 1)]
    worst: usize,
    /// Print JSON in the format punctual-pairs/2 (docs/reference/pairs.md)
    #[arg(long)]
    json: bool,
    /// Kernel events to record as well, to show what ran during the calls; `none` records none
    #[arg(
        long,
        short,
        value_name = "GROUPS",
        value_delimiter = ',',
        default_value = "sched,irq,softirq"
    )]
    events: Vec<String>,
    /// Record only the events of or about tasks of this name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    comm: Vec<String>,
    /// Record only the events of or about these processes or threads; `probed` is the process
    /// whose functions are timed
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    events_pid: Vec<EventsPid>,
    /// End after this time; a command that still runs is sent SIGTERM
    #[arg(long, short, value_name = "DURATION")]
    duration: Option<Nanos>,
    /// The bundle's directory, which must not exist [default: punctual-probe-<time>]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Maximum size of the recording
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    max_size: ByteSize,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
    /// Run CMD as this user (name or number), with its groups and no other rights; needs root
    /// [default: as punctual itself]
    #[arg(long, value_name = "USER", requires = "command")]
    user: Option<String>,
    /// The command to run and probe
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Finds the functions, attaches the probes, waits, prints.
pub fn run(args: ProbeArgs) -> Ending {
    let online = request::online_cpus()?;
    let target =
        ProbeTarget::from_arguments(args.pid, args.everyone, &args.command, args.user.as_deref())?;
    if args.lines {
        return lines::print_lines(&args.functions, &target, args.json);
    }
    let (functions, lines) = find_functions(&args.functions, &target)?;
    limits::check_limits(&args.limit, &limit_names(&functions, &lines), false)?;
    let in_kernel = functions.iter().any(|function| function.site == Site::Kernel);
    // A failure to measure the cost means that probes are unavailable.
    let costs =
        if in_kernel { cost::measure_in_kernel(&online) } else { cost::measure_costs(&online) };
    let costs = costs.map_err(Failure::refused)?;
    let interrupts = SignalRequests::listen()?;
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let directory =
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("punctual-probe-{stamp}")));
    let writer = BundleWriter::create(&directory, &target.bundle_name(), "probe")
        .map_err(Failure::refused)?;
    let mut unfinished = UnfinishedBundle::from_directory(&directory);
    let environment = environment::capture_environment(&Root::from_system());
    writer.write_document("environment", &environment).map_err(Failure::failed)?;
    let process = target.start_process(args.json)?;
    let request = ProbeRequest {
        whose: process.probed_processes(args.children),
        argument: args.argument,
        buffer: 4 << 20,
    };
    let probes = WantedProbes { functions, lines, request, costs };
    let recording =
        Recording::start(&directory, wanted_recording(&args, online, process.pid(), probes)?)?;
    watch::report_findings(&recording.findings);
    let mut command = match process.release_command() {
        Ok(command) => command,
        Err(failure) => {
            let _ = recording.stop();
            return Err(failure);
        }
    };
    unfinished.keep();
    let goes_on = || args.pid.is_none_or(is_there);
    let outcome = wait_for_end(
        args.duration,
        args.quiet,
        &recording,
        command.as_mut(),
        &interrupts,
        &goes_on,
    );
    let done = recording.stop()?;
    let command = command.and_then(Command::into_end);
    let closed = ending::close_bundle(writer, done, outcome, command, &args.limit)?;
    let answer = pairs::run(pairs::PairsArgs::for_watched_bundle(
        directory.clone(),
        args.limit,
        args.worst,
        args.calls,
        args.json,
    ))?;
    let directory = display_path(&directory);
    output::print_stderr(&format!(
        "\nbundle    {directory}\nreport    punctual report {directory}\n"
    ));
    match (closed.verdict.to_exit(), answer) {
        (Exit::Done, answer) if answer != Exit::Done => Ok(answer),
        _ => exit::of_code(ending::exit_code(&closed.verdict, command)),
    }
}

/// The names that limits can use before anything is recorded.
fn limit_names(functions: &[Function], lines: &[SourceLine]) -> Names {
    let name = |function: &Function| FunctionName {
        name: function.name.clone(),
        object: function.object.display().to_string(),
        offset: function.offset,
        site: String::new(),
    };
    let points = lines.iter().map(|line| line.name.clone()).collect();
    Names { functions: functions.iter().map(name).collect(), points, ..Names::default() }
}

fn find_functions(
    words: &[String],
    target: &ProbeTarget,
) -> Result<(Vec<Function>, Vec<SourceLine>), Failure> {
    let (mut specs, mut lines, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for word in words {
        match LineSpec::parse(word) {
            Some(Ok(line)) => lines.push(line),
            Some(Err(why)) => wrong.push(why.to_string()),
            None => match FunctionSpec::parse(word) {
                Ok(spec) => specs.push(spec),
                Err(why) => wrong.push(why.to_string()),
            },
        }
    }
    let in_kernel = specs.iter().filter(|spec| is_of_kernel(spec)).count();
    if in_kernel > 0 && in_kernel < specs.len() + lines.len() {
        let message = "kernel functions and program functions cannot be probed together: run \
                       punctual for each";
        return Err(Failure::refused(message));
    }
    let found = match in_kernel {
        0 => {
            let files = target.searched_files()?;
            (resolve_functions(&specs, &files), resolve_lines(&lines, &files))
        }
        _ => (resolve_in_kernel(&specs), Ok(Vec::new())),
    };
    match found {
        (Ok(functions), Ok(lines)) if wrong.is_empty() => return Ok((functions, lines)),
        (functions, lines) => {
            let errors = functions.err().into_iter().chain(lines.err()).flatten();
            wrong.extend(errors.map(|error| error.to_string()));
        }
    }
    Err(Failure::refused(wrong.join("\n       ")))
}

/// The processes whose kernel events are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EventsPid {
    Probed,
    Pid(u32),
}

impl std::str::FromStr for EventsPid {
    type Err = String;
    fn from_str(text: &str) -> Result<EventsPid, String> {
        match (text, text.parse()) {
            ("probed", _) => Ok(EventsPid::Probed),
            (_, Ok(pid)) if pid > 0 => Ok(EventsPid::Pid(pid)),
            _ => Err("neither a process number nor `probed`".to_owned()),
        }
    }
}

fn wanted_recording(
    args: &ProbeArgs,
    online: CpuSet,
    probed: Option<u32>,
    probes: WantedProbes,
) -> Result<RecordingWanted, Failure> {
    let pid = |whose: &EventsPid| match (whose, probed) {
        (EventsPid::Pid(pid), _) => Ok(*pid),
        (EventsPid::Probed, Some(pid)) => Ok(pid),
        (EventsPid::Probed, None) => {
            Err(Failure::refused("--events-pid probed: with --everyone there is no such process"))
        }
    };
    let pids: Result<Vec<u32>, Failure> = args.events_pid.iter().map(pid).collect();
    Ok(RecordingWanted {
        events: recording::parse_events(&args.events, &Group::USUAL)?,
        insist: false,
        cpus: online.clone(),
        online,
        pids: pids?,
        follow_children: args.children,
        comms: args.comm.clone(),
        syscalls: Vec::new(),
        backend: Backend::Auto,
        points: false,
        buffer: recording::BUFFER,
        probes: Some(probes),
        max_size: args.max_size.0,
        keeps: Keeps::All,
        thread_cpus: CpuSet::new(),
    })
}
