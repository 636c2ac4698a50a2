//! `punctual report`: one HTML file about one bundle or several.

use super::show::open;
use crate::conduct::request::shown;
use crate::exit::{Ending, Exit, Failure};
use crate::{output, recorded};
use punctual_bundle::Bundle;
use punctual_report::html::recording::{Digest, RecordingSource};
use punctual_report::html::{self, ReportInput};
use std::path::{Path, PathBuf};

/// Write one HTML file about one bundle or several
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual report punctual-quickstart-20261103-141500\n  \
                        punctual report standard/ rt/ -o comparison.html\n\nThe file opens offline, in any browser, and \
                        asks nothing of any network.")]
pub struct Args {
    /// The bundles
    #[arg(required = true, value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// The file to write; `-` is standard output [default: report.html in the first bundle]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Opens, writes, says where.
pub fn run(args: Args) -> Ending {
    let bundles = args.bundles.iter().map(|path| open(path)).collect::<Result<Vec<Bundle>, Failure>>()?;
    let path = match args.output {
        Some(path) if path == Path::new("-") => {
            output::print(&render(&bundles)?)?;
            return Ok(Exit::Done);
        }
        Some(path) => path,
        None => bundles[0].directory.join("report.html"),
    };
    write(&bundles, &path)?;
    output::print(&format!("{}\n", shown(&path)))?;
    Ok(Exit::Done)
}

/// Writes the report to a file.
pub fn write(bundles: &[Bundle], path: &Path) -> Result<(), Failure> {
    output::write_to(Some(path), render(bundles)?.as_bytes())
}

fn render(bundles: &[Bundle]) -> Result<String, Failure> {
    let summaries: Vec<_> = bundles.iter().map(punctual_analyze::summarize).collect();
    let digests: Vec<Option<Digest>> = bundles.iter().map(digest).collect();
    let inputs = bundles.iter().zip(&summaries).zip(&digests);
    let inputs: Vec<_> = inputs
        .map(|((bundle, summary), digest)| ReportInput {
            recording: digest.as_ref(),
            ..ReportInput::of(bundle, summary)
        })
        .collect();
    html::report(&inputs).map_err(Failure::failed)
}

/// What the page needs of a bundle's recording.
fn digest(bundle: &Bundle) -> Option<Digest> {
    let opened = recorded::open(bundle)?;
    let series = bundle.series().map(|(_, series)| series.meta.name.clone()).collect();
    let source = RecordingSource { recorded: &opened.recorded, names: opened.names(), series, requests: Vec::new() };
    Some(Digest::of(&source, || opened.events()))
}
