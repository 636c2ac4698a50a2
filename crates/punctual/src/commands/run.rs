//! `punctual run`: runs an experiment file.

mod common;
mod cyclictest;
mod destinations;
mod exclusion;
pub mod systress;
mod violation;

use super::answer;
use super::bundle::show_options;
use super::lab::LabFile;
use crate::exit::{Ending, Exit, Failure, Outputs};
use crate::live;
use crate::output::{self, is_colored};
pub use common::{CalibrationArgs, CommonArgs, EngineArgs};
pub use cyclictest::Cyclictest;
use punctual_bundle::Bundle;
use punctual_bundle::summary::Summary;
use punctual_core::Nanos;
use punctual_plan::overrides::{self, Override};
use punctual_plan::text::quote_toml;
use punctual_plan::{Plan, TargetPlan, lab};
use punctual_report::{html, terminal};
use punctual_session::continuing::Continuation;
use punctual_session::end::Further;
use punctual_session::messages::display_path;
use punctual_session::metrics::MetricsFile;
use punctual_session::request::{self, ExperimentRequest};
use punctual_session::run as session;
use punctual_session::run::{FinishedRun, RunContext};
use punctual_study::targets::{self, RemoteRun, Returned};
use std::path::{Path, PathBuf};

/// Run an experiment file
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  punctual run examples/quickstart.toml\n  punctual run --plan \
                        experiment.toml\n  punctual run stress.cfg --output \
                        results/monday\n\npunctual-experiment(5) describes experiment \
                        files.\n\nExit codes: 0 done; 1 failed while running; 2 the request was \
                        invalid, nothing was started; 3 a stated requirement (require, stop_above) \
                        was not met; 4 measured, but the evidence cannot be used (too much lost, \
                        not real-time where that was required, undecided)."
)]
pub struct RunArgs {
    /// The experiment: TOML, or a systress .cfg
    file: PathBuf,
    /// Continue the run in this bundle if it was cut off (power failure, kill -9), interrupted or
    /// failed, with the same experiment; figures are over all parts, and the gap is shown. If there
    /// is no such bundle, start it
    #[arg(long = "continue", value_name = "BUNDLE", conflicts_with = "output")]
    continued: Option<PathBuf>,
    /// Ignore unknown sections and keys, with a warning
    #[arg(long)]
    allow_unknown: bool,
    /// Set a key of every [[measure]] of the file, as `--set period=200us`; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting)]
    set: Vec<(String, String)>,
    /// Measure this long (overrides durations in the file)
    #[arg(long, value_name = "DURATION")]
    duration: Option<Nanos>,
    #[command(flatten)]
    cyclictest: Cyclictest,
    #[command(flatten)]
    common: CommonArgs,
    /// End when this process, which started this one, ends
    #[arg(long, hide = true, value_name = "PID")]
    child_of: Option<u32>,
}

/// Why `--metrics` is refused.
const NO_METRICS: &str = "--metrics is for a run on this host: results of a target arrive only \
                          when the run has ended";

/// Reads the file, plans, measures and prints the results.
pub fn run(args: RunArgs) -> Ending {
    if let Some(parent) = args.child_of {
        let watched = punctual_sys::signals::end_with_parent(parent);
        watched.map_err(|why| {
            Failure::failed(format!("cannot watch for the end of process {parent}: {why}"))
        })?;
    }
    let mut experiment_request =
        ExperimentRequest::of_file(&args.file, args.allow_unknown, &args.common.run_options())?;
    if std::str::from_utf8(&experiment_request.bytes).is_ok_and(lab::is_lab) {
        return run_lab(&args);
    }
    experiment_request.bytes = overrides::apply_overrides(
        &args.file,
        &experiment_request.bytes,
        &args.measure_overrides(),
    )
    .map_err(Failure::refused)?;
    run_experiment(&args.common, &experiment_request, args.continued.as_deref())
}

/// A lab file is run as `punctual lab run` does.
fn run_lab(args: &RunArgs) -> Ending {
    if args.continued.is_some() || !args.measure_overrides().is_empty() {
        return Err(Failure::refused(format!(
            "{} is a lab file: run it with `punctual lab run {0}`, which continues it too; set \
             values in the file",
            display_path(&args.file)
        )));
    }
    let CommonArgs { plan, exact, json, quiet, repeat, .. } = args.common;
    let (output, junit) = (args.common.output.clone(), args.common.beside.junit.clone());
    let repeat = (repeat > 1).then_some(repeat);
    let file = args.file.clone();
    super::lab::run_file(LabFile { file, plan, output, repeat, exact, junit, json, quiet })
}

