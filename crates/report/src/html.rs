//! `punctual report`: one HTML file that opens without network, on a desk, on a phone, on paper.
//!
//! Figures are tables and histograms are a drawing that need no script; a script replaces them by
//! plots if it runs. The file has a size limit ([`SIZE_LIMIT`]): data that does not fit is made
//! coarser, never removed from the figures, and the page reports it. Names, commands and files are
//! hostile input: docs/reference/report.md describes how they are kept from becoming anything but
//! text.
//!
//! Reading order: [`gather`] the content, make the tables ([`figures`], [`warnings`],
//! [`environment`], …) and the data for the script ([`embedded`]), put them together ([`page`]).

mod account;
pub mod breakdown;
mod by_cpu;
mod curve;
mod cycle;
mod documents;
mod drawing;
mod embedded;
mod environment;
mod exact;
mod facts;
mod figures;
mod flame;
mod gather;
mod header;
mod heat;
mod interrupts;
pub(crate) mod lab;
mod loads;
mod notes;
mod of_cpu;
mod over_time;
pub(crate) mod overlaid;
pub(crate) mod page;
mod percentiles;
mod picture;
pub(crate) mod plot;
pub mod recording;
mod scale;
pub(crate) mod scatter;
mod style;
pub(crate) mod table;
pub(crate) mod text;
mod warnings;
mod worst;

use crate::naming::BundleIdentity;
pub(crate) use drawing::PlotDrawing;
use punctual_bundle::summary::Summary;
use punctual_bundle::{Bundle, RanUnder};
use serde_json::json;

/// No report is larger than this many bytes, so that it can go by mail: it shows fewer series.
pub const SIZE_LIMIT: usize = 5_000_000;
/// Series beyond this number are counted but not shown: twelve bundles of 64 CPUs fit.
const MAX_SERIES: usize = 1_000;

/// Whether this build makes pages.
pub const BUILT: bool = cfg!(feature = "pages");
/// The error of a build that makes no pages.
pub const WITHOUT_PAGES: &str = "this punctual makes no HTML pages (it was built without the \
                                 feature `pages`, as ./x build --board does): copy the results \
                                 to a machine with the whole program (./x build) and make the \
                                 page there";

/// One bundle of a report.
#[derive(Clone, Debug)]
pub struct ReportInput<'a> {
    pub bundle: &'a Bundle,
    pub summary: &'a Summary,
    /// Its label among the other bundles.
    pub label: String,
    /// The environment of the run (`environment.json`), if recorded.
    pub environment: Option<serde_json::Value>,
    /// The result of `punctual check` (`check.json`), if requested.
    pub check: Option<serde_json::Value>,
    /// A digest of its recording, if any.
    pub recording: Option<&'a recording::RecordingDigest>,
    /// The breakdown of its worst samples, if they can be explained.
    pub breakdown: Option<&'a breakdown::Breakdown>,
    /// The result of its replay (`exact.json`); `None` if it was not replayed or cannot be read.
    pub exact: Option<punctual_bundle::exact::ExactDocument>,
}

impl<'a> ReportInput<'a> {
    /// The properties that distinguish it from others.
    fn bundle_identity(&self) -> BundleIdentity {
        let directory = &self.bundle.directory;
        // A chosen label replaces the directory's name.
        let path = match directory.file_name().is_some_and(|name| *name == *self.label) {
            true => directory.display().to_string(),
            false => self.label.clone(),
        };
        let kernel = RanUnder::from_bundle(self.bundle).kernel_release().map(str::to_owned);
        BundleIdentity { path, kernel, machine: self.bundle.manifest.machine.clone(), phase: None }
    }

    /// A bundle with its own documents, labelled by its directory's name. A document that cannot be
    /// read is shown as unavailable, with the reason.
    pub fn from_bundle(bundle: &'a Bundle, summary: &'a Summary) -> ReportInput<'a> {
        let directory =
            bundle.directory.file_name().map(|name| name.to_string_lossy().into_owned());
        let label = directory.unwrap_or_else(|| bundle.manifest.experiment.clone());
        let document = |name| {
            bundle
                .read_document(name)
                .unwrap_or_else(|why| Some(json!({ "unavailable": why.to_string() })))
        };
        ReportInput {
            bundle,
            summary,
            label,
            environment: document("environment"),
            check: document("check"),
            recording: None,
            breakdown: None,
            exact: bundle.read_document(punctual_bundle::exact::EXACT_MEMBER).unwrap_or_default(),
        }
    }
}

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// This build makes no pages.
    #[error("{WITHOUT_PAGES}")]
    LeftOut,
    /// No bundle was given.
    #[error("a report needs at least one bundle")]
    NoBundle,
    /// A defect of this program: a template does not fit its data.
    #[error("the page cannot be made: {0}")]
    Render(String),
}

