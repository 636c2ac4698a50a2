//! `punctual hunt`: searches for inputs that make a kernel late.

pub mod report;

use super::printing;
use crate::exit::{Ending, Exit, Failure, Outputs};
use crate::output;
use punctual_core::Nanos;
use punctual_report::document::hunt;
use punctual_report::html;
use punctual_session::messages::shown;
use punctual_study::hunt::run::{self, HuntResult, SPEC, safe};
use punctual_study::hunt::spec::HuntSpec;
use std::path::PathBuf;

/// Search a kernel for causes of latency
///
/// Runs the stressors of stress-ng, alone and combined, with different parameters and start times,
/// in virtual time with instruction tracing. Lists the distinct causes: the longest sections with
/// interrupts disabled, even if no sample met them, and the longest parts of samples in which the
/// kernel did not preempt. For each cause it writes the smallest experiment that reproduces it
/// exactly. It proves no bound.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  punctual hunt --kernel 6.1 --budget 30min\n  punctual hunt --kernel \
                  6.12-rt --against 6.1-rt --stressors vm,mremap,clone\n  punctual hunt \
                  hunt.toml\n  punctual hunt --resume punctual-hunt-6.1 --budget 1h\n  punctual \
                  run punctual-hunt-6.1/found/01-free_pcppages_bulk.toml --exact\n\nExit codes: 0 \
                  done, every requirement met; 1 interrupted or failed, or a kernel failed; 2 the \
                  request was invalid, nothing was started; 3 a requirement is not met; 4 nothing \
                  could be measured.\nWith --bisect: 1 a requirement is not met; 125 nothing \
                  could be measured; 128 interrupted, failed or a wrong request."
)]
pub struct HuntArgs {
    #[command(subcommand)]
    action: Option<HuntAction>,
    #[command(flatten)]
    search: SearchArgs,
}

#[derive(clap::Subcommand)]
enum HuntAction {
    Report(report::HuntReportArgs),
}