impl RunArgs {
    /// The values that the command line sets for the measures in the file.
    fn measure_overrides(&self) -> Vec<Override> {
        let claimed =
            || self.common.exclusion.needed_time().filter(|_| !self.cyclictest.has_length());
        let duration = self.duration.or_else(claimed);
        let duration = duration.map(|of| ("duration".to_owned(), quote_toml(&of.to_string())));
        let set = self.set.iter().map(|(key, value)| (key.clone(), in_toml(value)));
        self.cyclictest.measure_settings().into_iter().chain(duration).chain(set).collect()
    }
}

/// Why `--continue` is refused.
const NOT_CONTINUED: &str = "--continue is for a run on this host";

/// Why `--exclude` is refused: a claim is made where the bundle is.
const NOT_EXCLUDED: &str = "--exclude is for a run on this host";

/// Runs an experiment on its target; `continued` is the bundle to continue, if it exists.
pub fn run_experiment(
    args: &CommonArgs,
    asked: &ExperimentRequest,
    continued: Option<&Path>,
) -> Ending {
    match asked.target_plan()? {
        TargetPlan::Host => run_locally(args, asked, continued),
        _ if continued.is_some() => Err(Failure::refused(NOT_CONTINUED)),
        _ if args.engine.metrics.is_some() => Err(Failure::refused(NO_METRICS)),
        _ if args.exclusion.requested_exclusion().is_some() => Err(Failure::refused(NOT_EXCLUDED)),
        elsewhere => run_elsewhere(&elsewhere, args, asked),
    }
}

fn run_locally(args: &CommonArgs, asked: &ExperimentRequest, continued: Option<&Path>) -> Ending {
    if args.repeat > 1 {
        return Err(Failure::refused(targets::NO_REPEATS));
    }
    if args.exact {
        return Err(Failure::refused(targets::NOT_EXACT));
    }
    let messages = output::stderr_messages(args.quiet);
    let (loaded, plan) = asked.resolve(messages)?;
    if plan.phases.is_empty() {
        return Err(Failure::refused("nothing to measure"));
    }
    let mut plan = args.run_options().apply_to(plan, &request::online_cpus()?)?;
    let prepare = |bundle: &Path| Continuation::prepare_plan(bundle, &mut plan, Some(&loaded));
    let continuation = continued.map(prepare).transpose()?.flatten();
    if args.plan {
        output::print_stdout(&plan.describe())?;
        return Ok(Exit::Done);
    }
    let claim = args.exclusion.requested_exclusion();
    if let Some(claim) = claim.as_ref().filter(|_| args.exclusion.dry_run) {
        output::print_stdout(&args.exclusion.format_forecast(claim, &plan))?;
        return Ok(Exit::Done);
    }
    destinations::check_destinations(args, &plan)?;
    continuation.as_ref().map(Continuation::create_part_directory).transpose()?;
    let whole = continuation.as_ref().map(|continuation| continuation.bundle.clone());
    let mut watcher = live::stderr_watcher(args.quiet);
    let context = RunContext {
        metrics: args.engine.metrics.clone().map(MetricsFile::new),
        further: Further { continuation, baseline: args.beside.earlier_runs() },
        attached: None,
        differs: option_env!("PUNCTUAL_DIFFERS"),
        messages,
    };
    let finished = session::run_plan(&plan, &loaded, context, &mut *watcher);
    watcher.on_run_end();
    drop(watcher);
    let (mut finished, mut outputs) = (finished?, Outputs::default());
    outputs.add(finished.trouble.take().map_or(Ok(()), Err));
    if let Some(whole) = &whole {
        // The figures of all parts.
        show_returned(args, whole, &mut outputs);
    } else {
        outputs.add(print_finished(&mut finished, args.json));
        write_beside(args, &plan, &finished, &mut outputs);
        outputs.add(close_unless_json(&finished.summary, args));
    }
    let measured = whole.as_deref().unwrap_or(&finished.directory);
    let claimed = claim.map(|claim| exclusion::print_exclusion(&claim, measured, args.json));
    let claimed = claimed.and_then(|claimed| outputs.add(claimed)).unwrap_or(Exit::Done);
    outputs.into_ending(if finished.exit == Exit::Done { claimed } else { finished.exit })
}

/// Runs an experiment on a target other than this process, shows its bundle, and returns the exit
/// code of the run there.
fn run_elsewhere(target: &TargetPlan, args: &CommonArgs, asked: &ExperimentRequest) -> Ending {
    let options = args.run_options();
    let remote =
        RemoteRun::from_request(target, &options, asked, output::stderr_messages(args.quiet))?;
    if !args.plan {
        args.beside.check_files()?;
    }
    let exit = match targets::run_on_target(target, &remote)? {
        Returned::Plan { text, exit } => {
            output::print_stdout(&text)?;
            return Ok(exit);
        }
        Returned::Bundle(exit) => exit,
    };
    let mut outputs = Outputs::default();
    let compared_summary = outputs.add(args.beside.compare_with_baseline(&remote.output)).flatten();
    let exit = compared_summary.map_or(exit, |held| held.verdict.to_exit());
    show_returned(args, &remote.output, &mut outputs);
    if args.exact && !args.json {
        let exactly = super::explain::exactly_of(&remote.output);
        outputs.add(exactly.and_then(|text| output::print_stdout(&text)));
    }
    outputs.into_ending(exit)
}

