//! A run in one screen, for a comment on the change that it tested: its answer, what was required,
//! and its figures.

use super::{Document, Section, Title};
use crate::answer::{known, lines};
use crate::format::micros_f64;
use crate::tables::figures::{FigureRow, named, table};
use crate::tables::requirements;
use crate::verdict::tone_of;
use punctual_bundle::Timebase;
use punctual_bundle::summary::Summary;

/// The document of a summary with its answer.
pub fn run(summary: &Summary) -> Document {
    let timebase = Timebase::of(summary.target.as_ref());
    let mut document = Document::new("run", summary.experiment.as_str(), timebase);
    document.heading(summary.experiment.as_str());
    let unit = timebase.unit("µs");
    let time = |ns: f64| format!("{} {unit}", micros_f64(ns));
    document.add(Section::Answer(lines(&known(summary), tone_of(&summary.verdict), time)));
    document.table(Title::Heading, requirements::of(summary));
    let rows = named(summary).map(|(name, summary)| FigureRow { name, summary, cut_off: false });
    document.table(Title::Heading, table("figures", rows));
    document
}
