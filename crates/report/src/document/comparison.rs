//! A comparison: each series with its figures, their differences, and the conclusion in words.

use super::{Document, Section, Title};
use crate::format;
use crate::html::overlaid;
use crate::html::plot::{Effect, Forest, Plot};
use crate::sentence;
use crate::tables::comparison::{gate_table, metric_table, side_labels};
use crate::tables::{Face, Tone};
use punctual_bundle::comparison::{Comparison, Difference, MetricComparison, SeriesComparison};
use punctual_bundle::summary::VerdictWord;

const NAME_WIDTH: usize = 60;

pub fn build_comparison_document(comparison: &Comparison) -> Document {
    let labels: Vec<String> = comparison.sides.iter().map(|side| side.label.clone()).collect();
    let title = format!("comparison of {}", sentence::join_words(&labels));
    let mut document = Document::new("comparison", title, comparison.timebase());
    add_answer(&mut document, comparison);
    let sides = comparison.sides.iter().map(|side| {
        let runs = side.runs.iter().map(|run| format::clip_name(run, NAME_WIDTH, false));
        (side.label.clone(), runs.collect::<Vec<_>>().join("  "))
    });
    document.add(Section::About(sides.collect()));
    let about = format!(
        "differences relative to {}; each interval has {:.0} % confidence; family-wise error rate \
         {:.0} % ({} tests, Holm)",
        comparison.sides.first().map_or("A", |side| &side.label),
        comparison.confidence * 100.0,
        comparison.error_rate * 100.0,
        format::count_text(comparison.tests)
    );
    document.add_paragraph(Tone::Faint, about, [0, 0]);
    comparison.series.iter().for_each(|one| add_series(&mut document, comparison, one));
    document.add_table(Title::Heading, gate_table(comparison));
    document.add(Section::Findings(comparison.findings.clone()));
    document
}

/// The verdict, the most important difference, what to do.
fn add_answer(document: &mut Document, comparison: &Comparison) {
    let tone = comparison.verdict.map_or(Tone::Strong, Tone::from);
    let Some(answer) = &comparison.answer else {
        let verdict = comparison.verdict.map(|word| in_words(word).to_owned());
        return document.add_for_face(Face::Page, |document| document.add_texts(tone, verdict));
    };
    let verdict = ("verdict", tone, answer.verdict.clone());
    let figure = answer.figure.iter().map(|text| ("figure", Tone::Plain, text.clone()));
    let to_do = answer.to_do.iter().map(|text| ("to do", Tone::Plain, text.clone()));
    let noise = answer.noise.iter().map(|text| ("in short", tone, text.clone()));
    document.add(Section::Answer(noise.chain([verdict]).chain(figure).chain(to_do).collect()));
}

fn in_words(verdict: VerdictWord) -> &'static str {
    match verdict {
        VerdictWord::Met => "All requirements on the differences are met.",
        VerdictWord::NotMet => "A requirement on a difference is not met.",
        VerdictWord::Invalid => "A side was not measured as requested.",
        VerdictWord::Undecided => "The data do not decide every requirement.",
    }
}

fn add_series(document: &mut Document, comparison: &Comparison, one: &SeriesComparison) {
    let [a, b] = side_labels(comparison, one);
    let [name, partner] =
        [&one.series, &one.partner].map(|name| format::clip_name(name, NAME_WIDTH, false));
    let names = if name == partner { name } else { format!("{name}, {partner}") };
    document.add_heading(format!("{names}: {b} against {a}"));
    document.add_table(Title::Above, metric_table(comparison, one));
    document.add_texts(Tone::Faint, sentence::of_distributions(one));
    document.add_texts(Tone::Plain, sentence::of_series(comparison, one));
    let curves = overlaid::draw_overlaid([a, b], [&one.a.curve, &one.b.curve]).map(Plot::Curves);
    let caption = "Multiples of the first side's figure, with 95 % intervals: left of ×1 is lower.";
    let forest =
        Forest::from_effects(caption.to_owned(), one.metrics.iter().filter_map(to_effect), None);
    document.add_plots(curves.into_iter().chain(forest.map(Plot::Forest)));
}

fn to_effect(metric: &MetricComparison) -> Option<Effect> {
    let ratio = metric.ratio?;
    let (tone, answer) = match metric.verdict {
        Difference::Lower => (Tone::Good, "lower"),
        Difference::Higher => (Tone::Bad, "higher"),
        _ => (Tone::Plain, ""),
    };
    Some(Effect {
        name: metric.metric.clone(),
        tone,
        answer,
        words: sentence::format_ratio_interval(&ratio),
        ratio: Some((ratio.at, [ratio.low, ratio.high])),
    })
}