#[derive(clap::Args)]
struct SearchArgs {
    /// The hunt file (docs/hunt.md); options override it
    #[arg(value_name = "HUNT.TOML", conflicts_with = "resume")]
    file: Option<PathBuf>,
    /// The kernel: 6.1, 6.12-rt, … (docs/targets.md)
    #[arg(long, value_name = "KERNEL", required_unless_present_any = ["file", "resume"])]
    kernel: Option<String>,
    /// Compare with these kernels: run the smallest inputs there, too
    #[arg(long, value_name = "KERNELS", value_delimiter = ',')]
    against: Vec<String>,
    /// How long to start new trials [default: 30min]
    #[arg(long, value_name = "DURATION")]
    budget: Option<Nanos>,
    /// Trials to search with, rounded up to whole batches; the same number and seed repeat the same
    /// search
    #[arg(long, value_name = "N")]
    trials: Option<usize>,
    /// Duration of a trial, in virtual time [default: 1s]
    #[arg(long, value_name = "DURATION")]
    duration: Option<Nanos>,
    /// Use only these stressors of stress-ng [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    stressors: Vec<String>,
    /// The random seed of the search [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// A requirement on the longest cause and the worst sample: 'max < 20000 instructions', 'max <
    /// 100us'
    #[arg(long, value_name = "REQUIREMENT")]
    require: Vec<String>,
    /// The directory; an existing search is continued [default: punctual-hunt-KERNEL]
    #[arg(long, short, value_name = "DIR", conflicts_with = "resume")]
    output: Option<PathBuf>,
    /// Continue the search in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "kernel")]
    resume: Option<PathBuf>,
    /// Number of concurrent trials [default: one per CPU]
    #[arg(
        long,
        short = 'j',
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    jobs: Option<u16>,
    /// Also write the verdicts as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Exit codes for `git bisect run` (docs/bisect.md)
    #[arg(long)]
    bisect: bool,
    /// Print hunt.json at the end instead of tables
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

/// Searches until the budget is used up, and shows the findings.
pub fn run(args: HuntArgs) -> Ending {
    match args.action {
        Some(HuntAction::Report(args)) => report::run(args),
        None if args.search.bisect => for_bisect(search(args.search)),
        None => search(args.search),
    }
}

fn search(args: SearchArgs) -> Ending {
    let spec = spec(&args)?;
    let default = || PathBuf::from(format!("punctual-hunt-{}", safe(&spec.kernel)));
    let place = args.resume.clone().or(args.output.clone()).unwrap_or_else(default);
    let parallel = args.jobs.map(usize::from);
    let HuntResult { document, interrupted } =
        run::run(&spec, &place, parallel, output::messages(args.quiet))?;
    let mut outputs = Outputs::default();
    let page = html::BUILT.then(|| report::write(&document, &place, None));
    let page = page.and_then(|written| outputs.add(written));
    if let Some(file) = &args.junit {
        outputs.add(report::write_junit(&document, file));
    }
    let directory = place.display().to_string();
    let text = |options: &_| hunt(&document, &directory).terminal(options);
    let places = [("search", Some(place.as_path())), ("report", page.as_deref())];
    outputs.add(printing::print(&document, args.json, text, &places));
    if interrupted {
        let next = format!("punctual hunt --resume {}", shown(&place));
        let why = format!("interrupted: continue with `{next}`");
        outputs.add::<()>(Err(Failure::failed(why)));
        return outputs.end(Exit::Done);
    }
    outputs.end(match args.bisect {
        true => Exit::of_word(document.verdict()),
        false => document.exit(),
    })
}

/// The request: the file, or that of the directory, with the options over it.
fn spec(args: &SearchArgs) -> Result<HuntSpec, Failure> {
    let file = args.file.clone().or(args.resume.as_ref().map(|place| place.join(SPEC)));
    let mut spec = match (&file, &args.kernel) {
        (Some(file), _) => HuntSpec::read(file)?,
        (None, kernel) => HuntSpec::of_kernel(kernel.as_deref().unwrap_or_default()),
    };
    if let Some(kernel) = &args.kernel {
        spec.kernel = kernel.clone();
    }
    if !args.against.is_empty() {
        spec.against = args.against.clone();
    }
    if let Some(budget) = args.budget {
        spec.budget = budget.to_string();
    }
    if let Some(duration) = args.duration {
        spec.duration = duration.to_string();
    }
    if !args.stressors.is_empty() {
        spec.stressors = Some(args.stressors.clone());
    }
    if !args.require.is_empty() {
        spec.require = args.require.clone();
    }
    spec.trials = args.trials.or(spec.trials);
    spec.seed = args.seed.unwrap_or(spec.seed);
    let names = std::iter::once(&spec.kernel).chain(&spec.against);
    for name in names {
        if name.is_empty() || name.contains(|c: char| c == '"' || c == '\\' || c.is_control()) {
            return Err(Failure::refused("--kernel: no such name of a kernel"));
        }
    }
    Ok(spec)
}

/// The exit codes of `git bisect run` (git-bisect(1)): 1 bad, 125 cannot be tested, 128 stop.
pub fn for_bisect(ended: Ending) -> Ending {
    let mapped = |exit| match exit {
        Exit::Done => Exit::Done,
        Exit::NotMet => Exit::Failed,
        Exit::NoEvidence => Exit::BisectSkip,
        _ => Exit::BisectStop,
    };
    match ended {
        Ok(exit) => Ok(mapped(exit)),
        Err(failure) => Err(Failure { exit: mapped(failure.exit), ..failure }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_mapped_for_git_bisect() {
        let codes = [Exit::Done, Exit::Failed, Exit::Refused, Exit::NotMet, Exit::NoEvidence]
            .map(|exit| for_bisect(Ok(exit)).map(|exit| exit as u8).ok());
        assert_eq!(codes, [Some(0), Some(128), Some(128), Some(1), Some(125)]);
        let failed = for_bisect(Err(Failure::no_evidence("it does not boot")));
        assert_eq!(failed.err().map(|failure| failure.exit as u8), Some(125));
    }
}
