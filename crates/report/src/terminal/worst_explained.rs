//! After the figures of a run: of each series the worst sample, and what most of its time went to.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format::{clipped, count, counted, percent};
use crate::sentence::explain::{reasons, share, title, who};
use punctual_analyze::{Explained, Explanations};

/// Series listed.
const LISTED: usize = 16;
/// Names are cut at this many columns.
const NAME: usize = 40;

/// One line a series; nothing where no sample is explained. The first sample of each series is its
/// worst.
pub fn worst_explained(all: &Explanations, options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    let of = |sample: &Explained| (sample.phase.clone(), sample.series.clone());
    let worst: Vec<&Explained> = all
        .samples
        .chunk_by(|one, other| of(one) == of(other))
        .filter_map(|series| series.first())
        .collect();
    if worst.is_empty() {
        return String::new();
    }
    out.heading("worst samples explained");
    let columns = vec![
        Column::left("series", 0),
        Column::right(&out.unit(), 0),
        Column::right("of which", 1),
        Column::left("cause", 0),
        // Who it was is the answer: where there is little room, names are cut and shares are left
        // out.
        Column::left("who", 0),
    ];
    let rows = worst.iter().take(LISTED).map(|sample| row(&out, sample, all)).collect();
    table::write(&mut out, columns, rows);
    if let Some(more) = worst.len().checked_sub(LISTED).filter(|more| *more > 0) {
        out.paragraph("  ", "  ", Tone::Faint, &format!("and {} more series", count(more as u64)));
    }
    let missed = all.series.iter().fold(0u64, |sum, series| sum.saturating_add(series.missed()));
    if missed > 0 {
        let text = format!("no trace window was kept for {}", counted(missed, "late sample"));
        out.paragraph("  ", "  ", Tone::Uncertain, &text);
    }
    out.finish()
}

fn row(out: &Page, sample: &Explained, all: &Explanations) -> Vec<Cell> {
    let explanation = &sample.explanation;
    let most = reasons(explanation).into_iter().max_by_key(|reason| reason.time);
    let (share, cause, who) = most.map_or_else(Default::default, |reason| {
        let cause = reason.part.cause;
        let share = percent(share(reason.time, explanation.latency()));
        (share, title(cause).to_owned(), who(cause, reason.part.prio, &all.names))
    });
    let name = NAME.min(out.options.width / 5);
    vec![
        Cell::plain(clipped(&sample.series, name, out.options.ascii)),
        Cell::plain(out.latency(explanation.latency().ns() as f64)),
        Cell::plain(share),
        Cell::plain(cause),
        Cell::plain(clipped(&who, name, out.options.ascii)),
    ]
}
