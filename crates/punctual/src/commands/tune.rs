//! `punctual tune`: finds settings of this machine that help.

mod plan;
mod report;

use super::printing;
use crate::exit::{Ending, Exit, Failure, Outputs};
use crate::output;
use punctual_bundle::tune::{TuningDocument, TuningEnd};
use punctual_core::Nanos;
use punctual_report::{document, html};
use punctual_study::tune::offer::SettingChoice;
use punctual_study::tune::request::{
    BlockSource, PlannedTuning, TuneRequest, offer_all_settings, plan_tuning,
};
use punctual_study::tune::run::{self, TuneResult};
use std::path::{Path, PathBuf};

/// Measure which settings of this machine make a program's latency better
///
/// Tries the fixes of `punctual check` and the settings of `punctual isolate` that can be changed
/// at run time, in randomised blocks of measuring, and compares the best set with the untouched
/// machine in blocks of its own. Each setting is better, worse, without effect, or not resolved in
/// the time, with an interval. Every change is journalled and reverted, also after kill -9.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  punctual tune --list\n  punctual tune -- ./control-loop\n  punctual \
                  tune experiment.toml --require 'p99.9 < 80us' --duration 2h\n  punctual tune \
                  experiment.toml --only irq-affinity,ksm --dry-run\n  punctual tune report \
                  punctual-tune-experiment\n\nExit \
                  codes: 0 done, the requirement met; 1 interrupted or failed; 2 the request was \
                  invalid, nothing was changed; 3 the requirement is not met; 4 too many blocks \
                  could not be used."
)]
pub struct TuneCommandArgs {
    #[command(subcommand)]
    action: Option<TuneAction>,
    #[command(flatten)]
    tune: TuneArgs,
}

#[derive(clap::Subcommand)]
enum TuneAction {
    Report(report::TuneReportArgs),
}

#[derive(clap::Args)]
struct TuneArgs {
    /// The experiment that each block runs (TOML)
    #[arg(value_name = "EXPERIMENT", conflicts_with_all = ["command", "resume"])]
    file: Option<PathBuf>,
    /// The program whose response times are measured, started anew for each block
    #[arg(last = true, value_name = "CMD", conflicts_with = "resume")]
    command: Vec<String>,
    /// The figure that is to become smaller, or a requirement on it: 'p99.9', 'max', 'p99.9 <
    /// 80us'; of a program also 'wakeup p99 < 50us'
    #[arg(long, value_name = "FIGURE", default_value = "p99.9", conflicts_with = "resume")]
    require: String,
    /// How long the tuning may take
    #[arg(long, value_name = "DURATION", default_value = "1h", conflicts_with = "resume")]
    duration: Nanos,
    /// How long a block measures [default: as long as the experiment; of a program 10s]
    #[arg(long, value_name = "DURATION", conflicts_with = "resume")]
    block: Option<Nanos>,
    /// The virtual machine to tune instead of this machine, as vm:6.12-rt: parameters of its boot
    /// are tried, and it boots for each block (overrides [target] of the file)
    #[arg(long, value_name = "TARGET", conflicts_with = "resume")]
    target: Option<String>,
    /// Try only these settings; some that take a protection away are tried only when named here
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "resume")]
    only: Vec<String>,
    /// Do not try these settings
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "resume")]
    without: Vec<String>,
    /// The CPUs that settings are to keep free [default: those that are measured, where others are
    /// left]
    #[arg(long, value_name = "LIST", conflicts_with = "resume")]
    cpus: Option<String>,
    /// The random seed of the order
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "resume")]
    seed: u64,
    /// The directory, which must not exist [default: punctual-tune-NAME]
    #[arg(long, short, value_name = "DIR", conflicts_with = "resume")]
    output: Option<PathBuf>,
    /// Continue the tuning in this directory
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// List the settings that this machine offers, and change nothing
    #[arg(long, conflicts_with_all = ["resume", "dry_run"])]
    list: bool,
    /// Show what would be tried and how long it takes, and change nothing
    #[arg(long, conflicts_with = "resume")]
    dry_run: bool,
    /// Print tuning.json at the end instead of tables
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

/// Tunes, or reports the findings.
pub fn run(args: TuneCommandArgs) -> Ending {
    match args.action {
        Some(TuneAction::Report(args)) => report::run(args),
        None => run_tuning(args.tune),
    }
}

fn run_tuning(args: TuneArgs) -> Ending {
    let messages = output::stderr_messages(args.quiet);
    if let Some(place) = &args.resume {
        let (_, ended) = run::resume_tuning(place, messages)?;
        return show_result(ended, place, args.json);
    }
    let source = match (&args.file, args.command.is_empty()) {
        (Some(file), _) => BlockSource::File(file.clone()),
        (None, false) => BlockSource::Command(args.command.clone()),
        (None, true) if args.list => {
            let (cpus, target) = (args.cpus.as_deref(), args.target.as_deref());
            let offered = offer_all_settings(cpus, target)?;
            return plan::print_settings(&offered.settings, &offered.left_out);
        }
        (None, true) => {
            return Err(Failure::refused(
                "what is to be measured? name an experiment, or a program behind `--`\nhelp: \
                 `punctual tune -- ./control-loop`, `punctual tune experiment.toml`",
            ));
        }
    };
    let options = TuneRequest {
        source,
        figure: args.require,
        choice: SettingChoice { only: args.only, without: args.without },
        cpus: args.cpus,
        within: args.duration,
        block: args.block,
        target: args.target,
        seed: args.seed,
    };
    let PlannedTuning { experiment, spec } = plan_tuning(&options, messages)?;
    if args.list {
        return plan::print_settings(&spec.settings, &spec.left_out);
    }
    let default = || PathBuf::from(format!("punctual-tune-{}", spec.experiment));
    let place = args.output.unwrap_or_else(default);
    if args.dry_run {
        return plan::dry_run(&spec);
    }
    let ended = run::begin_tuning(&place, &experiment, spec, messages)?;
    show_result(ended, &place, args.json)
}

/// Shows the findings, and how it ended.
fn show_result(ended: TuneResult, place: &Path, json: bool) -> Ending {
    let TuneResult { document, broken } = ended;
    let mut outputs = print_findings(&document, place, json, None);
    match broken {
        Some(why) => {
            outputs.add::<()>(Err(why));
            outputs.into_ending(Exit::Done)
        }
        None => outputs.into_ending(exit_of_tuning(&document)),
    }
}

/// Prints the tables, and writes the page.
fn print_findings(
    tuning: &TuningDocument,
    place: &Path,
    json: bool,
    page: Option<&Path>,
) -> Outputs {
    let mut outputs = Outputs::default();
    let page = html::BUILT.then(|| report::write(tuning, place, page));
    let page = page.and_then(|written| outputs.add(written));
    let directory = place.display().to_string();
    let text =
        |options: &_| document::build_tuning_document(tuning, &directory).to_terminal_text(options);
    let places = [("tuning", Some(place)), ("report", page.as_deref())];
    outputs.add(printing::print_document(tuning, json, text, &places));
    outputs
}

/// The exit code of a tuning.
fn exit_of_tuning(document: &TuningDocument) -> Exit {
    match (document.ended, &document.required) {
        (TuningEnd::BlocksFailed, _) => Exit::NoEvidence,
        (TuningEnd::Interrupted, _) => Exit::Failed,
        (_, Some(required)) => Exit::of_word(Some(required.verdict)),
        (_, None) => Exit::Done,
    }
}
