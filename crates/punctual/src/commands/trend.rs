//! `punctual trend`: the development of the runs kept by `--baseline`.

use super::beside::check_report;
use super::bundle::show_options;
use crate::exit::{Ending, Exit, Failure, Outputs};
use crate::output;
use punctual_core::Nanos;
use punctual_report::{document, openmetrics};
use punctual_session::messages::shown;
use punctual_study::baseline::{Baseline, trend};
use std::path::PathBuf;

/// Show where figures changed over the runs that --baseline keeps
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual run gate.toml --baseline history\n  punctual trend \
                        history --since 30d --report trend.html\n  punctual trend history --json | \
                        jq '.histories[].figures[] | {name, levels}'")]
pub struct TrendArgs {
    /// The directory that was given to --baseline
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Only runs of the last DURATION, as 30d
    #[arg(long, value_name = "DURATION")]
    since: Option<Nanos>,
    /// Accept the newest run of each history as it is: later runs are compared with it and those
    /// after it alone
    #[arg(long, conflicts_with_all = ["since", "json", "report", "metrics"])]
    accept: bool,
    /// Write a page: each figure over the runs, with its changes
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the newest run of each history as OpenMetrics text (docs/trend.md)
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Print JSON in the format punctual-trend/1 (docs/trend.md)
    #[arg(long)]
    json: bool,
}

/// Reads the records, and prints the trend.
pub fn run(args: TrendArgs) -> Ending {
    if !args.directory.is_dir() {
        return Err(Failure::refused(format!(
            "{} is not a directory: name the one that was given to --baseline",
            shown(&args.directory)
        )));
    }
    let baseline = Baseline { directory: args.directory.clone(), commit: None, required: false };
    if args.accept {
        let accepted = baseline.accept()?;
        let which = if accepted == 1 { "history begins" } else { "histories begin" };
        output::print(&format!("{accepted} {which} with the newest run\n"))?;
        return Ok(Exit::Done);
    }
    check_report(args.report.as_deref())?;
    let found = trend(&baseline, args.since)?;
    let document = document::trend(&found, &shown(&args.directory));
    let mut outputs = Outputs::default();
    if let Some(file) = &args.report {
        let page = document.page().map_err(Failure::failed);
        outputs.add(page.and_then(|page| output::write_to(Some(file), page.as_bytes())));
    }
    if let Some(file) = &args.metrics {
        outputs.add(output::write_to(Some(file), openmetrics::trend(&found).as_bytes()));
    }
    outputs.add(if args.json {
        output::print_json(&found)
    } else if found.histories.is_empty() && found.left_out.is_empty() {
        output::print(&format!("no runs are kept in {}\n", shown(&args.directory)))
    } else {
        output::print(&document.terminal(&show_options()))
    });
    outputs.end(Exit::Done)
}
