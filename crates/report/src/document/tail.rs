//! The tails of a bundle's series: without a model, and with one.

use super::{Document, Item, Mark, Section, Title};
use crate::sentence::tail as sentences;
use crate::tables::tail::{conditions, levels};
use crate::tables::{Face, Tone};
use punctual_bundle::tail::{SeriesTail, Tails};

/// All tails; a terminal shows every condition of the models if `gates` are requested.
pub fn tails(tails: &Tails, gates: bool) -> Document {
    let title = format!("longer latencies: estimates from {}", tails.bundle);
    let mut document = Document::new("tail", title, tails.timebase);
    document.only(Face::Page, |document| {
        document.text(
            Tone::Faint,
            "First the bounds without a model; then a model of the longest latencies, if its \
             conditions hold. Not a guaranteed bound (no WCET).",
        );
    });
    tails.series.iter().for_each(|tail| series(&mut document, tail, gates));
    document.add(Section::Findings(tails.findings.clone()));
    document
}

fn series(document: &mut Document, tail: &SeriesTail, gates: bool) {
    document.heading(&tail.series);
    document.texts(Tone::Plain, sentences::of_seen(&tail.seen));
    document.texts(Tone::Plain, sentences::of_causes(tail));
    let tone = if tail.model.accepted { Tone::Strong } else { Tone::Uncertain };
    for (k, text) in sentences::of_model(tail).into_iter().enumerate() {
        document.text(if k == 0 { tone } else { Tone::Plain }, text);
    }
    let refusals = sentences::refusals(tail).into_iter();
    document.list(usize::MAX, refusals.map(|why| Item::new(Mark::Bullet, Tone::Plain, why)));
    // The sentences have the levels, too.
    document.only(Face::Page, |document| {
        document.table(Title::Above, levels(&tail.model.levels));
    });
    let conditions = conditions(&tail.model.gates);
    match gates {
        true => document.table(Title::List, conditions),
        false => document.only(Face::Page, |document| document.table(Title::Folded, conditions)),
    }
}
