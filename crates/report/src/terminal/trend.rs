//! Histories of runs: the verdict on the newest run, and where figures changed.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table;
use crate::format::{counted, plain};
use crate::tables::trend as tables;
use crate::verdict::baseline;
use punctual_bundle::baseline::TrendDocument;

/// Omitted files that are named.
const NAMED: usize = 3;

/// All histories, one below the other.
pub fn trend(document: &TrendDocument, options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    for history in &document.histories {
        out.heading(&tables::title(history));
        for (tone, words) in baseline::newest(&history.held) {
            out.paragraph("  ", "  ", tone, &plain(&words));
        }
        table::section(&mut out, &tables::levels(history));
        out.gap();
    }
    if !document.left_out.is_empty() {
        let count = counted(document.left_out.len() as u64, "record");
        let named: Vec<String> =
            document.left_out.iter().take(NAMED).map(|why| plain(why)).collect();
        let text = format!("{count} left out: {}", named.join("; "));
        out.paragraph("", "  ", Tone::Uncertain, &text);
    }
    out.finish()
}
