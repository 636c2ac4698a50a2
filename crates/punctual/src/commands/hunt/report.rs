//! `punctual hunt report`: the findings of a search, again.

use crate::commands::printing;
use crate::exit::{Ending, Failure, Outputs};
use crate::output;
use punctual_bundle::Member;
use punctual_bundle::hunt::{HUNT_SCHEMA, HuntDocument};
use punctual_report::document::hunt;
use punctual_report::{export, html};
use punctual_session::messages::shown;
use punctual_study::hunt::run::DOCUMENT;
use std::path::{Path, PathBuf};

/// Write the report of a search
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual hunt report punctual-hunt-6.1\n  punctual hunt \
                        report punctual-hunt-6.1 -o 6.1.html --junit 6.1.xml\n\nExit codes: as \
                        `punctual hunt`.")]
pub struct HuntReportArgs {
    /// The search's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The output file [default: report.html in the search's directory]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write the verdicts as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print hunt.json instead of tables
    #[arg(long)]
    json: bool,
}

/// Reads the search, writes the report and prints the tables.
pub fn run(args: HuntReportArgs) -> Ending {
    if !html::BUILT {
        return Err(Failure::refused(html::WITHOUT_PAGES));
    }
    let document = read(&args.directory)?;
    let mut outputs = Outputs::default();
    let page = outputs.add(write(&document, &args.directory, args.output.as_deref()));
    if let Some(file) = &args.junit {
        outputs.add(write_junit(&document, file));
    }
    let directory = args.directory.display().to_string();
    let text = |options: &_| hunt(&document, &directory).terminal(options);
    let places = [("report", page.as_deref())];
    outputs.add(printing::print(&document, args.json, text, &places));
    outputs.end(document.exit())
}

/// The findings in a search's directory.
///
/// # Errors
/// The document cannot be read, or is of another version.
pub fn read(directory: &Path) -> Result<HuntDocument, Failure> {
    let member = Member::root(directory).join(DOCUMENT);
    let document: HuntDocument = member.read_json().map_err(Failure::refused)?;
    match document.schema == HUNT_SCHEMA {
        true => Ok(document),
        false => Err(Failure::refused(format!(
            "{} is of another version ({}): run the search again",
            shown(member.path()),
            document.schema
        ))),
    }
}

/// Writes the page; returns its path.
pub fn write(
    document: &HuntDocument,
    directory: &Path,
    file: Option<&Path>,
) -> Result<PathBuf, Failure> {
    let page = hunt(document, &directory.display().to_string()).page().map_err(Failure::failed)?;
    output::write_page(file, &Member::root(directory).join("report.html"), &page)
}

/// Writes the verdicts.
pub fn write_junit(document: &HuntDocument, file: &Path) -> Result<(), Failure> {
    let mut xml = Vec::new();
    export::write_junit_of_hunt(document, &mut xml).map_err(Failure::failed)?;
    output::write_to(Some(file), &xml)
}