/// Limits for the content of the page.
#[derive(Clone, Copy, Debug)]
struct PageLimits {
    bins: usize,
    /// Buckets of time of each series.
    buckets: usize,
    /// Worst samples marked in each plot over time.
    worst: usize,
    /// Worst samples in the table.
    worst_rows: usize,
    /// Rows in the table of details.
    details: usize,
    /// Characters of each experiment and plan.
    text: usize,
    documents: usize,
    pictures: usize,
    items: usize,
}

/// From the finest page to the coarsest. The steps are chosen so that one series fills a page well
/// and [`MAX_SERIES`] still fit.
const SIZES: [PageLimits; 7] = [
    PageLimits {
        bins: 20_000,
        buckets: gather::BUCKETS,
        worst: 64,
        worst_rows: 64,
        details: 1000,
        text: 200_000,
        documents: 64,
        pictures: 20,
        items: 6000,
    },
    PageLimits {
        bins: 8_000,
        buckets: 1_000,
        worst: 64,
        worst_rows: 64,
        details: 1000,
        text: 100_000,
        documents: 64,
        pictures: 20,
        items: 4000,
    },
    PageLimits {
        bins: 3_000,
        buckets: 600,
        worst: 32,
        worst_rows: 64,
        details: 1000,
        text: 50_000,
        documents: 48,
        pictures: 16,
        items: 2500,
    },
    PageLimits {
        bins: 1_000,
        buckets: 300,
        worst: 16,
        worst_rows: 64,
        details: 1000,
        text: 20_000,
        documents: 32,
        pictures: 12,
        items: 1500,
    },
    PageLimits {
        bins: 400,
        buckets: 120,
        worst: 10,
        worst_rows: 48,
        details: 600,
        text: 10_000,
        documents: 24,
        pictures: 8,
        items: 1000,
    },
    PageLimits {
        bins: 120,
        buckets: 40,
        worst: 5,
        worst_rows: 32,
        details: 300,
        text: 5_000,
        documents: 16,
        pictures: 4,
        items: 600,
    },
    PageLimits {
        bins: 24,
        buckets: 8,
        worst: 1,
        worst_rows: 16,
        details: 100,
        text: 1_000,
        documents: 8,
        pictures: 1,
        items: 300,
    },
];

/// The report on one or more bundles, at most [`SIZE_LIMIT`] bytes. Reads each log once; the work
/// is proportional to the number of kept samples.
pub fn render_report(inputs: &[ReportInput<'_>]) -> Result<String, HtmlError> {
    report_within(inputs, SIZE_LIMIT)
}

/// Like [`render_report`], with another limit.
pub fn report_within(inputs: &[ReportInput<'_>], limit: usize) -> Result<String, HtmlError> {
    if !BUILT {
        return Err(HtmlError::LeftOut);
    }
    if inputs.is_empty() {
        return Err(HtmlError::NoBundle);
    }
    let mut content = gather::gather_series(inputs);
    fit_page(&mut content, limit, |content, size| page::render_page(inputs, content, size))
}

/// The finest page within the bound: coarser plots first, then fewer series. The smallest where
/// even that does not fit: no page is missing because of its size.
fn fit_page<'a>(
    content: &mut gather::PageSeries<'a>,
    limit: usize,
    render: impl Fn(&gather::PageSeries<'a>, &PageLimits) -> Result<String, HtmlError>,
) -> Result<String, HtmlError> {
    let mut page = String::new();
    for size in &SIZES {
        page = render(content, size)?;
        if page.len() < limit {
            return Ok(page);
        }
    }
    while page.len() >= limit && content.lines.len() > 1 {
        content.keep_series(content.lines.len() / 2);
        page = render(content, &SIZES[SIZES.len() - 1])?;
    }
    Ok(page)
}
