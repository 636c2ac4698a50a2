//! The causes of the worst sample of each cell of a lab, and the effect of each axis.

use super::lab_figures::{ROWS, cell_place, page_of};
use super::{Cell, Column, Face, Table, Tone};
use crate::format::{escape_unsafe, micros_f64};
use crate::sentence::lab as words;
use punctual_bundle::lab::{CellDocument, LabDocument, WorstCellSample};
use punctual_bundle::summary::VerdictWord;
use punctual_core::published::Trend;
use punctual_stats::lab::{
    AxisEffect, Contrast, METRICS, axis_effects as effects_of, judge_claims,
};

/// Each cell with its worst sample and main cause, linked to its page or its verdict. Without rows
/// if no cause is known.
pub(crate) fn worst_table(lab: &LabDocument, pages: &[Option<String>]) -> Table {
    let name = Column::text("cell", 0).at_most(28);
    let columns = vec![
        name,
        Column::text("series", 2).at_most(24),
        Column::text("seed", 1),
        Column::figures("latency", 0),
        Column::figures("of which", 0).with_meaning("the share of its time that this cause has"),
        Column::text("cause", 0),
        Column::text("function or task", 0)
            .with_shrinking()
            .with_meaning("with the calls around it"),
        Column::text("known from", 3).with_only_face(Face::Page),
    ];
    let cells = lab.cells.iter().enumerate();
    let found = cells.filter_map(|(k, cell)| Some((k, cell, cell.worst.as_ref()?)));
    let is_known = found.clone().any(|(_, _, worst)| worst.cause.is_some());
    let rows = found.filter(|_| is_known).map(|(number, cell, worst)| {
        let mut row = worst_row(cell, worst);
        row[0].link = page_of(pages, number).or_else(|| cell_place(number));
        row
    });
    Table::new("what delayed the worst sample of each cell", columns)
        .with_rows(rows)
        .with_row_limit(24, ROWS)
}

fn worst_row(cell: &CellDocument, worst: &WorstCellSample) -> Vec<Cell> {
    let mut row = vec![
        Cell::name(&cell.name),
        Cell::name(&worst.series),
        worst.seed.map_or_else(Cell::default, |seed| Cell::figure(seed as f64, seed.to_string())),
        Cell::time(worst.latency),
    ];
    match &worst.cause {
        Some(cause) => row.extend([
            Cell::share(cause.share),
            Cell::text(&cause.words),
            Cell::name(cause.who.as_deref().unwrap_or_default()).sub(words::format_calls(worst)),
            Cell::text(if worst.exact { "every instruction" } else { "kernel events" }),
        ]),
        None => {
            let reason = worst.unexplained.as_deref().unwrap_or("nothing recorded shows it");
            row.extend([
                Cell::absent("–"),
                Cell::absent("not known"),
                Cell::default().sub(escape_unsafe(reason)),
                Cell::default(),
            ]);
        }
    }
    row
}

/// The effect of each value of each axis.
pub(crate) fn effect_table(lab: &LabDocument) -> Table {
    let mut columns = vec![
        Column::text("value", 0).at_most(32),
        Column::text("against", 0).at_most(24),
        Column::text("series", 1).at_most(32),
    ];
    // The last one is the maximum.
    let last = METRICS.len() - 1;
    columns.extend(METRICS.iter().enumerate().map(|(k, metric)| {
        let dispensable = if k == last { 0 } else { 6 };
        Column::figures(*metric, dispensable)
            .with_meaning("the geometric mean of the ratios: ×1 is no effect")
    }));
    columns.extend([
        Column::figures("95 % interval", 0).with_meaning("of the ratio of the maxima"),
        Column::figures("single pairs", 3).with_meaning("the range of the ratios of single maxima"),
        Column::figures("pairs", 4).with_meaning("pairs of cells × seeds"),
        Column::text("maximum", 0),
    ]);
    let rows: Vec<_> = effects_of(lab)
        .iter()
        .filter(|effect| effect.contrasts.iter().any(Option::is_some))
        .map(effect_row)
        .collect();
    let mut table =
        Table::new("effect of each axis: ratios to its first value", columns).with_rows(rows);
    table.add_remark(Tone::Faint, "×1 is no effect");
    table.with_sorting().with_row_limit(24, 2_000)
}

