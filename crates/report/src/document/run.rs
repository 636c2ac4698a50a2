//! A run in one screen, for a comment on the change that it tested: its answer, what was required,
//! and its figures.

use super::{Document, Section, Title};
use crate::answer::{delays_sentence, figure_sentence, known};
use crate::format::micros_f64;
use crate::tables::figures::{FigureRow, named, table};
use crate::tables::{Tone, requirements};
use crate::verdict::tone_of;
use punctual_bundle::Timebase;
use punctual_bundle::summary::Summary;

/// The document of a summary with its answer.
pub fn run(summary: &Summary) -> Document {
    let timebase = Timebase::of(summary.target.as_ref());
    let mut document = Document::new("run", summary.experiment.as_str(), timebase);
    document.heading(summary.experiment.as_str());
    let answer = known(summary);
    let tone = tone_of(&summary.verdict);
    let unit = timebase.unit("µs");
    let time = |ns: f64| format!("{} {unit}", micros_f64(ns));
    let mut lines = Vec::new();
    lines.extend(answer.baseline.map(|text| ("baseline", tone, text)));
    lines.push(("verdict", tone, answer.verdict));
    let figure = answer.figure.as_ref().map(|of| figure_sentence(of, time));
    lines.extend(figure.map(|text| ("figure", Tone::Strong, text)));
    let delays = answer.delayed_by.as_ref().map(|of| delays_sentence(of, time));
    lines.extend(delays.map(|text| ("delayed by", Tone::Plain, text)));
    lines.extend(answer.bound.map(|text| ("bound", Tone::Faint, text)));
    lines.extend(answer.to_do.into_iter().map(|text| ("to do", Tone::Plain, text)));
    document.add(Section::Answer(lines));
    document.table(Title::Heading, requirements::of(summary));
    let rows = named(summary).map(|(name, summary)| FigureRow { name, summary, cut_off: false });
    document.table(Title::Heading, table("figures", rows));
    document
}
