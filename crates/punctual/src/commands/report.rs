//! `punctual report`: one HTML file about one or several bundles.

use super::bundle::{open_checked, or_newest};
use super::bundle_page::{IntervalArgs, render_page};
use super::{answer, documents};
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_bundle::{Bundle, Member};
use punctual_report::{document, html};
use punctual_session::messages::display_path;
use std::path::{Path, PathBuf};

/// Write one HTML page about bundles, or about a lab, a tuning or a comparison
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual report punctual-quickstart-20261103-141500\n  \
                        punctual report standard/ rt/ -o comparison.html\n  punctual report \
                        BUNDLE --format markdown\n  punctual report \
                        BUNDLE --limit 'request->reply < 500us'\n\nThe page works offline in any \
                        browser and loads nothing from the network.")]
pub struct ReportArgs {
    /// Bundles, or one directory of a lab or a tuning, or one comparison as JSON
    /// [default: the newest bundle in the current directory]
    #[arg(value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// The output file; `-` is standard output [default: report.html in the first of
    /// them; next to a comparison]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The format: html, or markdown, the answer and the figures in one screen, for a comment or a
    /// summary in CI, to standard output unless --output is given
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["pair", "limit"])]
    format: ReportFormat,
    /// Also show this interval of a recording, written as for `punctual pairs`: `A->B`
    #[arg(long, value_name = "PAIR")]
    pair: Vec<String>,
    /// A limit on a pair, a scope or a call of a recording: `A->B < 100us`; violations are listed
    #[arg(long, value_name = "LIMIT")]
    limit: Vec<String>,
}

/// The format of the page.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Default)]
enum ReportFormat {
    #[default]
    Html,
    Markdown,
}

/// Opens the bundles, writes the page and prints its path.
pub fn run(args: ReportArgs) -> Ending {
    if args.format == ReportFormat::Markdown {
        return print_markdown(or_newest(args.bundles)?, args.output.as_deref());
    }
    if !html::BUILT {
        return Err(Failure::refused(html::WITHOUT_PAGES));
    }
    let places = or_newest(args.bundles)?;
    for place in &places {
        let Some(document) = documents::read_document(place)? else { continue };
        if places.len() > 1 || !args.pair.is_empty() || !args.limit.is_empty() {
            let kind = document.kind_name();
            return Err(Failure::refused(format!(
                "{} is {kind}: it has a page of its own, without --pair and --limit",
                display_path(place)
            )));
        }
        let (page, member) = document.render_page(args.output.as_deref())?;
        return write_or_print(args.output.as_deref(), &member, &page);
    }
    let bundles =
        places.iter().map(|path| open_checked(path)).collect::<Result<Vec<Bundle>, Failure>>()?;
    let intervals = IntervalArgs { pairs: args.pair, limits: args.limit };
    let page = render_page(&bundles, &intervals)?;
    write_or_print(args.output.as_deref(), &bundles[0].member("report.html"), &page)
}

fn print_markdown(places: Vec<PathBuf>, file: Option<&Path>) -> Ending {
    let mut texts = Vec::new();
    for place in &places {
        texts.push(match documents::read_document(place)? {
            Some(document) => document.to_markdown(),
            None => {
                document::build_run_document(&answer::summarize_with_answer(&open_checked(place)?))
                    .to_markdown()
            }
        });
    }
    let text = texts.join("\n");
    match file.filter(|file| *file != Path::new("-")) {
        Some(file) => output::write_to(Some(file), text.as_bytes())?,
        None => output::print_stdout(&text)?,
    }
    Ok(Exit::Done)
}

fn write_or_print(file: Option<&Path>, member: &Member, page: &str) -> Ending {
    if file == Some(Path::new("-")) {
        output::print_stdout(page)?;
    } else {
        let path = output::write_page(file, member, page)?;
        output::print_stdout(&format!("{}\n", display_path(&path)))?;
    }
    Ok(Exit::Done)
}
