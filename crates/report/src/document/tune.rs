//! The results of a tuning, and the settings that can be tried.

use super::{Document, Item, Title};
use crate::format::micros_f64;
use crate::html::plot::{Effect, Forest, Plot};
use crate::sentence::tune as words;
use crate::tables::{Face, Tone, tune as tables};
use punctual_bundle::Timebase;
use punctual_bundle::tune::{EffectFactor, TuneAnswer, TuningDocument};

/// Settings that can be tried, each with its risk, a condition and its value; and omitted ones with
/// the reason.
pub fn tune_settings<'a>(
    settings: Vec<[String; 4]>,
    left_out: impl Iterator<Item = (&'a String, &'a String)>,
) -> Document {
    let mut document = Document::new("tune", "settings that can be tried", Timebase::Own);
    document.add_table(Title::Heading, tables::offered_table(settings));
    not_tried(&mut document, "left out", left_out);
    document
}

/// `directory` is inserted into the commands.
pub fn build_tuning_document(tuning: &TuningDocument, directory: &str) -> Document {
    let title = format!("tuning of {}", tuning.experiment);
    let mut document = Document::new("tune", title, Timebase::Own);
    let is_better = tuning.set.as_ref().is_some_and(|set| set.answer == TuneAnswer::Better);
    let tone = if is_better { Tone::Good } else { Tone::Strong };
    document.add_paragraph(tone, words::format_answer(tuning), [0, 2]);
    document.add_text(Tone::Faint, words::format_extent(tuning));
    if let Some(required) = &tuning.required {
        document.add_paragraph(
            Tone::from(required.verdict),
            words::format_requirement(required),
            [2, 4],
        );
    }
    if let Some(ended) = words::end_reason(tuning, directory) {
        document.add_paragraph(Tone::Uncertain, ended, [2, 4]);
    }
    if let Some(forest) = build_forest(tuning) {
        document.add_for_face(Face::Page, |document| document.add_heading("effects"));
        document.add_plots([Plot::Forest(forest)]);
    }
    if !tuning.settings.is_empty() {
        document.add_table(Title::Folded, tables::setting_table(tuning));
        document.add_text(Tone::Faint, words::explain_figures(tuning));
    }
    let left_out = tuning.not_tried.iter().map(|left| (&left.name, &left.why));
    not_tried(&mut document, "not tried", left_out);
    document
}

/// One paragraph per reason.
fn not_tried<'a>(
    document: &mut Document,
    heading: &str,
    all: impl Iterator<Item = (&'a String, &'a String)>,
) {
    let reasons = words::by_reason(all);
    if !reasons.is_empty() {
        document.add_heading(heading);
        let item = |(names, why)| Item::new(Tone::Plain, format!("{names}: {why}"));
        document.add_list(usize::MAX, reasons.into_iter().map(item));
    }
}

/// The effects of the settings, and of the set; `None` if there is none.
fn build_forest(tuning: &TuningDocument) -> Option<Forest> {
    let row = |name: &str, answer: TuneAnswer, effect: Option<&EffectFactor>| Effect {
        name: name.to_owned(),
        tone: tables::answer_sign(answer).1,
        answer: answer.to_words(),
        words: effect.map_or_else(|| "too few blocks".to_owned(), words::format_factor),
        ratio: effect.map(|of| (of.ratio, of.interval.map(Some))),
    };
    let settings = tables::by_effect(tuning).into_iter();
    let setting_rows = settings.map(|of| row(&of.name, of.answer, of.effect.as_ref()));
    let set = tuning.set.as_ref().map(|set| {
        let figures = set.with_set.zip(set.untouched).map_or(String::new(), |(with, without)| {
            format!(": {} µs, {} µs untouched", micros_f64(with), micros_f64(without))
        });
        let title =
            format!("All that was adopted, together, against the untouched machine{figures}");
        (title, row(&set.settings.join(", "), set.answer, set.effect.as_ref()))
    });
    let caption = format!(
        "The figure {} with a setting over that without it: left of ×1 is better.",
        tuning.metric
    );
    Forest::from_effects(caption, setting_rows, set)
}
