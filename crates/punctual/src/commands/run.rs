//! `punctual run`: measure what an experiment file says.

mod destinations;

use crate::cli::colored;
use crate::conduct::{self, Conducted, recording, request};
use crate::exit::{Ending, Exit, Failure};
use crate::{live, output};
use punctual_bundle::Bundle;
use punctual_core::Nanos;
use punctual_host::task::memory;
use punctual_plan::{RecordPlan, SystressFormat};
use punctual_report::export::systress::{self, Layout};
use punctual_report::export::{self, Format};
use punctual_report::terminal;
use std::path::{Path, PathBuf};

/// Measure what an experiment file says
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual run examples/quickstart.toml\n  punctual run --plan experiment.toml\n  \
                        punctual run stress.cfg --output results/monday\n\nThe experiment file is described in \
                        punctual-experiment(5).\n\nExit codes: 0 done; 1 failed while running; 2 the request was wrong, \
                        nothing was started; 3 a stated requirement (require, stop_above) was not met; 4 measured, but the \
                        evidence cannot be used (too much lost, not real-time where that was required, undecided).")]
pub struct Args {
    /// The experiment: TOML, or a systress .cfg
    file: PathBuf,
    #[command(flatten)]
    common: Common,
    /// Leave out sections and keys that are not known, with a warning
    #[arg(long)]
    allow_unknown: bool,
}

/// What `run` and `measure` have in common.
#[derive(clap::Args)]
pub struct Common {
    /// Print everything resolved (defaults, CPUs, priorities, estimated time) and start nothing
    #[arg(long)]
    plan: bool,
    /// The bundle's directory; it must not exist [default: punctual-<experiment>-<time>]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// No live view
    #[arg(long, short)]
    quiet: bool,
    /// Print summary.json's shape (docs/json.md) at the end instead of tables
    #[arg(long)]
    json: bool,
    /// Also write the HTML report to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Also write the verdicts as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also write the verdicts as LAVA lines to this file
    #[arg(long, value_name = "FILE")]
    lava: Option<PathBuf>,
    /// End the run when any latency exceeds this (overrides stop_above of the file)
    #[arg(long, value_name = "DURATION")]
    stop_above: Option<Nanos>,
    /// Also record kernel events of these groups, and test points (`punctual trace --events list` shows the groups)
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    trace: Vec<String>,
    /// Run what could make the system unusable
    #[arg(long)]
    pub force: bool,
}

/// Reads, plans, measures, shows.
pub fn run(args: Args) -> Ending {
    // What parsing arguments needed is not needed again.
    memory::release_setup();
    let loaded = request::resolve(&args.file, args.allow_unknown, args.common.force)?;
    measured(&args.common, loaded)
}

/// Does what an experiment says that was read and resolved.
pub fn measured(args: &Common, (loaded, mut plan): (request::Loaded, punctual_plan::Plan)) -> Ending {
    if let Some(directory) = &args.output {
        plan.output.clone_from(directory);
    }
    if args.stop_above.is_some() {
        let measures = plan.phases.iter_mut().flat_map(|phase| &mut phase.measures);
        measures.for_each(|measure| measure.stop_above = args.stop_above);
    }
    if !args.trace.is_empty() {
        plan.record = Some(also_recorded(&args.trace, plan.record.take())?);
    }
    if args.plan {
        output::print(&plan.describe())?;
        return Ok(Exit::Done);
    }
    destinations::check(args, &plan)?;
    let mut watcher = live::watcher(args.quiet);
    let conducted = conduct::conduct(&plan, &loaded, &mut *watcher);
    watcher.end();
    drop(watcher);
    let conducted = conducted?;
    show(&conducted, args.json)?;
    if let Some(trouble) = conducted.trouble {
        return Err(trouble);
    }
    write_beside(args, &plan, &conducted)?;
    Ok(conducted.exit)
}

/// What the plan records, with other groups of events.
fn also_recorded(groups: &[String], planned: Option<RecordPlan>) -> Result<RecordPlan, Failure> {
    let events = recording::groups(groups)?;
    let planned = match planned {
        Some(planned) => planned,
        None => RecordPlan::usual(request::online_cpus()?),
    };
    Ok(RecordPlan { events, ..planned })
}

fn show(conducted: &Conducted, json: bool) -> Result<(), Failure> {
    if json {
        return output::print_json(&conducted.summary);
    }
    let views = conduct::views(&conducted.phases);
    output::print(&terminal::show(&conducted.summary, &views, &super::show::show_options()))?;
    let directory = request::shown(&conducted.directory);
    let bold =
        |text: &str| if colored(&std::io::stdout()) { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() };
    output::print(&format!(
        "\nbundle  {}\nreport  {}\n",
        bold(&directory),
        bold(&format!("punctual report {directory}"))
    ))
}

/// The files that were asked for beside the bundle.
fn write_beside(args: &Common, plan: &punctual_plan::Plan, conducted: &Conducted) -> Result<(), Failure> {
    let bundle = Bundle::open(&conducted.directory).map_err(Failure::failed)?;
    if let Some(path) = &args.report {
        super::report::write(std::slice::from_ref(&bundle), path)?;
    }
    for (path, format) in [(&args.junit, Format::Junit), (&args.lava, Format::Lava)] {
        if let Some(path) = path {
            write_export(&bundle, format, path)?;
        }
    }
    systress_files(plan, &bundle)
}

fn write_export(bundle: &Bundle, format: Format, path: &Path) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    export::export(bundle, format, &mut bytes).map_err(Failure::failed)?;
    output::write_to(Some(path), &bytes)
}

/// The files that systress would have left, in the current directory.
fn systress_files(plan: &punctual_plan::Plan, bundle: &Bundle) -> Result<(), Failure> {
    for (planned, measured) in plan.phases.iter().zip(&bundle.phases) {
        let wanted = planned.measures.iter().flat_map(|m| m.threads.iter().map(move |t| (t, m.systress.as_ref())));
        for (thread, file) in wanted {
            let series = measured.series.iter().find(|series| series.meta.name == thread.name);
            if let (Some(file), Some(series)) = (file, series) {
                let layout = match file.format {
                    SystressFormat::Csv => Layout::Csv,
                    SystressFormat::Txt => Layout::Txt,
                };
                let mut bytes = Vec::new();
                systress::write_series(file.index as usize, &series.meta, &series.state, layout, &mut bytes)?;
                output::write_to(Some(&file.path), &bytes)?;
            }
        }
    }
    Ok(())
}
