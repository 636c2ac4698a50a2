//! `punctual tune report`: the findings of a tuning, again.

use super::print_findings;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_bundle::Member;
use punctual_bundle::tune::TuningDocument;
use punctual_report::document::build_tuning_document;
use punctual_study::tune::directory::read_findings;
use std::path::{Path, PathBuf};

/// Show what a tuning found, and write its page
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  punctual tune report punctual-tune-experiment\n  punctual tune \
                        report punctual-tune-experiment --json | jq .recommended"
)]
pub struct TuneReportArgs {
    /// The tuning's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The page's file [default: report.html in the tuning's directory]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print tuning.json instead of tables (docs/tune.md)
    #[arg(long)]
    json: bool,
}

/// Reads the findings, and shows them.
pub fn run(args: TuneReportArgs) -> Ending {
    let document = read_findings(&args.directory)?;
    print_findings(&document, &args.directory, args.json, args.output.as_deref())
        .into_ending(Exit::Done)
}

/// Writes the page; returns its path.
pub fn write(
    document: &TuningDocument,
    directory: &Path,
    file: Option<&Path>,
) -> Result<PathBuf, Failure> {
    let page = build_tuning_document(document, &directory.display().to_string())
        .render_page()
        .map_err(Failure::failed)?;
    output::write_page(file, &Member::from_root(directory).join("report.html"), &page)
}
