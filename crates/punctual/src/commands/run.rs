//! `punctual run`: runs an experiment file.

pub mod destinations;

use super::bundle::show_options;
use crate::exit::{Ending, Exit, Failure};
use crate::output::colored;
use crate::{live, output};
use punctual_bundle::Bundle;
use punctual_core::Nanos;
use punctual_plan::{Plan, SystressFormat, TargetPlan};
use punctual_report::export::systress::{self, Layout};
use punctual_report::export::{self, Format};
use punctual_report::format::plain;
use punctual_report::terminal;
use punctual_session::messages::shown;
use punctual_session::metrics::MetricsFile;
use punctual_session::options::{RunOptions, SshOptions};
use punctual_session::request::{self, Asked};
use punctual_session::run::{self as session, FinishedRun, RunContext};
use punctual_session::targets::{self, RemoteRun, Returned};
use punctual_sys::memory;
use std::path::{Path, PathBuf};

/// Run an experiment file
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual run examples/quickstart.toml\n  punctual run \
                        --plan experiment.toml\n  punctual run stress.cfg --output \
                        results/monday\n\npunctual-experiment(5) describes experiment \
                        files.\n\nExit codes: 0 done; 1 failed while running; 2 the request was \
                        wrong, nothing was started; 3 a stated requirement (require, stop_above) \
                        was not met; 4 measured, but the evidence cannot be used (too much lost, \
                        not real-time where that was required, undecided).")]
pub struct Args {
    /// The experiment: TOML, or a systress .cfg
    file: PathBuf,
    #[command(flatten)]
    common: Common,
    /// Ignore unknown sections and keys, with a warning
    #[arg(long)]
    allow_unknown: bool,
    /// End when this process, which started this one, ends
    #[arg(long, hide = true, value_name = "PID")]
    child_of: Option<u32>,
}

/// What `run` and `measure` have in common.
#[derive(clap::Args)]
pub struct Common {
    /// Print the resolved plan (defaults, CPUs, priorities, estimated time) and start nothing
    #[arg(long)]
    pub plan: bool,
    /// The bundle's directory, which must not exist [default: punctual-<experiment>-<time>]
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Do not show the live view
    #[arg(long, short)]
    pub quiet: bool,
    /// Print JSON in the format of summary.json (docs/json.md) at the end instead of tables
    #[arg(long)]
    pub json: bool,
    /// Also write the HTML report to this file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Also write the verdicts as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also write the verdicts as LAVA lines to this file
    #[arg(long, value_name = "FILE")]
    lava: Option<PathBuf>,
    /// Also write the figures as OpenMetrics text every 15 s and at the end, for node_exporter's
    /// textfile collector (FILE ends in .prom there); not on a target
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// End the run if a latency exceeds this (overrides stop_above of the file)
    #[arg(long, value_name = "DURATION")]
    stop_above: Option<Nanos>,
    /// Run CMD by sh(1), once, when a requirement is violated; the run goes on. PUNCTUAL_BUNDLE,
    /// PUNCTUAL_SERIES, PUNCTUAL_REQUIREMENT, PUNCTUAL_VALUE and PUNCTUAL_LIMIT are set (overrides
    /// on_violation of the file; docs/weeks.md)
    #[arg(long, value_name = "CMD")]
    on_violation: Option<String>,
    /// Run until it is interrupted, for weeks: what falls into each five minutes is kept for good,
    /// older samples give way, within 500 MB a month (8 CPUs at 1 kHz; docs/weeks.md)
    #[arg(long)]
    forever: bool,
    /// Also record test points and these groups of kernel events, or tracepoints as GROUP:NAME
    /// (`punctual trace --events list` shows the groups)
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    trace: Vec<String>,
    /// Also keep the kernel events around the worst samples of each series, for `punctual explain`
    #[arg(long)]
    explain: bool,
    /// Allow experiments that could make the system unresponsive
    #[arg(long)]
    pub force: bool,
    /// Where to run: host, vm:KERNEL (vm:6.1-rt), ssh:[USER@]HOST[:PORT]; keys of [target] can
    /// follow, separated by commas (overrides [target] of the file)
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// The random seed: start times and seeds of loads, phase of timers (overrides seed of the
    /// file)
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64)
    )]
    pub seed: Option<u64>,
    /// Run this many times on a target in virtual time and verify that all samples are identical
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub repeat: u32,
    /// Run with every instruction seen, and explain the worst samples by function (virtual time,
    /// x86-64; docs/exact.md)
    #[arg(long)]
    pub exact: bool,
    #[command(flatten)]
    pub elsewhere: SshArgs,
}

