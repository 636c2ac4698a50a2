//! Published results beside those of this run.

use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format;
use crate::published::{amount, because};
use punctual_bundle::summary::{PublishedSummary, ResultSummary};

const TEXT_WIDTH: usize = 44;

/// As one table: published, here, and whether the shape came out, with the reason.
pub fn write(out: &mut Page, published: &PublishedSummary) {
    out.heading("published and measured figures");
    out.paragraph(
        "  ",
        "  ",
        Tone::Faint,
        &format!("published: {}", format::plain(&published.source)),
    );
    let rows = published.results.iter().map(|result| row(out, result)).collect();
    let columns = [("", 0), ("result", 0), ("published", 0), ("measured", 0), ("reason", 1)];
    let columns = columns.map(|(heading, dispensable)| Column::left(heading, dispensable)).into();
    // Where there is no room for the reasons beside, they stand below.
    if table::write(out, columns, rows).is_empty() {
        return;
    }
    for result in &published.results {
        if let Some(reason) = because(result) {
            let text = format!("{}: {reason}", format::plain(&result.what));
            out.paragraph("  ", "    ", Tone::Faint, &text);
        }
    }
}

fn row(out: &Page, result: &ResultSummary) -> Vec<Cell> {
    let (tone, word) = match (&result.shape, result.reproduced) {
        (None, _) => (Tone::Faint, ""),
        (_, Some(true)) => (Tone::Good, out.either("✓ trend", "trend")),
        (_, Some(false)) => {
            (Tone::Bad, out.either("✗ trend not reproduced", "trend NOT reproduced"))
        }
        (_, None) => (Tone::Uncertain, out.either("? open", "open")),
    };
    let text = |text: &str| Cell::plain(format::clipped(text, TEXT_WIDTH, out.options.ascii));
    let here = result.here.as_ref().map_or(String::new(), |here| amount(here.value, &here.unit));
    vec![
        Cell(word.to_owned(), tone),
        text(&result.what),
        text(&result.published),
        Cell::plain(here),
        text(&because(result).unwrap_or_default()),
    ]
}
