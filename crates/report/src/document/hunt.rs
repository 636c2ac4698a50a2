//! The findings of a search: the answer, all causes, failures, and the smallest loads that show
//! them.

use super::{Document, Item, Mark, Title};
use crate::format::counted;
use crate::html::plot::Plot;
use crate::html::scatter::{Scatter, ScatterLine, ScatterSide};
use crate::sentence::hunt as words;
use crate::tables::{Face, Tone, hunt as tables};
use punctual_bundle::Timebase;
use punctual_bundle::hunt::{HuntCause, HuntDocument, HuntFailure, HuntTrial};
use punctual_bundle::summary::VerdictWord;

/// Causes besides the worst sample, and failures, that a terminal shows.
const CAUSES: usize = 6;
const FAILED: usize = 6;

/// `directory` is inserted into the commands.
pub fn hunt(hunt: &HuntDocument, directory: &str) -> Document {
    let title = format!("search on kernel {}", hunt.kernel);
    let mut document = Document::new("hunt", &title, Timebase::Virtual);
    document.only(Face::Terminal, |document| document.heading(title));
    for required in &hunt.required {
        let tone = if required.verdict == VerdictWord::Met { Tone::Good } else { Tone::Bad };
        document.paragraph(tone, words::required(required), [2, 4]);
    }
    if !hunt.failures.is_empty() {
        let failures = counted(hunt.failures.len() as u64, "failure");
        document
            .only(Face::Page, |document| document.text(Tone::Bad, format!("{failures} below.")));
    }
    document.texts(Tone::Strong, words::figure(hunt));
    document.text(Tone::Plain, words::extent(hunt));
    document.table(Title::Heading, tables::causes(hunt));
    if !hunt.failures.is_empty() {
        document.heading("failures");
        let failures = (1..).zip(&hunt.failures);
        document.list(FAILED, failures.map(|(number, of)| failure(number, of, directory)));
    }
    for against in &hunt.against {
        document.heading(format!("{} against {}", hunt.kernel, against.kernel));
        document.text(Tone::Plain, words::against(against));
        document.table(Title::Above, tables::against(hunt, against));
    }
    document.heading("limits");
    document.text(Tone::Faint, words::NO_BOUND);
    let causes = hunt.worst.iter().map(|worst| (0, worst)).chain((1..).zip(&hunt.causes));
    let least: Vec<Item> = causes.map(|(number, cause)| least(number, cause, directory)).collect();
    if !least.is_empty() {
        document.heading("the smallest loads that show them");
        document.list(CAUSES + 1, least);
        document.texts(Tone::Plain, words::minimised(hunt));
    }
    document.only(Face::Page, |document| {
        document.heading("coverage");
        document.plots(drawings(hunt));
        document.table(Title::Above, tables::coverage(hunt));
        document.table(Title::Folded, tables::trials(hunt));
    });
    document
}

fn failure(number: u64, failure: &HuntFailure, directory: &str) -> Item {
    let run = failure.file.iter().map(|file| format!("punctual run {directory}/{file}"));
    let console = failure.console.iter().map(|console| format!("{directory}/{console}"));
    Item::new(Mark::Number(number), Tone::Bad, words::failure(failure)).commands(run.chain(console))
}

fn least(number: u64, cause: &HuntCause, directory: &str) -> Item {
    let file = cause.least.file.iter();
    Item::new(Mark::Number(number), Tone::Plain, words::least(cause))
        .commands(file.map(|file| format!("punctual run {directory}/{file} --exact")))
}

/// The result of each trial, and the longest so far.
fn drawings(hunt: &HuntDocument) -> impl Iterator<Item = Plot> {
    let over = |title: &str, unit: &str, of: &dyn Fn(&HuntTrial) -> Option<f64>| {
        let points = hunt.trials.iter().filter_map(|one| Some((one.number as f64, of(one)?)));
        let points: Vec<(f64, f64)> = points.collect();
        let caption = format!("{title}, by trial; the line is the longest so far");
        let sides = [ScatterSide::new("trial", "count"), ScatterSide::new(title, unit)];
        Scatter::of(caption, &sides[0], &sides[1], &points, ScatterLine::Largest)
    };
    let disabled = over("longest with interrupts disabled, instructions", "count", &|trial| {
        trial.irqs_disabled.map(|length| length as f64)
    });
    let worst = over("worst sample", "ns", &|trial| trial.worst_ns.map(|ns| ns as f64));
    disabled.into_iter().chain(worst).map(Plot::Dots)
}
