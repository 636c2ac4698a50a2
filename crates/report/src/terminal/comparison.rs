//! A comparison: each series with its figures, their differences, and what follows in words.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format;
use crate::sentence::{self, p_is, probability};
use punctual_bundle::comparison::{
    Basis, Comparison, Difference, MetricComparison, SeriesComparison, SideFigures,
};
use punctual_bundle::summary::VerdictWord;

const NAME_WIDTH: usize = 60;

/// The whole comparison.
pub fn comparison(comparison: &Comparison, options: &ShowOptions) -> String {
    let options = &options.in_time(comparison.timebase());
    let mut out = Page::new(options);
    title(&mut out, comparison);
    for one in &comparison.series {
        series(&mut out, comparison, one);
    }
    gates(&mut out, comparison);
    super::findings::write(&mut out, &comparison.findings);
    out.finish()
}

fn title(out: &mut Page, comparison: &Comparison) {
    for side in &comparison.sides {
        let label = out.paint(Tone::Strong, &format::clipped(&side.label, 8, out.options.ascii));
        let runs: Vec<String> = side
            .runs
            .iter()
            .map(|run| format::clipped(run, NAME_WIDTH, out.options.ascii))
            .collect();
        out.line(&format!("{label}  {}", runs.join("  ")));
    }
    let text = format!(
        "differences relative to {}; each interval has {:.0} % confidence; family-wise error rate \
         {:.0} % ({} tests, Holm)",
        comparison.sides.first().map_or("A", |side| &side.label),
        comparison.confidence * 100.0,
        comparison.error_rate * 100.0,
        format::count(comparison.tests)
    );
    out.paragraph("", "", Tone::Faint, &text);
}

fn series(out: &mut Page, comparison: &Comparison, one: &SeriesComparison) {
    let labels =
        [0, one.side].map(|k| comparison.sides.get(k).map_or("?", |side| side.label.as_str()));
    let name = format::clipped(&one.series, NAME_WIDTH, out.options.ascii);
    let partner = format::clipped(&one.partner, NAME_WIDTH, out.options.ascii);
    let names = if name == partner { name } else { format!("{name}, {partner}") };
    out.heading(&format!("{names}: {} against {} ({})", labels[1], labels[0], out.unit()));
    for (label, side) in labels.iter().zip([&one.a, &one.b]) {
        out.paragraph("  ", "    ", Tone::Faint, &format!("{label}: {}", amount(side, one.basis)));
    }
    let columns = vec![
        Column::left("figure", 0),
        Column::right(labels[0], 0),
        Column::right(labels[1], 0),
        Column::right("difference", 0),
        Column::right("95 % interval", 0),
        Column::right("relative", 2),
        Column::right("p (Holm)", 1),
        Column::left("", 0),
    ];
    let rows = one
        .metrics
        .iter()
        .filter(|m| m.verdict != Difference::Unsupported)
        .map(|metric| row(out, metric))
        .collect();
    table::write(out, columns, rows);
    if let Some(text) = tests(one) {
        out.paragraph("  ", "  ", Tone::Faint, &text);
    }
    for text in sentence::of_series(comparison, one) {
        out.paragraph("  ", "  ", Tone::Plain, &text);
    }
}

fn amount(side: &SideFigures, basis: Basis) -> String {
    let runs = if side.runs > 1 {
        format!(" in {}", format::counted(side.runs as u64, "run"))
    } else {
        String::new()
    };
    let time = side.duration.map_or(String::new(), |d| format!(", {}", sentence::spoken(d as f64)));
    let worth = match (side.effective, basis) {
        (Some(n), Basis::Runs) => {
            format!("; for the median, {} by the variation between runs", independent(n))
        }
        (Some(n), _) => format!("; for the median, {}", independent(n)),
        (None, _) => "; dependence unknown".to_owned(),
    };
    format!("{}{runs}{time}{worth}", format::counted(side.count, "sample"))
}

fn independent(n: f64) -> String {
    format!("effective sample size {}", format::count(n.round().max(0.0) as u64))
}

fn row(out: &Page, metric: &MetricComparison) -> Vec<Cell> {
    let figure =
        |ns: Option<f64>| ns.map_or(out.either("–", "-").to_owned(), |ns| out.latency(ns));
    let end =
        |ns: Option<f64>| ns.map_or(out.either("∞", "inf").to_owned(), |ns| out.latency(ns));
    let low = metric.low.map_or(format!("-{}", out.either("∞", "inf")), |ns| out.latency(ns));
    let (tone, word) = match metric.verdict {
        Difference::Lower => (Tone::Good, "lower"),
        Difference::Higher => (Tone::Bad, "higher"),
        Difference::NoSignificantDifference => (Tone::Faint, "no significant difference"),
        Difference::Unsupported => (Tone::Faint, ""),
    };
    let relative =
        metric.relative.map_or(String::new(), |share| format!("{:+.1} %", share * 100.0));
    vec![
        Cell::plain(format::clipped(&metric.metric, 12, out.options.ascii)),
        Cell::plain(figure(metric.a)),
        Cell::plain(figure(metric.b)),
        Cell(figure(metric.difference), Tone::Strong),
        Cell::plain(format!("{low} to {}", end(metric.high))),
        Cell::plain(relative),
        Cell::plain(metric.p_adjusted.map_or(String::new(), probability)),
        Cell(word.to_owned(), tone),
    ]
}

/// The tests of the distributions, in one line.
pub fn tests(one: &SeriesComparison) -> Option<String> {
    let sentences: Vec<String> = one
        .distribution
        .iter()
        .filter_map(|test| {
            let p = test.p_adjusted?;
            let least = if test.least_p > 0.01 {
                format!(", with so few runs never below {}", probability(test.least_p))
            } else {
                String::new()
            };
            Some(format!("{}: {} ({}{least})", test.part, p_is(p), test.method))
        })
        .collect();
    let longer = one
        .superiority
        .map(|p| format!("a sample of the other side is longer in {:.1} % of pairs", p * 100.0));
    let sentences: Vec<String> = sentences.into_iter().chain(longer).collect();
    (!sentences.is_empty())
        .then(|| format!("distributions, all tests counted: {}", sentences.join("; ")))
}

fn gates(out: &mut Page, comparison: &Comparison) {
    if comparison.gates.is_empty() {
        return;
    }
    out.heading("requirements");
    let rows = comparison.gates.iter().map(|gate| {
        let (tone, word) = match gate.verdict {
            VerdictWord::Met => (Tone::Good, out.either("✓ met", "met")),
            VerdictWord::NotMet => (Tone::Bad, out.either("✗ NOT MET", "NOT MET")),
            VerdictWord::Undecided => (Tone::Uncertain, out.either("? undecided", "undecided")),
            VerdictWord::Invalid => (Tone::Bad, out.either("! INVALID", "INVALID")),
        };
        vec![
            Cell(word.to_owned(), tone),
            Cell::plain(format::plain(&gate.gate)),
            Cell::plain(format::clipped(&gate.series, 40, out.options.ascii)),
            Cell::plain(comparison.sides.get(gate.side).map_or("?", |side| &side.label)),
            Cell::plain(crate::export::junit_message(gate)),
        ]
    });
    let rows = rows.collect();
    let columns = ["", "requirement", "series", "of", ""].map(|heading| Column::left(heading, 0));
    table::write(out, columns.into(), rows);
}
