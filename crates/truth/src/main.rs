//! `punctual-truth`: how often explanations are right.

use clap::Parser;
use punctual_core::Nanos;
use punctual_lab::GuestControl;
use punctual_session::exit::{Exit, Failure};
use punctual_session::interrupts::SignalRequests;
use punctual_truth::document::{TRUTH_SCHEMA, TruthCase, TruthDocument, TruthScore, TruthSystem};
use punctual_truth::{Through, guest, inject, subject};
use std::io::{self, Write};
use std::process::ExitCode;

/// Measure how often explanations are right
///
/// Injects delays at recorded instants: by tasks of higher or the same priority, and in guests by a
/// kernel module that runs with interrupts or preemption disabled, in interrupt handlers, softirqs
/// and kernel threads. Meanwhile it measures a timer, or a program that waits for locks, peers,
/// disks, pages or its quota, and compares the explanations of the worst samples with the delays.
#[derive(Parser)]
#[command(
    name = "punctual-truth",
    version,
    after_help = "Examples:\n  punctual-truth\n  punctual-truth --kernel \
                        6.1,6.1-rt,6.12,6.12-rt --all\n  punctual-truth --kernel 6.1 irqs-disabled \
                        softirq --json\n  punctual-truth --kernel 6.1 --through perf\n\nExit \
                        codes: 0 done; 3 in guests, a score is below its floor \
                        (recall and precision 97 %, time error 5 %, unknown 3 %); 2 the \
                        request was invalid, or the kernel provides no events for explanations."
)]
struct Args {
    /// Only these cases: a kind of delay, or one with a length (higher-priority-3ms)
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Run in guests with these kernels, in virtual time, instead of on this system
    #[arg(long, value_name = "KERNELS", value_delimiter = ',')]
    kernel: Vec<String>,
    /// Inject delays of all lengths instead of two
    #[arg(long)]
    all: bool,
    /// Duration of each case
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    duration: Nanos,
    /// The CPU to measure, when run on this system [default: the last allowed CPU]
    #[arg(long, value_name = "CPU", conflicts_with = "kernel")]
    cpu: Option<usize>,
    /// Score the explanations of this command, which measures meanwhile: run, attach, trace, or
    /// account for the accounting of a run; or of the trace that the line of `punctual recipe`
    /// records with another tool: tracefs, perf or trace-cmd; or of what perf records of the events
    /// sched, irq and timer alone (sched-irq-timer)
    #[arg(long, value_name = "COMMAND", default_value = "run", value_parser = parse_through)]
    through: Through,
    /// Print JSON in the format punctual-truth/1 (docs/reference/truth.md)
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

/// The minimum recall of explanations in guests.
const RECALL: f64 = 0.97;
const PRECISION: f64 = 0.97;
const TIME_ERROR: f64 = 0.05;
const UNKNOWN: f64 = 0.03;

fn parse_through(word: &str) -> Result<Through, String> {
    let found = Through::all_variants().find(|through| through.word() == word);
    found.ok_or_else(|| {
        let known_words: Vec<&str> = Through::all_variants().map(Through::word).collect();
        format!("known are {}", known_words.join(", "))
    })
}

fn main() -> ExitCode {
    punctual_lab::announce_waits(write_stderr_line);
    // The process that injects known delays, and the one that meets them, are this program again.
    let rest = || std::env::args().skip(2);
    let served = match std::env::args().nth(1).as_deref() {
        Some(inject::ARGUMENT) => inject::run_injector(rest()),
        Some(subject::ARGUMENT) => subject::run_subject(rest()),
        _ => return run_to_exit_code(&Args::parse()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            write_stderr_line(&format!("error: {why}"));
            ExitCode::FAILURE
        }
    }
}

fn run_to_exit_code(args: &Args) -> ExitCode {
    let exit = run_cases(args).unwrap_or_else(|failure| {
        write_stderr_line(&format!("error: {}", failure.render(false)));
        failure.exit
    });
    ExitCode::from(exit as u8)
}

/// Writes a line to standard error, if it is open.
fn write_stderr_line(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Runs the cases and shows the scores.
fn run_cases(args: &Args) -> Result<Exit, Failure> {
    let cases = punctual_truth::select_cases(args.all, &args.cases)?;
    let progress = |line: String| {
        if !args.quiet {
            write_stderr_line(&line);
        }
    };
    let mut systems = Vec::new();
    if args.kernel.is_empty() {
        let allowed = punctual_sys::attributes::read_affinity(0).map_err(Failure::failed)?;
        let cpu = args.cpu.or(allowed.iter().last()).unwrap_or_default();
        let mut report = |case: &TruthCase| {
            let TruthScore { right, affected, .. } = case.score;
            progress(format!("{}: {right} of {affected} right", case.name));
        };
        let (duration, through) = (args.duration, args.through);
        systems.push(punctual_truth::run_locally(&cases, duration, cpu, through, &mut report)?);
    } else {
        systems = in_guests(args, &progress)?;
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let document = TruthDocument { schema: TRUTH_SCHEMA.to_owned(), version, systems };
    let printed = match args.json {
        true => serde_json::to_string_pretty(&document).map_err(Failure::failed)? + "\n",
        false => punctual_truth::format_scores(&document),
    };
    io::stdout().write_all(printed.as_bytes())?;
    let low = document.systems.iter().any(|system| system.virtual_time && is_below(system));
    Ok(if low { Exit::NotMet } else { Exit::Done })
}

fn in_guests(args: &Args, progress: &dyn Fn(String)) -> Result<Vec<TruthSystem>, Failure> {
    let interrupts = SignalRequests::listen()?;
    let mut passed_on = args.cases.clone();
    passed_on.extend(args.all.then(|| "--all".to_owned()));
    passed_on.push(format!("--through={}", args.through.word()));
    let mut systems = Vec::new();
    for kernel in &args.kernel {
        progress(format!("kernel {kernel}"));
        let mut watch = |_| match interrupts.end_requested() {
            true => GuestControl::Kill,
            false => GuestControl::GoOn,
        };
        let (system, missing) =
            guest::run_guest_cases(kernel, &passed_on, args.through, args.duration, &mut watch)?;
        if let Some(why) = missing {
            progress(why);
        }
        systems.push(system);
    }
    Ok(systems)
}

fn is_below(system: &TruthSystem) -> bool {
    let mut sum = TruthScore::default();
    let recorded = system.cases.iter().filter(|case| case.unrecorded.is_none());
    recorded.filter(|case| case.cause.is_some()).for_each(|case| sum.add(&case.score));
    let below = |share: Option<f64>, floor: f64| share.is_some_and(|share| share < floor);
    let above = |share: Option<f64>, limit: f64| share.is_some_and(|share| share > limit);
    sum.affected == 0
        || below(sum.recall(), RECALL)
        || below(sum.precision(), PRECISION)
        || above(sum.time_error(), TIME_ERROR)
        || above(sum.unknown_share(), UNKNOWN)
}
