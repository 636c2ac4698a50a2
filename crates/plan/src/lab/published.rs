//! Published figures, set beside the measured ones.

use super::axis::{Selection, selection};
use crate::context::LoadOptions;
use crate::limits::MAX_LATENCY;
use crate::notes::Notes;
use crate::table::{Table, span, text};
use crate::text::{Setting, SourceText, Span};
use crate::values;
use punctual_core::Nanos;
use toml::de::DeTable;

/// A table of a publication.
#[derive(Clone, PartialEq, Debug)]
pub struct Published {
    /// What it shows.
    pub title: String,
    /// The hardware, kernel and method that it is of.
    pub setup: String,
    /// In the order of the publication.
    pub rows: Vec<PublishedRow>,
}

/// A row: what was found, and which cells here are its counterpart.
#[derive(Clone, PartialEq, Debug)]
pub struct PublishedRow {
    /// What it is called.
    pub label: String,
    /// The cells that are set beside it.
    pub cells: Selection,
    /// The series that are: those of this name and those below it (`irq` is also
    /// `irq/cpu0/to-handler`); empty: all.
    pub series: String,
    /// The smallest.
    pub min: Option<Nanos>,
    /// The arithmetic mean.
    pub mean: Option<Nanos>,
    /// The largest.
    pub max: Option<Nanos>,
    /// The limits of the figures.
    pub note: String,
}

/// The tables that have a name.
const KNOWN: [(&str, &str); 2] =
    [("P2", include_str!("published/p2.toml")), ("P4", include_str!("published/p4.toml"))];

/// The names of the tables that need not be written out.
pub(super) fn known_names() -> impl Iterator<Item = &'static str> + Clone {
    KNOWN.iter().map(|(name, _)| *name)
}

/// A table by its name; `None` where there is none of it.
pub(super) fn known(name: &str) -> Option<Vec<Published>> {
    let (_, text) = KNOWN.iter().find(|(known, _)| *known == name)?;
    let mut notes = Notes::new(SourceText::shared(name, *text), &LoadOptions::default());
    let (document, _) = DeTable::parse_recoverable(text);
    let mut file = Table::new(document.get_ref(), Span::default(), "a table of published figures");
    let sections = file.take_sections(&mut notes, "publication", "`[[publication]]`");
    Some(sections.into_iter().map(|table| read(&mut notes, table)).collect())
}

/// `[[lab.publication]]`.
pub(super) fn read(notes: &mut Notes, mut t: Table) -> Published {
    let said = |setting: Setting<String>| setting.map(|at| at.value).unwrap_or_default();
    let title = said(t.take(notes, "title", |v| text(v).map(str::to_owned)));
    let setup = said(t.take(notes, "setup", |v| text(v).map(str::to_owned)));
    let rows = t.take_sections(notes, "row", "`[[lab.publication.row]]`");
    let rows = rows.into_iter().map(|table| row(notes, table)).collect();
    t.finish(notes);
    Published { title, setup, rows }
}

fn row(notes: &mut Notes, mut t: Table) -> PublishedRow {
    let said = |setting: Setting<String>| setting.map(|at| at.value).unwrap_or_default();
    let time = |notes: &mut Notes, t: &mut Table, key| {
        t.take(notes, key, |v| values::duration(span(v)?, Nanos::ZERO, MAX_LATENCY))
            .map(|at| at.value)
    };
    let row = PublishedRow {
        label: said(t.take(notes, "label", |v| text(v).map(str::to_owned))),
        cells: t
            .take_table(notes, "cells", "`cells`")
            .map(|table| selection(notes, &table))
            .unwrap_or_default(),
        series: said(t.take(notes, "series", |v| text(v).map(str::to_owned))),
        min: time(notes, &mut t, "min"),
        mean: time(notes, &mut t, "mean"),
        max: time(notes, &mut t, "max"),
        note: said(t.take(notes, "note", |v| text(v).map(str::to_owned))),
    };
    t.finish(notes);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_right() {
        for (name, source) in KNOWN {
            let mut notes = Notes::new(SourceText::shared(name, source), &LoadOptions::default());
            let (document, errors) = DeTable::parse_recoverable(source);
            assert!(errors.is_empty(), "{errors:?}");
            let mut file = Table::new(document.get_ref(), Span::default(), "a table");
            let tables = file.take_sections(&mut notes, "publication", "`[[publication]]`");
            let tables: Vec<Published> =
                tables.into_iter().map(|table| read(&mut notes, table)).collect();
            assert!(notes.problems.is_empty(), "{}", notes.problems);
            assert!(tables.iter().all(|table| !table.rows.is_empty() && !table.setup.is_empty()));
        }
        assert!(known("P9").is_none());
        // Of two systems ratios alone are known: no figure is made of them.
        let p2 = known("P2").unwrap();
        let others = p2
            .iter()
            .flat_map(|table| &table.rows)
            .find(|row| row.label.starts_with("RTLinux"))
            .unwrap();
        assert_eq!((others.note.as_str(), others.max, others.mean), ("3.9 × and 52 %", None, None));
    }
}
