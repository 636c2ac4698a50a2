//! `punctual hunt`: searches for what makes a kernel late.

use super::show::show_options;
use crate::exit::{Ending, Exit, Failure};
use crate::hunt;
use crate::labs::collect;
use crate::labs::directory::Directory;
use crate::labs::jobs::{Job, Planned};
use crate::labs::request::{self, Overrides};
use crate::labs::schedule;
use crate::output;
use crate::session::interrupt::Interrupts;
use crate::session::request::shown;
use punctual_bundle::hunt::HuntDocument;
use punctual_core::Nanos;
use punctual_report::terminal;
use std::fs;
use std::path::{Path, PathBuf};

/// Search for what makes a kernel late
///
/// Boots the kernel once for each stressor of stress-ng, in virtual time, with every instruction
/// seen. Shows the distinct causes: the longest sections with interrupts disabled, whether or not a
/// sample met them, and the longest parts of samples in which the kernel did not preempt. Each has
/// an experiment that shows it again, to the last digit. It proves no bound.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual hunt --kernel 6.1 --budget 30min\n  punctual hunt \
                        --kernel 6.12-rt --stressors vm,mremap,clone --output hunt-6.12-rt\n  \
                        punctual run hunt-6.12-rt/found/01-free_pcppages_bulk.toml --exact\n\nTo \
                        continue a search, run the same command again.\n\nExit codes: 0 done; 1 \
                        interrupted or failed; 2 the request was wrong, nothing was started.")]
pub struct Args {
    /// The kernel: 6.1, 6.12-rt, … (docs/targets.md)
    #[arg(long, value_name = "KERNEL")]
    kernel: String,
    /// How long trials are started
    #[arg(long, value_name = "DURATION", default_value = "30min")]
    budget: Nanos,
    /// How long each trial measures, in its own time
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    duration: Nanos,
    /// Only these stressors of stress-ng [default: all that it has]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    stressors: Vec<String>,
    /// The random seed of the loads and of the timer's phase
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u32,
    /// The directory; an existing search is continued [default: punctual-hunt-KERNEL]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Number of concurrent trials [default: one per CPU]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Print hunt.json at the end instead of tables
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

/// The lab file of the trials, their directory, and what was found, in the search's directory.
const SURVEY: &str = "survey.toml";
const TRIALS: &str = "trials";
const DOCUMENT: &str = "hunt.json";
const FOUND: &str = "found";

/// Runs the trials until the budget is used up, and shows what they found.
pub fn run(args: Args) -> Ending {
    let name = args.kernel.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
    let place =
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("punctual-hunt-{name}")));
    let stressors = chosen(&args.stressors)?;
    if args.kernel.contains(|c: char| c == '"' || c == '\\' || c.is_control()) {
        return Err(Failure::refused("--kernel: no such name of a kernel"));
    }
    let cannot = |why: std::io::Error| {
        Failure::refused(format!("cannot write below {}: {why}", shown(&place)))
    };
    fs::create_dir_all(&place).map_err(cannot)?;
    let survey = place.join(SURVEY);
    let text = hunt::survey(&args.kernel, args.duration, args.seed.into(), &stressors);
    fs::write(&survey, text).map_err(cannot)?;
    let overrides = Overrides {
        parallel: args.jobs.map(usize::from),
        exact: true,
        budget: Some(args.budget.to_std()),
        ..Overrides::default()
    };
    let planned = Planned::of(request::load(&survey)?, &overrides)?;
    let interrupts = Interrupts::listen()?;
    let directory = Directory::open(&place.join(TRIALS))?;
    directory.prepare(&planned)?;
    let jobs = planned.jobs();
    let ran = schedule::run(&planned, &jobs, &directory, &interrupts, args.quiet)?;
    directory.write(&collect::document(&planned, &jobs, &ran, &directory)?)?;
    let mut document =
        hunt::document(&args.kernel, args.duration, &planned, &jobs, &ran, &directory);
    write_found(&place, &planned, &jobs, &directory, &mut document).map_err(cannot)?;
    let mut bytes = serde_json::to_vec_pretty(&document).map_err(Failure::failed)?;
    bytes.push(b'\n');
    fs::write(place.join(DOCUMENT), bytes).map_err(cannot)?;
    if args.json {
        output::print_json(&document)?;
    } else {
        output::print(&terminal::hunt(&document, &show_options()))?;
        output::print(&format!("\nsearch  {}\n", shown(&place)))?;
    }
    if ran.interrupted {
        return Err(Failure::failed("interrupted: run the same command again to continue"));
    }
    Ok(Exit::Done)
}

/// The stressors that are tried.
fn chosen(asked: &[String]) -> Result<Vec<String>, Failure> {
    let known = hunt::stressors()?;
    if asked.is_empty() {
        return Ok(known);
    }
    match asked.iter().find(|name| !known.contains(name)) {
        Some(name) => Err(Failure::refused(format!(
            "--stressors: this machine's stress-ng has no stressor `{name}`\nhelp: `stress-ng \
             --stressors` lists them"
        ))),
        None => Ok(asked.to_vec()),
    }
}

/// The experiment of each cause, under a name that says which it is.
fn write_found(
    place: &Path,
    planned: &Planned,
    jobs: &[Job],
    directory: &Directory,
    document: &mut HuntDocument,
) -> std::io::Result<()> {
    let found = place.join(FOUND);
    fs::create_dir_all(&found)?;
    for old in fs::read_dir(&found)? {
        fs::remove_file(old?.path())?;
    }
    for (number, cause) in document.causes.iter_mut().enumerate() {
        let cell = |job: &&Job| planned.cells[job.cell].cell.name == cause.stressor;
        let Some(job) = jobs.iter().find(cell) else { continue };
        let from = directory.path().join(Directory::experiment(planned, job));
        let function =
            cause.function.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-");
        let name = format!("{:02}-{function}.toml", number + 1);
        fs::copy(from, found.join(&name))?;
        cause.file = Some(format!("{FOUND}/{name}"));
    }
    Ok(())
}
