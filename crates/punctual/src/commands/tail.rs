//! `punctual tail`: predicts latencies beyond the observed maximum of a run.

use super::bundle::{open, show_options};
use crate::exit::{Ending, Exit, Failure, Outputs};
use crate::output;
use punctual_explain::Explanations;
use punctual_report::document;
use punctual_session::explanation::{self, Wanted};
use punctual_session::messages::shown;
use std::path::PathBuf;

/// Predict latencies beyond the observed maximum
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  punctual tail punctual-quickstart-20261103-141500\n  punctual \
                        tail BUNDLE --series loaded/timer/cpu3 --gates\n  punctual tail BUNDLE \
                        --json | jq '.series[] | {series, levels: .model.levels}'\n\nPrints an \
                        upper bound of the probability that a sample exceeds the maximum; this \
                        needs no model. If the conditions of a model hold (enough samples, \
                        independent bursts, no drift, no rare mode, two models that fit, agree, \
                        and predict the second half of the run), prints the return levels for one \
                        hour, one day, …, with confidence intervals; otherwise prints the \
                        conditions that fail. This is not a guaranteed bound (no WCET)."
)]
pub struct TailArgs {
    /// The bundle
    bundle: PathBuf,
    /// Only this series: PHASE/SERIES, or SERIES in every phase
    #[arg(long, value_name = "SERIES")]
    series: Option<String>,
    /// Show every condition of the model
    #[arg(long)]
    gates: bool,
    /// Print JSON (docs/reference/tail.md)
    #[arg(long)]
    json: bool,
    /// Also write the HTML report to this file
    #[arg(long = "report", alias = "html", value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Opens the bundle, computes the tail and prints it.
pub fn run(args: TailArgs) -> Ending {
    super::beside::can_write_pages(args.html.as_deref())?;
    let bundle = open(&args.bundle)?;
    // A recording of the whole run is not read for this: it may be as long as the run.
    let explained = if bundle.windows.is_some() {
        let wanted = Wanted { series: args.series.iter().cloned().collect(), ..Wanted::default() };
        Some(explanation::open(&bundle, &wanted)?)
    } else {
        None
    };
    let name = shown(&args.bundle);
    let mut tails = punctual_stats::tail::of_bundle(
        &bundle,
        &name,
        args.series.as_deref(),
        explained.as_ref().map(Explanations::largest_causes).as_ref(),
    )
    .map_err(Failure::refused)?;
    tails.findings.extend(explained.into_iter().flat_map(|explained| explained.findings));
    let document = document::tails(&tails, args.gates);
    let mut outputs = Outputs::default();
    if let Some(path) = &args.html {
        let page = document.page().map_err(Failure::failed);
        outputs.add(page.and_then(|page| output::write_to(Some(path), page.as_bytes())));
    }
    outputs.add(match args.json {
        true => output::print_json(&tails),
        false => output::print(&document.terminal(&show_options())),
    });
    outputs.end(Exit::Done)
}
