//! Published results beside those of this run.

use super::paint::{Page, Tone};
use super::table;
use crate::format;
use crate::published::because;
use crate::tables::published;
use punctual_bundle::summary::PublishedSummary;

/// One table: published, measured, and whether the trend was reproduced, with the reason.
pub fn write(out: &mut Page, results: &PublishedSummary) {
    let hidden = table::section(out, &published::table(results));
    // If the column of reasons does not fit, they are listed below.
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
