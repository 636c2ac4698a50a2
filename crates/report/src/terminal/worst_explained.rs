//! The worst sample of each series with its main cause, after the figures of a run.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::table;
use crate::format::{count_text, count_with_noun};
use crate::sentence::explain::main_delay;
use crate::tables::{Cell, Column, Table};
use punctual_explain::{Explained, Explanations};

const LISTED_SAMPLES: usize = 16;
/// Names are cut at this many columns.
const NAME: usize = 40;

/// One line per series; empty if no sample is explained. The first sample of each series is its
/// worst.
pub fn worst_explained(all: &Explanations, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    let series_key = |sample: &Explained| (sample.phase.clone(), sample.series.clone());
    let worst: Vec<&Explained> = all
        .samples
        .chunk_by(|one, other| series_key(one) == series_key(other))
        .filter_map(|series| series.first())
        .collect();
    if worst.is_empty() {
        return String::new();
    }
    out.push_heading("worst samples explained");
    let name = NAME.min(options.width / 5);
    let columns = vec![
        Column::text("series", 0).at_most(name),
        Column::figures(out.unit_name(), 0),
        Column::figures("of which", 1),
        Column::text("cause", 0),
        // The culprit is the answer: in little room, names are cut and shares hidden.
        Column::text("who", 0).at_most(name),
    ];
    let rows = worst.iter().take(LISTED_SAMPLES).map(|sample| sample_row(sample, all));
    table::write_body(&mut out, &Table::new("worst", columns).with_rows(rows));
    if let Some(more) = worst.len().checked_sub(LISTED_SAMPLES).filter(|more| *more > 0) {
        out.push_paragraph(
            "  ",
            "  ",
            Tone::Faint,
            &format!("and {} more series", count_text(more as u64)),
        );
    }
    let missed =
        all.series.iter().fold(0u64, |sum, series| sum.saturating_add(series.missed_samples()));
    if missed > 0 {
        let text =
            format!("no trace window was kept for {}", count_with_noun(missed, "late sample"));
        out.push_paragraph("  ", "  ", Tone::Uncertain, &text);
    }
    out.finish()
}

fn sample_row(sample: &Explained, all: &Explanations) -> Vec<Cell> {
    let explanation = &sample.explanation;
    let mut row = vec![Cell::name(&sample.series), Cell::time(explanation.latency().ns())];
    match main_delay(explanation, &all.names) {
        Some(most) => row.extend([
            Cell::share(most.share),
            Cell::text(most.words),
            Cell::text(most.who.unwrap_or_default()),
        ]),
        None => row.extend([Cell::default(), Cell::default(), Cell::default()]),
    }
    row
}
