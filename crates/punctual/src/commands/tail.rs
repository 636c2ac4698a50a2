//! `punctual tail`: what a run says of latencies longer than those it saw.

use super::show::{open, show_options};
use crate::exit::{Ending, Exit, Failure};
use crate::explained::{self, Wanted};
use crate::output;
use crate::session::request::shown;
use punctual_report::{html, terminal};
use std::path::PathBuf;

/// Tell what a run says of latencies longer than those it saw
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual tail punctual-quickstart-20261103-141500\n  \
                        punctual tail BUNDLE --series loaded/timer/cpu3 --gates\n  \
                        punctual tail BUNDLE --json | jq '.series[] | {series, levels: .model.levels}'\n\n\
                        First what needs no model: how rare a sample beyond the maximum is at most. Then, only where its conditions hold (samples enough, bursts that are \
                        independent, nothing that drifts, no rare mode, two models that fit and agree and foretell the second half of the run), levels \
                        that are exceeded once in an hour, a day, …, with intervals. Else the reasons against it. Never a safe bound.")]
pub struct Args {
    /// The bundle
    bundle: PathBuf,
    /// This series alone: PHASE/SERIES, or SERIES in every phase
    #[arg(long, value_name = "SERIES")]
    series: Option<String>,
    /// Show every condition of the model
    #[arg(long)]
    gates: bool,
    /// Print it as JSON instead (docs/tail.md)
    #[arg(long)]
    json: bool,
    /// Write it as an HTML file too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Opens, computes, shows.
pub fn run(args: Args) -> Ending {
    let bundle = open(&args.bundle)?;
    // A recording of the whole run is not read for this: it may be as long as the run.
    let explained = if bundle.windows.is_some() {
        let wanted = Wanted { series: args.series.iter().cloned().collect(), ..Wanted::default() };
        Some(explained::open(&bundle, &wanted)?)
    } else {
        None
    };
    let name = shown(&args.bundle);
    let mut tails = punctual_analyze::tail::of_bundle(&bundle, &name, args.series.as_deref(), explained.as_ref())
        .map_err(Failure::refused)?;
    tails.findings.extend(explained.into_iter().flat_map(|explained| explained.findings));
    if let Some(path) = &args.html {
        let page = html::tails(&tails).map_err(Failure::failed)?;
        output::write_to(Some(path), page.as_bytes())?;
    }
    if args.json {
        output::print_json(&tails)?;
    } else {
        output::print(&terminal::tails(&tails, args.gates, &show_options()))?;
    }
    Ok(Exit::Done)
}
