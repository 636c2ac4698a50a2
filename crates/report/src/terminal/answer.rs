//! The answer, before all else.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use crate::answer::{answer_lines, known_answer};
use crate::format::{count_text, count_with_noun, escape_unsafe, micros_f64};
use crate::tables::figures::named_series;
use crate::tables::verdict_words;
use crate::verdict::tone_of;
use punctual_bundle::Timebase;
use punctual_bundle::answer::Answer;
use punctual_bundle::summary::{RequirementSummary, Summary, VerdictWord};
use punctual_core::Requirement;

/// The width of the labels at the left.
const LEFT: usize = 12;
/// Requirements in the last lines of a log; further ones are counted.
const LISTED_REQUIREMENTS: usize = 100;

/// Verdict, figure, causes, and what to do: a line or a paragraph each.
pub fn write(out: &mut TextPage, summary: &Summary, answer: &Answer) {
    let tone = tone_of(&summary.verdict);
    let mark = match summary.verdict.word {
        None | Some(VerdictWord::Met) if tone != Tone::Good => String::new(),
        None => String::new(),
        // In ASCII the word is sufficient.
        Some(_) if out.options.ascii => String::new(),
        Some(word) => format!("{} ", verdict_words(word).0),
    };
    let unit = out.unit_name();
    let time = |ns: f64| format!("{} {unit}", out.format_latency(ns));
    let mut lines = answer_lines(answer, tone, time);
    lines.iter_mut().filter(|of| of.0 == "verdict").for_each(|of| of.2.insert_str(0, &mark));
    write_lines(out, &lines);
}

/// Lines of an answer. Those that follow each other with the same label have it once.
pub(crate) fn write_lines(out: &mut TextPage, lines: &[(&str, Tone, String)]) {
    let mut before = "";
    for (word, tone, text) in lines {
        write_line(out, if *word == before { "" } else { word }, *tone, text);
        before = word;
    }
}

/// A line of the answer: a faint word, and a wrapped text.
pub fn write_line(out: &mut TextPage, word: &str, tone: Tone, text: &str) {
    let word = out.paint(Tone::Faint, &format!("{word:<LEFT$}"));
    out.push_paragraph(&word, &" ".repeat(LEFT), tone, text);
}

pub fn show_answer(summary: &Summary, options: &ShowOptions) -> String {
    let options = &options.in_time(Timebase::from_target(summary.target.as_ref()));
    let mut out = TextPage::new(options);
    write(&mut out, summary, &known_answer(summary));
    out.finish()
}

/// The last lines of a log: one line per requirement, open ones last, and the verdict.
pub fn show_closing(summary: &Summary, options: &ShowOptions) -> String {
    let mut all_requirements: Vec<(String, &RequirementSummary)> = named_series(summary)
        .flat_map(|(name, series)| series.requirements.iter().map(move |of| (name.clone(), of)))
        .collect();
    all_requirements.sort_by_key(|(_, of)| of.verdict.gravity_rank());
    let mut text = String::from("\n");
    let mut add = |line: &str| text += &format!("{}\n", escape_unsafe(line));
    // The gravest are last, and none of these is omitted.
    let omitted_count = all_requirements.len().saturating_sub(LISTED_REQUIREMENTS);
    if omitted_count > 0 {
        add(&format!(
            "and {} (--json has them)",
            count_with_noun(omitted_count as u64, "further requirement")
        ));
    }
    for (name, of) in &all_requirements[omitted_count..] {
        let (mark, word) = verdict_words(of.verdict);
        let is_time = of.requirement.parse().is_ok_and(|of: Requirement| of.metric.is_time());
        let figure = match (of.figure, is_time) {
            (None, _) => of.reason.clone().unwrap_or_default(),
            (Some(ns), true) => format!("{} µs", micros_f64(ns)),
            (Some(number), false) => count_text(number.max(0.0) as u64),
        };
        add(&format!("{mark} {word}: {} on {name}: {figure}", of.requirement));
    }
    add(&format!("verdict: {}", known_answer(summary).verdict));
    if options.ascii { super::paint::to_ascii(&text) } else { text }
}
