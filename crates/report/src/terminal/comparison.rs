//! A comparison: each series with its figures, their differences, and the conclusion in words.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table;
use crate::format;
use crate::sentence;
use crate::tables::comparison::{gates, labels, metrics};
use punctual_bundle::comparison::{Comparison, SeriesComparison};
use punctual_bundle::summary::VerdictWord;

const NAME_WIDTH: usize = 60;
/// The width of the labels before the answer, as for a run.
const LEFT: usize = 12;

pub fn comparison(comparison: &Comparison, options: &ShowOptions) -> String {
    let options = &options.in_time(comparison.timebase());
    let mut out = Page::new(options);
    answer(&mut out, comparison);
    title(&mut out, comparison);
    for one in &comparison.series {
        series(&mut out, comparison, one);
    }
    if !comparison.gates.is_empty() {
        table::section(&mut out, &gates(comparison));
    }
    super::findings::write(&mut out, &comparison.findings);
    out.finish()
}

/// The verdict, the most important difference, what to do.
fn answer(out: &mut Page, comparison: &Comparison) {
    let Some(answer) = &comparison.answer else { return };
    let tone = match comparison.verdict {
        Some(VerdictWord::Met) => Tone::Good,
        Some(VerdictWord::NotMet | VerdictWord::Invalid) => Tone::Bad,
        _ => Tone::Strong,
    };
    let mut line = |word: &str, tone: Tone, text: &str| {
        let word = out.paint(Tone::Faint, &format!("{word:<LEFT$}"));
        out.paragraph(&word, &" ".repeat(LEFT), tone, text);
    };
    line("verdict", tone, &answer.verdict);
    if let Some(figure) = &answer.figure {
        line("figure", Tone::Plain, figure);
    }
    for (number, text) in answer.to_do.iter().enumerate() {
        line(if number == 0 { "to do" } else { "" }, Tone::Plain, text);
    }
    out.gap();
}

fn title(out: &mut Page, comparison: &Comparison) {
    for side in &comparison.sides {
        let label = out.paint(Tone::Strong, &format::plain(&side.label));
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
    let [a, b] = labels(comparison, one);
    let name = format::clipped(&one.series, NAME_WIDTH, out.options.ascii);
    let partner = format::clipped(&one.partner, NAME_WIDTH, out.options.ascii);
    let names = if name == partner { name } else { format!("{name}, {partner}") };
    let heading = format!("{names}: {b} against {a} ({})", out.unit());
    out.heading(&heading);
    table::body(out, &metrics(comparison, one));
    if let Some(text) = sentence::of_distributions(one) {
        out.paragraph("  ", "  ", Tone::Faint, &text);
    }
    for text in sentence::of_series(comparison, one) {
        out.paragraph("  ", "  ", Tone::Plain, &text);
    }
}
