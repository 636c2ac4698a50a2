//! A run in one screen, for a comment on the change that it tested: its answer, what was required,
//! and its figures.

use super::{Document, Section, Title};
use crate::answer::{answer_lines, known_answer};
use crate::format::micros_f64;
use crate::tables::figures::{FigureRow, figure_table, named_series};
use crate::tables::requirements;
use crate::verdict::tone_of;
use punctual_bundle::Timebase;
use punctual_bundle::summary::Summary;

/// The document of a summary with its answer.
pub fn build_run_document(summary: &Summary) -> Document {
    let timebase = Timebase::from_target(summary.target.as_ref());
    let mut document = Document::new("run", summary.experiment.as_str(), timebase);
    document.add_heading(summary.experiment.as_str());
    let unit = timebase.format_unit("µs");
    let time = |ns: f64| format!("{} {unit}", micros_f64(ns));
    document.add(Section::Answer(answer_lines(
        &known_answer(summary),
        tone_of(&summary.verdict),
        time,
    )));
    document.add_table(Title::Heading, requirements::requirements_of_run(summary));
    let rows =
        named_series(summary).map(|(name, summary)| FigureRow { name, summary, cut_off: false });
    document.add_table(Title::Heading, figure_table("figures", rows));
    document
}
