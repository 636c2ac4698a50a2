//! Results of measures besides their samples: counts against independent ones, the cost of the
//! clock, further figures.

use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format;
use crate::notes::{allowed, cell, number, unavailable};
use punctual_bundle::meta::MeasureMeta;
use punctual_bundle::summary::PhaseSummary;
use punctual_core::{ClockCost, Fact, Figure, Table, Validation};

/// No name of a measure is wider.
const NAME: usize = 56;
/// No text of a cell is wider.
const WIDEST: usize = 60;
/// No heading of a column is wider.
const HEADING: usize = 24;
/// Rows of a table; the rest is counted.
const ROWS: usize = 40;

pub fn write(out: &mut Page, phase: &PhaseSummary) {
    for measure in phase.measures.iter().filter(|measure| says_something(measure)) {
        let name = format!("{}/{}", phase.name, measure.name);
        let name = format::clipped(&name, NAME, out.options.ascii);
        out.heading(&format!("{name}, beside its samples"));
        measure.notes.validations.iter().for_each(|one| validation(out, one));
        if let Fact::Known(cost) = &measure.notes.clock_cost {
            clock_cost(out, cost);
        }
        measure.notes.figures.iter().for_each(|one| figure(out, one));
        measure.notes.tables.iter().for_each(|one| rows(out, one));
    }
}

fn says_something(measure: &MeasureMeta) -> bool {
    let notes = &measure.notes;
    let figures = notes.validations.len() + notes.figures.len() + notes.tables.len();
    figures > 0 || matches!(notes.clock_cost, Fact::Known(_))
}

fn validation(out: &mut Page, one: &Validation) {
    let (tone, word) = match one.agrees {
        Some(true) => (Tone::Good, out.either("✓ agrees", "agrees")),
        Some(false) => (Tone::Bad, out.either("✗ DIFFERS", "DIFFERS")),
        None if one.counted.known().is_some() => {
            (Tone::Uncertain, out.either("? undecided", "undecided"))
        }
        None => (Tone::Uncertain, out.either("? not counted", "not counted")),
    };
    let counted = match &one.counted {
        Fact::Known(counted) => format!("counted {}", format::count(*counted)),
        other => unavailable(other),
    };
    let begin = format!("  {}  ", out.paint(tone, word));
    let hang = " ".repeat(4 + format::width_of(word));
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

fn clock_cost(out: &mut Page, cost: &ClockCost) {
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

fn figure(out: &mut Page, one: &Figure) {
    let of = one.count.map_or(String::new(), |count| format!(" (of {})", format::count(count)));
    let text = format!("{}: {}{of}", one.title, number(one.value, &one.unit));
    out.paragraph("  ", "    ", Tone::Plain, &format::plain(&text));
}

fn rows(out: &mut Page, one: &Table) {
    out.gap();
    out.paragraph("  ", "    ", Tone::Strong, &format::plain(&one.title));
    let ascii = out.options.ascii;
    let heading = |(k, column): (usize, &punctual_core::Column)| {
        let name = format::clipped(&column.name, HEADING, ascii);
        // The later a column stands, the sooner it is left out.
        let dispensable = k.min(u8::MAX.into()) as u8;
        match column.unit.as_str() {
            "" => Column::left(&name, dispensable),
            unit => Column::right(
                &format!("{name} ({})", format::clipped(unit, 16, ascii)),
                dispensable,
            ),
        }
    };
    let columns: Vec<Column> = one.columns.iter().enumerate().map(heading).collect();
    let row = |row: &Vec<punctual_core::Cell>| {
        let text = |k: usize| {
            row.get(k).map_or(String::new(), |value| format::clipped(&cell(value), WIDEST, ascii))
        };
        (0..columns.len()).map(|k| Cell::plain(text(k))).collect::<Vec<Cell>>()
    };
    let cells = one.rows.iter().take(ROWS).map(row).collect();
    let left_out = table::write(out, columns, cells);
    if !left_out.is_empty() {
        let text = format!("hidden: terminal too narrow: {}", left_out.join(", "));
        out.paragraph("  ", "  ", Tone::Faint, &text);
    }
    if one.rows.len() > ROWS {
        let rest = format!("and {} more rows (punctual show --json)", one.rows.len() - ROWS);
        out.paragraph("  ", "  ", Tone::Faint, &rest);
    }
}