/// What is asked of a target that is another system.
#[derive(clap::Args)]
#[command(next_help_heading = "Options for ssh targets")]
pub struct SshArgs {
    /// Follow the run with this id, which was left there, instead of starting one (`punctual ssh
    /// list` shows the ids)
    #[arg(long, value_name = "ID")]
    resume: Option<String>,
    /// How long to retry a lost connection; the run continues meanwhile [default: 10min]
    #[arg(long, value_name = "DURATION")]
    reconnect_for: Option<Nanos>,
    /// How long the run continues and its bundle is kept while no client is connected; then the
    /// run is ended and removed [default: 24h]
    #[arg(long, value_name = "DURATION")]
    keep_for: Option<Nanos>,
}

impl SshArgs {
    fn options(&self) -> SshOptions {
        let (reconnect_for, keep_for) = (self.reconnect_for, self.keep_for);
        SshOptions { resume: self.resume.clone(), reconnect_for, keep_for }
    }
}

impl Common {
    /// What the run itself is asked for; the rest is done with what it leaves.
    pub fn options(&self) -> RunOptions {
        RunOptions {
            plan_only: self.plan,
            output: self.output.clone(),
            quiet: self.quiet,
            stop_above: self.stop_above,
            on_violation: self.on_violation.clone(),
            forever: self.forever,
            trace: self.trace.clone(),
            explain: self.explain,
            force: self.force,
            target: self.target.clone(),
            seed: self.seed,
            repeat: self.repeat,
            exact: self.exact,
            ssh: self.elsewhere.options(),
        }
    }
}

/// Why `--metrics` is refused.
const NO_METRICS: &str = "--metrics is for a run on this host: what is measured on a target is \
                          known here when it has ended";

/// Reads the file, plans, measures and prints the results.
pub fn run(args: Args) -> Ending {
    if let Some(parent) = args.child_of {
        let watched = punctual_sys::signals::end_with_parent(parent);
        watched.map_err(|why| {
            Failure::failed(format!("cannot watch for the end of process {parent}: {why}"))
        })?;
    }
    // What parsing arguments needed is not needed again.
    memory::release_setup();
    run_experiment(
        &args.common,
        &Asked::of_file(&args.file, args.allow_unknown, &args.common.options())?,
    )
}

/// Runs an experiment on its target.
pub fn run_experiment(args: &Common, asked: &Asked) -> Ending {
    match asked.target()? {
        TargetPlan::Host => run_locally(args, asked),
        _ if args.metrics.is_some() => Err(Failure::refused(NO_METRICS)),
        elsewhere => run_elsewhere(&elsewhere, args, asked),
    }
}

fn run_locally(args: &Common, asked: &Asked) -> Ending {
    if args.repeat > 1 {
        return Err(Failure::refused(targets::NO_REPEATS));
    }
    if args.exact {
        return Err(Failure::refused(targets::NOT_EXACT));
    }
    let messages = output::messages(args.quiet);
    let (loaded, plan) = asked.resolve(messages)?;
    if plan.phases.is_empty() {
        return Err(Failure::refused("nothing to measure"));
    }
    let plan = args.options().apply(plan, &request::online_cpus()?)?;
    if args.plan {
        output::print(&plan.describe())?;
        return Ok(Exit::Done);
    }
    destinations::check(args, &plan)?;
    let mut watcher = live::watcher(args.quiet);
    let context = RunContext {
        metrics: args.metrics.clone().map(MetricsFile::new),
        differs: option_env!("PUNCTUAL_DIFFERS"),
        messages,
    };
    let finished = session::run(&plan, &loaded, context, &mut *watcher);
    watcher.end();
    drop(watcher);
    let finished = finished?;
    show(&finished, args.json)?;
    if let Some(trouble) = finished.trouble {
        return Err(trouble);
    }
    write_beside(args, &plan, &finished)?;
    Ok(finished.exit)
}

/// Runs an experiment on a target other than this process, shows its bundle, and returns the exit
/// code of the run there.
fn run_elsewhere(target: &TargetPlan, args: &Common, asked: &Asked) -> Ending {
    let options = args.options();
    let remote = RemoteRun::of(target, &options, asked, output::messages(args.quiet))?;
    if !args.plan {
        destinations::check_beside(args)?;
    }
    let exit = match targets::run(target, &remote)? {
        Returned::Plan { text, exit } => {
            output::print(&text)?;
            return Ok(exit);
        }
        Returned::Bundle(exit) => exit,
    };
    show_returned(args, &remote.output)?;
    if args.exact && !args.json {
        output::print(&super::explain::exactly_of(&remote.output)?)?;
    }
    Ok(exit)
}

