//! `punctual lab report`: the results of a lab as one page that opens without network.
//!
//! Reading order: the [`curves`] of all cells, the [`heat`] maps, and the script put together here;
//! `document/lab.rs` has the rest.

mod curves;
pub(crate) mod heat;
pub(crate) mod work;

use super::curve::Curve;
use super::drawing::{self, PlotDrawing};
use super::embedded::EmbeddedData;
use super::gather::PageSeries;
use super::page::page_script;
use super::recording::section::RecordingData;
use super::scale::Scale;
use super::{HtmlError, PageLimits, SIZE_LIMIT, account, fit_page};
use punctual_bundle::Bundle;
use punctual_bundle::lab::LabDocument;
use punctual_bundle::summary::Summary;

const SCRIPT: [&str; 1] = [include_str!("assets/lab.js")];

/// The plots of the page.
pub struct Scripted {
    pub drawing: PlotDrawing,
    /// A sentence on the figures that are coarser than measured.
    pub reduced: String,
    pub script: String,
    pub embedded: String,
}

/// The page of all curves, made coarser until it is small enough. `pooled` are the bundles of the
/// cells in order, all seeds combined (`None` for a cell without one).
///
/// # Errors
/// This build makes no pages, or a template does not fit its data.
pub(crate) fn fit_lab_page(
    lab: &LabDocument,
    pooled: &[Option<Bundle>],
    render: impl Fn(&Scripted) -> Result<String, HtmlError>,
) -> Result<String, HtmlError> {
    if !super::BUILT {
        return Err(HtmlError::LeftOut);
    }
    let summaries: Vec<Option<Summary>> =
        pooled.iter().map(|bundle| bundle.as_ref().map(punctual_stats::summarize_bundle)).collect();
    let mut content = curves::gather_lab_series(lab, pooled, &summaries);
    fit_page(&mut content, SIZE_LIMIT, |content, size| render(&script_plots(content, size)?))
}

/// The plots of the script; without a script the series cannot be chosen, and the first is drawn.
fn script_plots(content: &PageSeries<'_>, size: &PageLimits) -> Result<Scripted, HtmlError> {
    let curves: Vec<Curve> =
        content.lines.iter().map(|line| line.curve.reduce_to(size.bins)).collect();
    let scale = Scale::from_curves(content, &curves);
    let account = account::AccountData::default();
    let embedded = EmbeddedData::from_page(
        &[],
        content,
        &curves,
        scale,
        size,
        RecordingData::from_digests(&[], &[], 0, 0),
        &account,
    )
    .to_text()
    .map_err(|why| HtmlError::Render(why.to_string()))?;
    let (first, first_curves) = curves::of_first_group(content, &curves);
    let reduced = match content.left_out {
        0 => String::new(),
        more => format!("{more} more curves are not shown: too many for one page."),
    };
    let drawing = drawing::draw_curves(&first, &first_curves, &scale);
    Ok(Scripted { drawing, reduced, script: page_script(&SCRIPT), embedded })
}
