//! Results of measures besides their samples: counts compared with independent counts, the cost of
//! the clock, further figures.

use super::paint::{TextPage, Tone};
use super::table;
use crate::format;
use crate::notes::{format_figure as words, format_tolerance, uncounted_reason};
use crate::tables::notes as tables;
use punctual_bundle::meta::MeasureMeta;
use punctual_bundle::summary::PhaseSummary;
use punctual_core::{ClockCost, Fact, Figure, PLACES, Table, Validation};

/// The maximum width of a measure's name.
const NAME: usize = 56;

pub fn write(out: &mut TextPage, phase: &PhaseSummary) {
    for measure in phase.measures.iter().filter(|measure| says_something(measure)) {
        let name = format!("{}/{}", phase.name, measure.name);
        let name = format::clip_name(&name, NAME, out.options.ascii);
        out.push_heading(&format!("{name}, beside its samples"));
        measure.notes.validations.iter().for_each(|one| write_validation(out, one));
        if let Fact::Known(cost) = &measure.notes.clock_cost {
            clock_cost(out, cost);
        }
        measure.notes.figures.iter().for_each(|one| write_figure(out, one));
        measure.notes.shown_tables().for_each(|one| write_table(out, one));
    }
}

/// The source lines at which the program's threads were delayed; empty if no stacks were kept.
pub(super) fn write_places(out: &mut TextPage, phase: &PhaseSummary) {
    for measure in &phase.measures {
        for places in measure.notes.tables.iter().filter(|table| table.name == PLACES) {
            let name = format!("{}/{}", phase.name, measure.name);
            out.push_heading(&format::clip_name(&name, NAME, out.options.ascii));
            write_table(out, places);
        }
    }
}

fn says_something(measure: &MeasureMeta) -> bool {
    let notes = &measure.notes;
    let figures = notes.validations.len() + notes.figures.len() + notes.shown_tables().count();
    figures > 0 || matches!(notes.clock_cost, Fact::Known(_))
}

fn write_validation(out: &mut TextPage, one: &Validation) {
    let counted = match &one.counted {
        Fact::Known(counted) => format!("counted {}", format::count_text(*counted)),
        other => uncounted_reason(other),
    };
    let (verdict, width) = table::paint_cell(out, &tables::agreement_cell(one));
    let (begin, hang) = (format!("  {verdict}  "), " ".repeat(4 + width));
    let what = format!(
        "{}: claimed {}, {counted} ({})",
        one.what,
        format::count_text(one.claimed),
        one.source
    );
    out.push_paragraph(&begin, &hang, Tone::Plain, &format::escape_unsafe(&what));
    if let Some(tolerance) = &one.tolerance {
        out.push_paragraph(
            &hang,
            &hang,
            Tone::Faint,
            &format::escape_unsafe(&format_tolerance(tolerance)),
        );
    }
    if let Some(explanation) = &one.explanation {
        out.push_paragraph(&hang, &hang, Tone::Faint, &format::escape_unsafe(explanation));
    }
}

fn clock_cost(out: &mut TextPage, cost: &ClockCost) {
    let ns = |span: punctual_core::Nanos| format::count_text(span.ns().max(0) as u64);
    let text = format!(
        "every sample holds one reading of {}: min {}, median {}, p99 {}, max {} ns over {} \
         readings; nothing is subtracted",
        cost.clock,
        ns(cost.min),
        ns(cost.median),
        ns(cost.p99),
        ns(cost.max),
        format::count_text(cost.count)
    );
    out.push_paragraph("  ", "    ", Tone::Plain, &format::escape_unsafe(&text));
}

fn write_figure(out: &mut TextPage, one: &Figure) {
    let event_count =
        one.count.map_or(String::new(), |count| format!(" (of {})", format::count_text(count)));
    let interval = one.interval.map_or(String::new(), |[low, high]| {
        format!(", 95 % interval {} to {}", words(low, &one.unit), words(high, &one.unit))
    });
    let text = format!("{}: {}{interval}{event_count}", one.title, words(one.value, &one.unit));
    out.push_paragraph("  ", "    ", Tone::Plain, &format::escape_unsafe(&text));
}

/// A table of a measure.
pub(crate) fn write_table(out: &mut TextPage, one: &Table) {
    let own_table = tables::measure_table(one.title.clone(), one);
    let title = table::format_title(out, &own_table);
    out.push_gap();
    out.push_paragraph("  ", "    ", Tone::Strong, &title);
    table::write_body(out, &own_table);
}
