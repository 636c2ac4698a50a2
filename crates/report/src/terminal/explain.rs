//! `punctual explain`: where the time of late samples went.

use super::ShowOptions;
use super::paint::{Page, Tone};
use crate::format;
use punctual_analyze::{Explained, Explanations};
use punctual_core::Nanos;

/// All of them.
pub fn explanations(explanations: &Explanations, options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    for sample in &explanations.samples {
        one(&mut out, sample, explanations);
    }
    if explanations.samples.is_empty() {
        out.paragraph("", "", Tone::Plain, "There is no such late sample.");
    }
    if !explanations.findings.is_empty() {
        super::findings::write(&mut out, &explanations.findings);
    }
    out.finish()
}

fn one(out: &mut Page, sample: &Explained, all: &Explanations) {
    let (explanation, series) = (&sample.explanation, format::clipped(&sample.series, 40, out.options.ascii));
    let latency = micros(explanation.latency());
    out.heading(&format!("{series}: {latency} on CPU {}", explanation.late.cpu));
    for (cause, span) in explanation.totals() {
        let who = cause.who(&all.names).map_or(String::new(), |who| format!(": {}", format::plain(&who)));
        out.paragraph("  ", "    ", Tone::Plain, &format!("{} {}{who}", micros(span), cause.word()));
    }
    for doubt in &explanation.doubts {
        out.paragraph("  ", "    ", Tone::Doubtful, doubt.sentence());
    }
}

fn micros(span: Nanos) -> String {
    format!("{} µs", format::micros(span))
}
