//! `punctual report`: one HTML file about one bundle or several.

use super::answer;
use super::bundle::{open_checked, or_newest};
use super::documents;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_analyze::pairs::Request;
use punctual_bundle::{Bundle, Member};
use punctual_core::Names;
use punctual_report::html::breakdown::Breakdown;
use punctual_report::html::recording::{Digest, RecordingSource};
use punctual_report::html::{self, ReportInput};
use punctual_session::explained::{self, Wanted};
use punctual_session::messages::shown;
use punctual_session::recorded;
use std::path::{Path, PathBuf};

/// Write one HTML page about bundles, or about a lab, a search, a tuning or a comparison
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual report punctual-quickstart-20261103-141500\n  \
                        punctual report standard/ rt/ -o comparison.html\n  punctual report \
                        BUNDLE --limit 'request->reply < 500us'\n\nThe page works offline in any \
                        browser and loads nothing from the network.")]
pub struct Args {
    /// Bundles, or one directory of a lab, a search or a tuning, or one comparison as JSON
    /// [default: the newest bundle in the current directory]
    #[arg(value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// The output file; `-` is standard output [default: report.html in the first of
    /// them; beside a comparison]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also show this interval of a recording, written as for `punctual pairs`: `A->B`
    #[arg(long, value_name = "PAIR")]
    pair: Vec<String>,
    /// A limit on a pair, a scope or a call of a recording: `A->B < 100us`; violations are listed
    #[arg(long, value_name = "LIMIT")]
    limit: Vec<String>,
}

/// Opens the bundles, writes the page and prints its path.
pub fn run(args: Args) -> Ending {
    if !html::BUILT {
        return Err(Failure::refused(html::WITHOUT_PAGES));
    }
    let places = or_newest(args.bundles)?;
    for place in &places {
        let Some(document) = documents::at(place)? else { continue };
        if places.len() > 1 || !args.pair.is_empty() || !args.limit.is_empty() {
            let kind = document.kind();
            return Err(Failure::refused(format!(
                "{} is {kind}: it has a page of its own, without --pair and --limit",
                shown(place)
            )));
        }
        let (page, member) = document.page(args.output.as_deref())?;
        return write_or_print(args.output.as_deref(), &member, &page);
    }
    let bundles =
        places.iter().map(|path| open_checked(path)).collect::<Result<Vec<Bundle>, Failure>>()?;
    let intervals = Intervals { pairs: args.pair, limits: args.limit };
    let page = render(&bundles, &intervals)?;
    write_or_print(args.output.as_deref(), &bundles[0].member("report.html"), &page)
}

fn write_or_print(file: Option<&Path>, member: &Member, page: &str) -> Ending {
    if file == Some(Path::new("-")) {
        output::print(page)?;
    } else {
        let path = output::write_page(file, member, page)?;
        output::print(&format!("{}\n", shown(&path)))?;
    }
    Ok(Exit::Done)
}

/// Writes the report of a bundle into it; its path.
pub fn write_own(bundle: &Bundle) -> Result<PathBuf, Failure> {
    let page = render(std::slice::from_ref(bundle), &Intervals::default())?;
    output::write_page(None, &bundle.member("report.html"), &page)
}

/// Writes the report to a file.
pub fn write(bundles: &[Bundle], path: &Path) -> Result<(), Failure> {
    output::write_to(Some(path), render(bundles, &Intervals::default())?.as_bytes())
}

/// Intervals that were asked for, as text.
#[derive(Default)]
struct Intervals {
    pairs: Vec<String>,
    limits: Vec<String>,
}

impl Intervals {
    /// As requests of a recording; unknown names are refused.
    fn requests(&self, names: &Names) -> Result<Vec<Request>, Failure> {
        let limited = self.limits.iter().map(|text| Request::find_limited(text, names, None, None));
        let plain = self.pairs.iter().map(|text| Request::find(text, names, None, None));
        limited.chain(plain).collect::<Result<_, _>>().map_err(Failure::refused)
    }

    fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.limits.is_empty()
    }
}

fn render(bundles: &[Bundle], intervals: &Intervals) -> Result<String, Failure> {
    if !html::BUILT {
        return Err(Failure::refused(html::WITHOUT_PAGES));
    }
    if !intervals.is_empty() && bundles.iter().all(|bundle| bundle.recording.is_none()) {
        return Err(Failure::refused(
            "--pair and --limit need a recording, and none of these bundles has one",
        ));
    }
    let summaries: Vec<_> = bundles.iter().map(answer::summarize).collect();
    let digests: Vec<Option<Digest>> =
        bundles.iter().map(|bundle| digest(bundle, intervals)).collect::<Result<_, _>>()?;
    let breakdowns: Vec<Option<Breakdown>> = bundles.iter().map(breakdown).collect();
    let inputs = bundles.iter().zip(&summaries).zip(digests.iter().zip(&breakdowns));
    let inputs: Vec<_> = inputs
        .map(|((bundle, summary), (digest, breakdown))| ReportInput {
            recording: digest.as_ref(),
            breakdown: breakdown.as_ref(),
            ..ReportInput::of(bundle, summary)
        })
        .collect();
    html::report(&inputs).map_err(Failure::failed)
}

/// Late samples of each series that are explained in a page.
const EXPLAINED: usize = 20;

/// Where the time of a bundle's late samples went, where it holds what explains them.
fn breakdown(bundle: &Bundle) -> Option<Breakdown> {
    let wanted = Wanted { worst: Some(EXPLAINED), ..Wanted::default() };
    let explanations = explained::open(bundle, &wanted).ok()?;
    let check: Option<serde_json::Value> = bundle.document("check").unwrap_or_default();
    Breakdown::of(&explanations, check.as_ref())
}

/// What the page needs of a bundle's recording.
fn digest(bundle: &Bundle, intervals: &Intervals) -> Result<Option<Digest>, Failure> {
    let Some(opened) = recorded::open(bundle) else { return Ok(None) };
    let requests = intervals.requests(opened.names())?;
    let series = bundle.series().map(|(_, series)| series.meta.name.clone()).collect();
    let source =
        RecordingSource { recorded: &opened.recorded, names: opened.names(), series, requests };
    Ok(Some(Digest::of(&source, || opened.events())))
}