fn show(finished: &FinishedRun, json: bool) -> Result<(), Failure> {
    if json {
        return output::print_json(&finished.summary);
    }
    let views = session::views(&finished.phases);
    output::print(&terminal::show(&finished.summary, &views, &show_options()))?;
    if let Ok(bundle) = Bundle::open(&finished.directory) {
        output::print(&super::explain::brief(&bundle))?;
    }
    name_bundle(&finished.directory)
}

/// Prints where the bundle is and how to see more of it.
pub fn name_bundle(directory: &Path) -> Result<(), Failure> {
    let directory = shown(directory);
    let bold = |text: &str| {
        if colored(&std::io::stdout()) {
            format!("\u{1b}[1m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    };
    output::print(&format!(
        "\nbundle  {}\nreport  {}\n",
        bold(&directory),
        bold(&format!("punctual report {directory}"))
    ))
}

/// Shows a bundle that came back from a target, as a run here is shown.
fn show_returned(args: &Common, directory: &Path) -> Result<(), Failure> {
    let bundle = Bundle::open(directory).map_err(Failure::failed)?;
    let summary = punctual_analyze::summarize(&bundle);
    if args.json {
        output::print_json(&summary)?;
    } else {
        let views = punctual_analyze::views(&bundle);
        output::print(&terminal::show(&summary, &views, &show_options()))?;
        output::print(&super::explain::brief(&bundle))?;
        name_bundle(directory)?;
    }
    write_exports(args, &bundle)
}

/// The files that were asked for beside the bundle.
fn write_beside(args: &Common, plan: &Plan, finished: &FinishedRun) -> Result<(), Failure> {
    let bundle = Bundle::open(&finished.directory).map_err(Failure::failed)?;
    write_exports(args, &bundle)?;
    let written = systress_files(plan, &bundle)?;
    match written.is_empty() || args.quiet || args.json {
        true => Ok(()),
        false => output::print(&systress_closing(&written, &bundle)),
    }
}

/// The last lines that systress prints, for who reads them: where each thread's statistics are, and
/// how long it took.
fn systress_closing(written: &[(String, String)], bundle: &Bundle) -> String {
    let lines = written.iter().map(|(name, file)| format!("Statistics for {name} in '{file}'\n"));
    let elapsed: i64 =
        bundle.phases.iter().filter_map(|phase| phase.meta.duration).map(Nanos::ns).sum();
    format!("\n{}Total elapsed time: {:.3} s\n", lines.collect::<String>(), elapsed as f64 / 1e9)
}

fn write_exports(args: &Common, bundle: &Bundle) -> Result<(), Failure> {
    if let Some(path) = &args.report {
        super::report::write(std::slice::from_ref(bundle), path)?;
    }
    for (path, format) in [(&args.junit, Format::Junit), (&args.lava, Format::Lava)] {
        if let Some(path) = path {
            write_export(bundle, format, path)?;
        }
    }
    Ok(())
}

fn write_export(bundle: &Bundle, format: Format, path: &Path) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    export::export(bundle, format, &mut bytes).map_err(Failure::failed)?;
    output::write_to(Some(path), &bytes)
}

/// The files that systress would have left, in the current directory: of which thread, and their
/// names.
fn systress_files(plan: &Plan, bundle: &Bundle) -> Result<Vec<(String, String)>, Failure> {
    let mut written = Vec::new();
    for (planned, measured) in plan.phases.iter().zip(&bundle.phases) {
        let wanted = planned
            .measures
            .iter()
            .flat_map(|m| m.threads.iter().map(move |t| (t, m.systress.as_ref())));
        for (thread, file) in wanted {
            let series = measured.series.iter().find(|series| series.meta.name == thread.name);
            if let (Some(file), Some(series)) = (file, series) {
                let layout = match file.format {
                    SystressFormat::Csv => Layout::Csv,
                    SystressFormat::Txt => Layout::Txt,
                };
                let mut bytes = Vec::new();
                systress::write_series(
                    file.index as usize,
                    series,
                    bundle.timebase(),
                    layout,
                    &mut bytes,
                )?;
                output::write_to(Some(&file.path), &bytes)?;
                written.push((plain(&thread.name), shown(&file.path)));
            }
        }
    }
    Ok(written)
}