fn print_finished(finished: &mut FinishedRun, json: bool) -> Result<(), Failure> {
    let bundle = Bundle::open(&finished.directory).ok();
    if let Some(bundle) = &bundle {
        answer::add(bundle, &mut finished.summary);
    }
    if json {
        return output::print_json(&finished.summary);
    }
    let views = session::phase_views(&finished.phases);
    output::print_stdout(&terminal::show_summary(&finished.summary, &views, &show_options()))?;
    if let Some(bundle) = &bundle {
        output::print_stdout(&super::explain::brief_explanation(bundle))?;
    }
    name_bundle(&finished.directory)
}

/// Like [`close_log`], unless figures were requested as JSON.
pub fn close_unless_json(summary: &Summary, args: &CommonArgs) -> Result<(), Failure> {
    match args.json {
        true => Ok(()),
        false => close_log(summary, args.quiet),
    }
}

/// Prints the last lines of a log: a line for each requirement, and the verdict. A terminal has
/// them above all figures.
pub fn close_log(summary: &Summary, quiet: bool) -> Result<(), Failure> {
    match quiet || output::terminal_size(std::io::stdout()).is_none() {
        true => output::print_stdout(&terminal::show_closing(summary, &show_options())),
        false => Ok(()),
    }
}

/// Prints where the bundle is and how to see more of it.
pub fn name_bundle(directory: &Path) -> Result<(), Failure> {
    let directory = display_path(directory);
    let next = if html::BUILT { "report" } else { "show" };
    let bold = |text: &str| {
        if is_colored(&std::io::stdout()) {
            format!("\u{1b}[1m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    };
    output::print_stdout(&format!(
        "\nbundle  {}\n{next:<6}  {}\n",
        bold(&directory),
        bold(&format!("punctual {next} {directory}"))
    ))
}

/// Shows a bundle returned by a target like that of a run here.
fn show_returned(args: &CommonArgs, directory: &Path, outputs: &mut Outputs) {
    let opened = Bundle::open(directory).map_err(Failure::failed);
    let Some(bundle) = outputs.add(opened) else { return };
    let summary = answer::summarize_with_answer(&bundle);
    outputs.add(show_bundle(args, &bundle, &summary));
    args.beside.write(&bundle, outputs);
    outputs.add(close_unless_json(&summary, args));
}

fn show_bundle(args: &CommonArgs, bundle: &Bundle, summary: &Summary) -> Result<(), Failure> {
    if args.json {
        return output::print_json(summary);
    }
    let views = punctual_stats::phase_views(bundle);
    output::print_stdout(&terminal::show_summary(summary, &views, &show_options()))?;
    output::print_stdout(&super::explain::brief_explanation(bundle))?;
    name_bundle(&bundle.directory)
}

/// Writes the requested files beside the bundle.
fn write_beside(args: &CommonArgs, plan: &Plan, finished: &FinishedRun, outputs: &mut Outputs) {
    let opened = Bundle::open(&finished.directory).map_err(Failure::failed);
    let Some(bundle) = outputs.add(opened) else { return };
    args.beside.write(&bundle, outputs);
    let closing = systress::write(plan, &bundle, outputs);
    if let Some(text) = closing.filter(|_| !(args.quiet || args.json)) {
        outputs.add(output::print_stdout(&format!("\n{text}")));
    }
}

/// A key and its value, written as KEY=VALUE.
pub fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    match !key.is_empty()
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    {
        true => Ok((key.replace('-', "_"), value.to_owned())),
        false => Err("a key consists of letters, digits and `_`".to_owned()),
    }
}

/// A value that is TOML already (a number, a list, `true`), or a text to quote.
pub fn in_toml(value: &str) -> String {
    let bare = value.trim();
    let is_toml = bare.starts_with(['[', '{', '"', '\''])
        || matches!(bare, "true" | "false")
        || (!bare.is_empty()
            && bare
                .strip_prefix('-')
                .unwrap_or(bare)
                .bytes()
                .all(|b| b.is_ascii_digit() || b == b'_'))
        || bare.starts_with("0x");
    // A line break would begin another key.
    if is_toml && !bare.contains(['\n', '\r']) { bare.to_owned() } else { quote_toml(value) }
}
