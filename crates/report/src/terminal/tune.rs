//! The results of a tuning.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table;
use crate::format::plain;
use crate::sentence::tune as words;
use crate::tables::tune as tables;
use punctual_bundle::tune::{Answer, TuningDocument};

/// Settings that can be tried, each with its risk, a condition and its value; and omitted ones with
/// the reason.
pub fn tune_settings(
    settings: Vec<[String; 4]>,
    left_out: Vec<(String, String)>,
    options: &ShowOptions,
) -> String {
    let mut out = Page::new(options);
    table::section(&mut out, &tables::offered(settings));
    if !left_out.is_empty() {
        out.heading("left out");
        write_left_out(&mut out, left_out.iter().map(|(name, why)| (name, why)));
    }
    out.finish()
}

/// The whole page. `directory` is inserted into the commands.
pub fn tune(document: &TuningDocument, directory: &str, options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    let is_better = document.set.as_ref().is_some_and(|set| set.answer == Answer::Better);
    let tone = if is_better { Tone::Good } else { Tone::Strong };
    out.paragraph("", "  ", tone, &words::answer(document));
    out.paragraph("  ", "  ", Tone::Faint, &words::extent(document));
    if let Some(cost) = words::cost(document) {
        out.paragraph("  ", "    ", Tone::Plain, &cost);
    }
    if let Some(required) = &document.required {
        out.paragraph("  ", "    ", Tone::from(required.verdict), &words::required(required));
    }
    if let Some(ended) = words::ended(document, directory) {
        out.paragraph("  ", "    ", Tone::Uncertain, &ended);
    }
    if !document.settings.is_empty() {
        table::section(&mut out, &tables::settings(document));
        out.paragraph("  ", "  ", Tone::Faint, &words::meaning(document));
    }
    if !document.not_tried.is_empty() {
        out.heading("not tried");
        write_left_out(&mut out, document.not_tried.iter().map(|left| (&left.name, &left.why)));
    }
    if is_better {
        out.gap();
        let command = format!("keep it over a reboot: punctual tune apply {directory}");
        out.paragraph("", "  ", Tone::Plain, &command);
    }
    out.finish()
}

/// One paragraph per reason.
fn write_left_out<'a>(out: &mut Page, all: impl Iterator<Item = (&'a String, &'a String)>) {
    for (names, why) in words::by_reason(all) {
        out.paragraph("  ", "    ", Tone::Plain, &format!("{}: {}", plain(&names), plain(why)));
    }
}