fn effect_row(effect: &AxisEffect) -> Vec<Cell> {
    let mut row = vec![
        Cell::name(format!("{} {}", effect.axis, effect.value)),
        Cell::name(&effect.against),
        Cell::name(format!("{}/{}", effect.series.0, effect.series.1)),
    ];
    row.extend(effect.contrasts.iter().map(|contrast| match contrast {
        Some(c) => {
            Cell::figure(c.ratio, words::format_ratio(c.ratio)).sub(words::format_interval(c))
        }
        None => Cell::absent("–"),
    }));
    match effect.contrasts.last().copied().flatten() {
        Some(contrast) => row.extend(of_maximum(&contrast)),
        None => row.extend((0..4).map(|_| Cell::absent("–"))),
    }
    row
}

fn of_maximum(c: &Contrast) -> [Cell; 4] {
    let range = format!("{} to {}", words::format_ratio(c.range.0), words::format_ratio(c.range.1));
    [
        Cell::text(words::format_interval(c)),
        Cell::text(range),
        Cell::figure(c.seeds as f64, format!("{} × {}", c.pairs, c.seeds / c.pairs.max(1))),
        match words::describe_significance(c) {
            "lower" => Cell::verdict("", "lower", Tone::Good),
            "higher" => Cell::verdict("", "higher", Tone::Bad),
            other => Cell::text(other).with_tone(Tone::Faint),
        },
    ]
}

/// Claims of publications, and margins of equivalence, judged by the cells.
pub(crate) fn judgement_table(lab: &LabDocument) -> Table {
    let columns = vec![
        Column::text("claim", 0).at_most(56),
        Column::text("stated", 0).at_most(44),
        Column::text("here", 0).at_most(44),
        Column::text("verdict", 0),
    ];
    let claims = judge_claims(lab).into_iter().map(|judged| {
        let measured_here = match &judged.contrast {
            Some(contrast) => Cell::text(words::format_ratio(contrast.ratio)).sub(format!(
                "95 %: {}; {} pairs",
                words::format_interval(contrast),
                contrast.pairs
            )),
            None => Cell::absent("no such cells"),
        };
        let tone = match judged.trend {
            Trend::Reproduced => Tone::Good,
            Trend::Undecided => Tone::Uncertain,
            Trend::Weaker | Trend::Absent | Trend::Reversed => Tone::Bad,
        };
        let stated = Cell::text(&judged.claim.published);
        vec![
            Cell::text(&judged.claim.label),
            stated,
            measured_here,
            verdict_cell(judged.trend.as_str(), tone),
        ]
    });
    let effects = effects_of(lab);
    let margins = effects.iter().flat_map(|of| of.margins.iter().map(move |one| (of, one)));
    let margins = margins.map(|(of, (margin, tested))| {
        let series = format!("{}/{}", of.series.0, of.series.1);
        let what = format!("{} {} is equivalent to {}", of.axis, of.value, of.against);
        let stated = Cell::text(format!("by {margin} (a block is a run)"));
        let (here, word, tone) = match tested {
            Err(why) => (Cell::absent(why.clone()), "undecided", Tone::Uncertain),
            Ok(tested) => {
                let [low, high] = tested.interval;
                let needed = match (tested.verdict, tested.needed) {
                    (VerdictWord::Undecided, Some(needed)) => format!("; about {needed} needed"),
                    _ => String::new(),
                };
                let interval = format!("90 %: {} to {} µs", micros_f64(low), micros_f64(high));
                let pairs = format!("{} pairs{needed}", tested.count);
                let (word, tone) = match tested.verdict {
                    VerdictWord::Met => ("equivalent", Tone::Good),
                    VerdictWord::NotMet => ("not equivalent", Tone::Bad),
                    _ => ("undecided", Tone::Uncertain),
                };
                (Cell::text(interval).sub(pairs), word, tone)
            }
        };
        vec![Cell::name(what).sub(series), stated, here, verdict_cell(word, tone)]
    });
    let rows: Vec<Vec<Cell>> = claims.chain(margins).collect();
    Table::new("claims and margins, judged by these cells", columns)
        .with_rows(rows)
        .with_row_limit(40, 200)
}

fn verdict_cell(word: &'static str, tone: Tone) -> Cell {
    let mark = match tone {
        Tone::Good => "✓",
        Tone::Bad => "✗",
        _ => "?",
    };
    Cell::verdict(mark, word, tone)
}
