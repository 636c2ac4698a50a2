//! Figures of one series on two sides, and requirements on their differences.

use super::{Cell, Column, Table, Tone, Value};
use crate::format::{count_text, count_with_noun};
use crate::sentence::{format_probability, of_gate, spoken_duration};
use punctual_bundle::comparison::{
    Basis, Comparison, Difference, MetricComparison, SeriesComparison, SideFigures,
};

/// The names of both sides.
pub(crate) fn side_labels<'a>(comparison: &'a Comparison, one: &SeriesComparison) -> [&'a str; 2] {
    [0, one.side].map(|k| comparison.sides.get(k).map_or("?", |side| side.label.as_str()))
}

/// The figures of both sides, and their differences; without those that cannot be compared, which
/// the sentences of the series name.
pub(crate) fn metric_table(comparison: &Comparison, one: &SeriesComparison) -> Table {
    let labels = side_labels(comparison, one);
    let columns = vec![
        Column::text("figure", 0).at_most(12),
        Column::figures(labels[0], 0).with_verbatim_heading().at_most(24),
        Column::figures(labels[1], 0).with_verbatim_heading().at_most(24),
        Column::figures("difference", 1),
        Column::figures("95 % interval", 0)
            .with_meaning("of the difference, not adjusted for several tests"),
        Column::figures("relative", 3),
        Column::figures("adjusted p", 2).with_meaning("p-value, adjusted for all tests (Holm)"),
        Column::text("result", 0),
    ];
    let known_metrics = one.metrics.iter().filter(|metric| metric.a.is_some());
    let title = format!("{} against {}", labels[1], labels[0]);
    let mut table = Table::new(title, columns).with_rows(known_metrics.map(metric_row));
    table.beside = "as measured";
    for (label, side) in labels.iter().zip([&one.a, &one.b]) {
        table.add_remark(Tone::Faint, format!("side {label}: {}", format_amount(side, one.basis)));
    }
    table
}

fn format_amount(side: &SideFigures, basis: Basis) -> String {
    let runs = if side.runs > 1 {
        format!(" in {}", count_with_noun(side.runs as u64, "run"))
    } else {
        String::new()
    };
    let time = side.duration.map_or(String::new(), |d| format!(", {}", spoken_duration(d as f64)));
    let size = |n: f64| format!("effective sample size {}", count_text(n.round().max(0.0) as u64));
    let worth = match (side.effective, basis) {
        (Some(n), Basis::Runs) => {
            format!("; for the median, {} by the variation between runs", size(n))
        }
        (Some(n), _) => format!("; for the median, {}", size(n)),
        (None, _) => "; dependence unknown".to_owned(),
    };
    format!("{}{runs}{time}{worth}", count_with_noun(side.count, "sample"))
}

fn metric_row(metric: &MetricComparison) -> Vec<Cell> {
    // Corrected for missed periods; the measured value is shown below.
    let figure = |ns: Option<f64>, side: usize| Cell {
        beside: metric.measured.map(|both| Value::Time(both[side])),
        ..Cell::time_or(ns, "–")
    };
    let interval = match metric.difference {
        Some(_) if metric.p.is_some() => Value::Interval(metric.low, metric.high).into(),
        _ => Cell::absent("–"),
    };
    let result = match metric.verdict {
        Difference::Lower => Cell::verdict("", "lower", Tone::Good),
        Difference::Higher => Cell::verdict("", "higher", Tone::Bad),
        Difference::NoSignificantDifference => {
            Cell::text("no significant difference").with_tone(Tone::Faint)
        }
        Difference::Unsupported => Cell::text("not tested").with_tone(Tone::Faint),
    };
    let signed = |share: f64| Cell::figure(share, format!("{:+.1} %", share * 100.0));
    vec![
        Cell::text(match metric.measured {
            Some(_) => format!("{} corr.", metric.metric),
            None => metric.metric.clone(),
        }),
        figure(metric.a, 0),
        figure(metric.b, 1),
        Cell::time_or(metric.difference, "–").with_strong_tone(),
        interval,
        metric.relative.map_or_else(|| Cell::absent("–"), signed),
        metric
            .p_adjusted
            .map_or_else(|| Cell::absent("–"), |p| Cell::figure(p, format_probability(p))),
        result,
    ]
}

pub(crate) fn gate_table(comparison: &Comparison) -> Table {
    let columns = vec![
        Column::text("verdict", 0),
        Column::text("requirement", 0),
        Column::text("series", 0).at_most(40),
        Column::text("of", 0),
        Column::text("reason", 0),
    ];
    let rows = comparison.gates.iter().map(|gate| {
        let side_label = comparison.sides.get(gate.side).map_or("?", |side| &side.label);
        vec![
            gate.verdict.into(),
            Value::Command(gate.gate.clone()).into(),
            Cell::name(&gate.series),
            Cell::name(side_label),
            Cell::text(of_gate(gate)),
        ]
    });
    Table::new("requirements on the differences", columns).with_rows(rows)
}
