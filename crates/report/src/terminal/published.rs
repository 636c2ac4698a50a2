//! Published results beside those of this run.

use super::paint::{Page, Tone};
use super::table;
use crate::format;
use crate::published::because;
use crate::tables::published;
use punctual_bundle::summary::PublishedSummary;

/// As one table: published, measured, and whether the trend came out, with the reason.
pub fn write(out: &mut Page, results: &PublishedSummary) {
    let hidden = table::section(out, &published::table(results));
    // Where there is no room for the reasons beside, they stand below.
    if !hidden.iter().any(|heading| heading == published::REASON) {
        return;
    }
    for result in &results.results {
        if let Some(reason) = because(result) {
            let text = format!("{}: {reason}", format::plain(&result.what));
            out.paragraph("  ", "    ", Tone::Faint, &text);
        }
    }
}
