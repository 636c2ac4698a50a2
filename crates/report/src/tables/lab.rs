//! The effect of each axis of a lab.

use super::{Cell, Column, Table, Tone};
use crate::sentence::lab as words;
use punctual_analyze::lab::{Contrast, Effect, METRICS, effects as effects_of};
use punctual_bundle::lab::LabDocument;

/// What each value of each axis does.
pub fn effects(lab: &LabDocument) -> Table {
    let mut columns = vec![
        Column::text("value", 0).at_most(32),
        Column::text("against", 0).at_most(24),
        Column::text("series", 1).at_most(32),
    ];
    // The last is the maximum.
    let last = METRICS.len() - 1;
    columns.extend(METRICS.iter().enumerate().map(|(k, metric)| {
        let dispensable = if k == last { 0 } else { 6 };
        Column::figures(*metric, dispensable)
            .meaning("the geometric mean of the ratios: ×1 is no effect")
    }));
    columns.extend([
        Column::figures("95 % interval", 0).meaning("of the ratio of the maxima"),
        Column::figures("single pairs", 3).meaning("the range of the ratios of single maxima"),
        Column::figures("pairs", 4).meaning("pairs of cells × seeds"),
        Column::text("maximum", 0),
    ]);
    let rows = effects_of(lab).iter().map(row).collect::<Vec<_>>();
    let mut table =
        Table::new("effect of each axis: ratios to its first value", columns).rows(rows);
    table.remark(Tone::Faint, "×1 is no effect");
    table.sortable().shown(24, 2_000)
}

fn row(effect: &Effect) -> Vec<Cell> {
    let mut row = vec![
        Cell::name(format!("{} {}", effect.axis, effect.value)),
        Cell::name(&effect.against),
        Cell::name(format!("{}/{}", effect.series.0, effect.series.1)),
    ];
    row.extend(effect.contrasts.iter().map(|contrast| match contrast {
        Some(c) => Cell::figure(c.ratio, words::times(c.ratio)).sub(words::interval(c)),
        None => Cell::absent("–"),
    }));
    match effect.contrasts.last().copied().flatten() {
        Some(contrast) => row.extend(of_maximum(&contrast)),
        None => row.extend((0..4).map(|_| Cell::absent("–"))),
    }
    row
}

fn of_maximum(c: &Contrast) -> [Cell; 4] {
    let range = format!("{} to {}", words::times(c.range.0), words::times(c.range.1));
    [
        Cell::text(words::interval(c)),
        Cell::text(range),
        Cell::figure(c.seeds as f64, format!("{} × {}", c.pairs, c.seeds / c.pairs.max(1))),
        match words::describe_significance(c) {
            "lower" => Cell::verdict("", "lower", Tone::Good),
            "higher" => Cell::verdict("", "higher", Tone::Bad),
            other => Cell::text(other).tone(Tone::Faint),
        },
    ]
}
