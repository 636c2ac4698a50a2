//! `punctual truth`: how often explanations are right.

use super::bundle::show_options;
use crate::exit::{self, Ending, Exit, Failure};
use crate::output;
use punctual_bundle::truth::{TRUTH_SCHEMA, TruthDocument, TruthScore, TruthSystem};
use punctual_core::Nanos;
use punctual_lab::Control;
use punctual_report::terminal;
use punctual_session::interrupts::Interrupts;
use punctual_study::truth::{self, Through, guest};

/// Measure how often explanations are right
///
/// Injects delays at recorded instants: by tasks of higher or the same priority, and in guests by a
/// kernel module that runs with interrupts or preemption disabled, in interrupt handlers, softirqs
/// and kernel threads. Meanwhile it measures a timer, or a program that waits for locks, peers,
/// disks, pages or its quota, and compares the explanations of the worst samples with the delays.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual truth\n  punctual truth --kernel \
                        6.1,6.1-rt,6.12,6.12-rt --all\n  punctual truth --kernel 6.1 irqs-disabled \
                        softirq --json\n  punctual truth --kernel 6.1 --through perf\n\nExit \
                        codes: 0 done; 3 in guests, a score is below its floor \
                        (recall and precision 97 %, time error 5 %, unknown 3 %); 2 the \
                        request was invalid, or the kernel provides no events for explanations.")]
pub struct Args {
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
    /// records with another tool: tracefs, perf or trace-cmd
    #[arg(long, value_name = "COMMAND", default_value = "run", value_parser = through)]
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

fn through(word: &str) -> Result<Through, String> {
    let found = Through::all().find(|through| through.word() == word);
    found.ok_or_else(|| {
        let known: Vec<&str> = Through::all().map(Through::word).collect();
        format!("known are {}", known.join(", "))
    })
}

/// Runs the cases and shows the scores.
pub fn run(args: Args) -> Ending {
    let cases = truth::cases(args.all, &args.cases)?;
    let progress = |line: String| {
        if !args.quiet {
            output::say(&format!("{line}\n"));
        }
    };
    let mut systems = Vec::new();
    if args.kernel.is_empty() {
        let allowed = punctual_sys::attributes::affinity(0).map_err(Failure::failed)?;
        let cpu = args.cpu.or(allowed.iter().last()).unwrap_or_default();
        let mut report = |case: &punctual_bundle::truth::TruthCase| {
            progress(format!(
                "{}: {} of {} right",
                case.name, case.score.right, case.score.affected
            ));
        };
        systems.push(truth::run_locally(&cases, args.duration, cpu, args.through, &mut report)?);
    } else {
        systems = in_guests(&args, &progress)?;
    }
    let version = env!("PUNCTUAL_VERSION").to_owned();
    let document = TruthDocument { schema: TRUTH_SCHEMA.to_owned(), version, systems };
    let printed = match args.json {
        true => output::print_json(&document),
        false => output::print(&terminal::truth(&document, &show_options())),
    };
    let low = document.systems.iter().any(|system| system.virtual_time && is_below(system));
    exit::after(printed, if low { Exit::NotMet } else { Exit::Done })
}

fn in_guests(args: &Args, progress: &dyn Fn(String)) -> Result<Vec<TruthSystem>, Failure> {
    let interrupts = Interrupts::listen()?;
    let mut passed_on = args.cases.clone();
    passed_on.extend(args.all.then(|| "--all".to_owned()));
    passed_on.push(format!("--through={}", args.through.word()));
    let mut systems = Vec::new();
    for kernel in &args.kernel {
        progress(format!("kernel {kernel}"));
        let mut watch = |_| match interrupts.end_requested() {
            true => Control::Kill,
            false => Control::GoOn,
        };
        let (system, missing) =
            guest::run(kernel, &passed_on, args.through, args.duration, &mut watch)?;
        if let Some(why) = missing {
            progress(why);
        }
        systems.push(system);
    }
    Ok(systems)
}

fn is_below(system: &TruthSystem) -> bool {
    let mut sum = TruthScore::default();
    system.cases.iter().filter(|case| case.cause.is_some()).for_each(|case| sum.add(&case.score));
    let below = |share: Option<f64>, floor: f64| share.is_some_and(|share| share < floor);
    let above = |share: Option<f64>, limit: f64| share.is_some_and(|share| share > limit);
    sum.affected == 0
        || below(sum.recall(), RECALL)
        || below(sum.precision(), PRECISION)
        || above(sum.time_error(), TIME_ERROR)
        || above(sum.unknown(), UNKNOWN)
}
