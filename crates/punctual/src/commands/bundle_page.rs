//! The page of bundles, with its data from them.

use super::answer;
use crate::exit::Failure;
use crate::output;
use punctual_bundle::Bundle;
use punctual_core::Names;
use punctual_explain::pairs::PairRequest;
use punctual_report::html::breakdown::Breakdown;
use punctual_report::html::recording::{RecordingDigest, RecordingSource};
use punctual_report::html::{self, ReportInput};
use punctual_session::explanation::{self, Wanted};
use punctual_session::playback;
use std::path::{Path, PathBuf};

/// Writes the report of a bundle into it; returns its path.
pub fn write_own(bundle: &Bundle) -> Result<PathBuf, Failure> {
    let page = render_page(std::slice::from_ref(bundle), &IntervalArgs::default())?;
    output::write_page(None, &bundle.member("report.html"), &page)
}

/// Writes the report to a file.
pub fn write(bundles: &[Bundle], path: &Path) -> Result<(), Failure> {
    output::write_to(Some(path), render_page(bundles, &IntervalArgs::default())?.as_bytes())
}

/// The requested intervals, as text.
#[derive(Default)]
pub struct IntervalArgs {
    pub pairs: Vec<String>,
    pub limits: Vec<String>,
}

impl IntervalArgs {
    /// The requests for a recording; unknown names are refused.
    fn pair_requests(&self, names: &Names) -> Result<Vec<PairRequest>, Failure> {
        let limited =
            self.limits.iter().map(|text| PairRequest::find_limited(text, names, None, None));
        let plain = self.pairs.iter().map(|text| PairRequest::from_text(text, names, None, None));
        limited.chain(plain).collect::<Result<_, _>>().map_err(Failure::refused)
    }

    fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.limits.is_empty()
    }
}

/// Renders the page.
///
/// # Errors
/// The page cannot be made, or a request is not in the bundles.
pub fn render_page(bundles: &[Bundle], intervals: &IntervalArgs) -> Result<String, Failure> {
    if !html::BUILT {
        return Err(Failure::refused(html::WITHOUT_PAGES));
    }
    if !intervals.is_empty() && bundles.iter().all(|bundle| bundle.recording.is_none()) {
        return Err(Failure::refused(
            "--pair and --limit need a recording, and none of these bundles has one",
        ));
    }
    let summaries: Vec<_> = bundles.iter().map(answer::summarize_with_answer).collect();
    let digests: Vec<Option<RecordingDigest>> = bundles
        .iter()
        .map(|bundle| digest_recording(bundle, intervals))
        .collect::<Result<_, _>>()?;
    let breakdowns: Vec<Option<Breakdown>> = bundles.iter().map(breakdown_of_bundle).collect();
    let inputs = bundles.iter().zip(&summaries).zip(digests.iter().zip(&breakdowns));
    let inputs: Vec<_> = inputs
        .map(|((bundle, summary), (digest, breakdown))| ReportInput {
            recording: digest.as_ref(),
            breakdown: breakdown.as_ref(),
            ..ReportInput::from_bundle(bundle, summary)
        })
        .collect();
    html::render_report(&inputs).map_err(Failure::failed)
}

/// The number of late samples of each series explained in a page.
const EXPLAINED: usize = 20;

/// The breakdown of a bundle's late samples, if it has the events for it.
fn breakdown_of_bundle(bundle: &Bundle) -> Option<Breakdown> {
    let wanted = Wanted { worst: Some(EXPLAINED), ..Wanted::default() };
    let explanations = explanation::explain_samples(bundle, &wanted).ok()?;
    let check: Option<serde_json::Value> = bundle.read_document("check").unwrap_or_default();
    Breakdown::from_explanations(&explanations, check.as_ref())
}

/// The page's data about a bundle's recording.
fn digest_recording(
    bundle: &Bundle,
    intervals: &IntervalArgs,
) -> Result<Option<RecordingDigest>, Failure> {
    let Some(opened) = playback::open_recording(bundle) else { return Ok(None) };
    let requests = intervals.pair_requests(opened.names())?;
    let series = bundle.all_series().map(|(_, series)| series.meta.name.clone()).collect();
    let source =
        RecordingSource { recorded: &opened.recorded, names: opened.names(), series, requests };
    Ok(Some(RecordingDigest::from_events(&source, || opened.events())))
}
