//! The tails of a bundle's series: without a model, and with one.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table;
use crate::format;
use crate::sentence::tail as sentences;
use crate::tables::tail::conditions;
use punctual_bundle::tail::{SeriesTail, Tails};

const NAME_WIDTH: usize = 60;

/// All tails; with every gate if `gates` are requested.
pub fn tails(tails: &Tails, gates: bool, options: &ShowOptions) -> String {
    let options = &options.in_time(tails.timebase);
    let mut out = Page::new(options);
    for one in &tails.series {
        series(&mut out, one, gates);
    }
    super::findings::write(&mut out, &tails.findings);
    out.finish()
}

fn series(out: &mut Page, tail: &SeriesTail, gates: bool) {
    let name = format::clipped(&tail.series, NAME_WIDTH, out.options.ascii);
    out.heading(&name);
    for text in sentences::of_seen(&tail.seen) {
        out.paragraph("  ", "  ", Tone::Plain, &text);
    }
    for text in sentences::of_causes(tail) {
        out.paragraph("  ", "  ", Tone::Plain, &text);
    }
    let tone = if tail.model.accepted { Tone::Strong } else { Tone::Uncertain };
    for (k, text) in sentences::of_model(tail).iter().enumerate() {
        out.paragraph("  ", "  ", if k == 0 { tone } else { Tone::Plain }, text);
    }
    let dot = out.either("  · ", "  - ");
    for text in sentences::refusals(tail) {
        out.paragraph(dot, "    ", Tone::Plain, &text);
    }
    if gates {
        table::list(out, &conditions(&tail.model.gates));
    }
}
