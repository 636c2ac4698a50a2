//! Results of measures besides their samples: counts compared with independent counts, the cost of
//! the clock, further figures.

use super::paint::{TextPage, Tone};
use super::table;
use crate::format;
use crate::notes::{allowed, figure as words, unavailable};
use crate::tables::notes as tables;
use punctual_bundle::meta::MeasureMeta;
use punctual_bundle::summary::PhaseSummary;
use punctual_core::{ClockCost, Fact, Figure, PLACES, Table, Validation};

/// The maximum width of a measure's name.
const NAME: usize = 56;

pub fn write(out: &mut TextPage, phase: &PhaseSummary) {
    for measure in phase.measures.iter().filter(|measure| says_something(measure)) {
        let name = format!("{}/{}", phase.name, measure.name);
        let name = format::clipped(&name, NAME, out.options.ascii);
        out.heading(&format!("{name}, beside its samples"));
        measure.notes.validations.iter().for_each(|one| validation(out, one));
        if let Fact::Known(cost) = &measure.notes.clock_cost {
            clock_cost(out, cost);
        }
        measure.notes.figures.iter().for_each(|one| figure(out, one));
        measure.notes.shown_tables().for_each(|one| rows(out, one));
    }
}

/// The source lines at which the program's threads were delayed; empty if no stacks were kept.
pub(super) fn write_places(out: &mut TextPage, phase: &PhaseSummary) {
    for measure in &phase.measures {
        for places in measure.notes.tables.iter().filter(|table| table.name == PLACES) {
            let name = format!("{}/{}", phase.name, measure.name);
            out.heading(&format::clipped(&name, NAME, out.options.ascii));
            rows(out, places);
        }
    }
}

fn says_something(measure: &MeasureMeta) -> bool {
    let notes = &measure.notes;
    let figures = notes.validations.len() + notes.figures.len() + notes.shown_tables().count();
    figures > 0 || matches!(notes.clock_cost, Fact::Known(_))
}

fn validation(out: &mut TextPage, one: &Validation) {
    let counted = match &one.counted {
        Fact::Known(counted) => format!("counted {}", format::count(*counted)),
        other => unavailable(other),
    };
    let (verdict, width) = table::painted(out, &tables::agreement(one));
    let (begin, hang) = (format!("  {verdict}  "), " ".repeat(4 + width));
    let what =
        format!("{}: claimed {}, {counted} ({})", one.what, format::count(one.claimed), one.source);
    out.paragraph(&begin, &hang, Tone::Plain, &format::plain(&what));
    if let Some(tolerance) = &one.tolerance {
        out.paragraph(&hang, &hang, Tone::Faint, &format::plain(&allowed(tolerance)));
    }
    if let Some(explanation) = &one.explanation {
        out.paragraph(&hang, &hang, Tone::Faint, &format::plain(explanation));
    }
}

fn clock_cost(out: &mut TextPage, cost: &ClockCost) {
    let ns = |span: punctual_core::Nanos| format::count(span.ns().max(0) as u64);
    let text = format!(
        "every sample holds one reading of {}: min {}, median {}, p99 {}, max {} ns over {} \
         readings; nothing is subtracted",
        cost.clock,
        ns(cost.min),
        ns(cost.median),
        ns(cost.p99),
        ns(cost.max),
        format::count(cost.count)
    );
    out.paragraph("  ", "    ", Tone::Plain, &format::plain(&text));
}

fn figure(out: &mut TextPage, one: &Figure) {
    let of = one.count.map_or(String::new(), |count| format!(" (of {})", format::count(count)));
    let interval = one.interval.map_or(String::new(), |[low, high]| {
        format!(", 95 % interval {} to {}", words(low, &one.unit), words(high, &one.unit))
    });
    let text = format!("{}: {}{interval}{of}", one.title, words(one.value, &one.unit));
    out.paragraph("  ", "    ", Tone::Plain, &format::plain(&text));
}

/// A table of a measure.
pub fn rows(out: &mut TextPage, one: &Table) {
    let own = tables::own(one.title.clone(), one);
    let title = table::title(out, &own);
    out.gap();
    out.paragraph("  ", "    ", Tone::Strong, &title);
    table::body(out, &own);
}
