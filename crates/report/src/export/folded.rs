//! The stacks of attached threads as folded stacks, one line per stack with its count, as flame
//! graphs take them (github.com/brendangregg/FlameGraph, speedscope): the thread, what happened
//! there, its functions from the outermost.

use super::{ExportError, Exporter, Writer};
use crate::format::escape_unsafe;
use punctual_bundle::Bundle;
use punctual_core::{Cell, STACKS, Table};
use std::io::Write;

pub(super) const EXPORTER: Exporter = Exporter::new(
    "folded",
    "stacks of an attached program's threads, for flame graphs",
    Writer::Bundle(write),
);

/// A frame without separators and line breaks.
pub(super) fn sanitize_frame(name: &str) -> String {
    name.chars().map(|c| if c == ';' || c.is_control() { '_' } else { c }).collect()
}

fn write(bundle: &Bundle, out: &mut dyn Write) -> Result<(), ExportError> {
    let measures = bundle.phases.iter().flat_map(|phase| &phase.meta.measures);
    let mut stack_tables = measures.flat_map(|measure| {
        let tables = measure.notes.tables.iter().filter(|table| table.name == STACKS);
        tables.map(move |table| (&measure.name, table))
    });
    let first = stack_tables.next().ok_or_else(|| ExportError::Impossible {
        format: "folded",
        why: "it has no stacks of a program; `punctual attach` keeps them, and `punctual explain \
              --exact --folded` has those of an exact explanation"
            .to_owned(),
    })?;
    for (name, table) in std::iter::once(first).chain(stack_tables) {
        write_thread(name, table, out)?;
    }
    Ok(())
}

fn write_thread(name: &str, table: &Table, out: &mut dyn Write) -> Result<(), ExportError> {
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let (Some(what), Some(stack), Some(stacks)) = (place("what"), place("stack"), place("stacks"))
    else {
        return Ok(());
    };
    for row in &table.rows {
        if let (Some(Cell::Text(what)), Some(Cell::Text(stack)), Some(Cell::Number(stacks))) =
            (row.get(what), row.get(stack), row.get(stacks))
            && *stacks >= 1.0
        {
            let stack: Vec<String> = stack.split(';').map(sanitize_frame).collect();
            let (name, what) = (sanitize_frame(&escape_unsafe(name)), sanitize_frame(what));
            writeln!(out, "{name};{what};{} {stacks:.0}", stack.join(";"))?;
        }
    }
    Ok(())
}
