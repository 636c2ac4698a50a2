//! Published figures, shown beside the measured ones.

use super::axis::CellSelection;
use crate::context::LoadOptions;
use crate::form::{
    ValueType, count_form, custom_form, duration_form, list_form, one_or_more, text_form,
};
use crate::limits::MAX_LATENCY;
use crate::notes::{ProblemNotes, Read};
use crate::section::{read_all, section};
use crate::table::{TomlTable, type_mismatch};
use crate::text::{Setting, SourceText, Span};
use punctual_core::Nanos;
use toml::de::{DeTable, DeValue};

/// A table of a publication.
#[derive(Clone, PartialEq, Debug)]
pub struct PublishedTable {
    /// Its subject.
    pub title: String,
    /// The hardware, kernel and method.
    pub setup: String,
    /// In the order of the publication.
    pub rows: Vec<PublishedRowSpec>,
    /// Its conclusions.
    pub claims: Vec<PublishedClaimSpec>,
}

/// A conclusion: a figure with a value of an axis is a multiple of the figure without it.
#[derive(Clone, PartialEq, Debug)]
pub struct PublishedClaimSpec {
    /// Its subject.
    pub label: String,
    /// As it was published.
    pub published: String,
    /// An axis with its value.
    pub with: CellSelection,
    /// The same axis with the values for comparison.
    pub against: CellSelection,
    /// The cells that judge it.
    pub cells: CellSelection,
    /// The series that judge it, as in [`PublishedRowSpec::series`].
    pub series: String,
    /// `max`, `p50`, ….
    pub figure: String,
    /// The published figure with that value, and without.
    pub ratio: [u64; 2],
}

/// A row: the published figures, and the cells that are their counterpart.
#[derive(Clone, PartialEq, Debug)]
pub struct PublishedRowSpec {
    /// Its name.
    pub label: String,
    /// The cells shown beside it.
    pub cells: CellSelection,
    /// The series shown beside it: those of this name and those below it (`irq` includes
    /// `irq/cpu0/to-handler`); empty: all.
    pub series: String,
    /// The minimum.
    pub min: Option<Nanos>,
    /// The arithmetic mean.
    pub mean: Option<Nanos>,
    /// The maximum.
    pub max: Option<Nanos>,
    /// The limits of the figures.
    pub note: String,
}

/// The tables with a name.
const KNOWN: [(&str, &str); 2] =
    [("P2", include_str!("published/p2.toml")), ("P4", include_str!("published/p4.toml"))];

/// The names of the built-in tables.
pub(super) fn known_names() -> impl Iterator<Item = &'static str> + Clone {
    KNOWN.iter().map(|(name, _)| *name)
}

/// A table by its name; `None` if there is none.
pub(super) fn read_known_tables(name: &str) -> Option<Vec<PublishedTable>> {
    let (_, text) = KNOWN.iter().find(|(known, _)| *known == name)?;
    let mut notes = ProblemNotes::new(SourceText::new_shared(name, *text), &LoadOptions::default());
    let (document, _) = DeTable::parse_recoverable(text);
    let mut file =
        TomlTable::new(document.get_ref(), Span::default(), "a table of published figures");
    let publications =
        read_all::<PublicationSpec>(&mut notes, &mut file, "publication", "`[[publication]]`");
    Some(publications.iter().map(PublicationSpec::to_table).collect())
}

section! {
    /// A table of a publication.
    PublicationSpec {
        /// What it shows.
        key title: String, text_form("TEXT", any_text), ["none"];
        /// The hardware, kernel and method that it is of.
        key setup: String, text_form("TEXT", any_text), ["none"];
        /// Its rows, in the order of the publication.
        sections row: RowSpec, "`[[lab.publication.row]]`", [];
        /// What it concludes, judged by the cells: *reproduced*, *weaker*, *absent*, *reversed* or
        /// *undecided*.
        sections claim: ClaimSpec, "`[[lab.publication.claim]]`", [];
    }
}

section! {
    /// A conclusion of a publication.
    ClaimSpec {
        /// What it is about.
        key label: String, text_form("TEXT", any_text), ["none"];
        /// What was published, in words.
        key published: String, text_form("TEXT", any_text), ["none"];
        /// An axis with the value that does it.
        key with: CellSelection, custom_form(selection_type(), read_cells), ["none"];
        /// The same axis with the values that it is compared with.
        key against: CellSelection, custom_form(selection_type(), read_cells), ["none"];
        /// The cells that it is judged by: a value or an array of values for each axis.
        key cells: CellSelection, custom_form(selection_type(), read_cells), ["all"];
        /// The series that it is judged by, with those below it.
        key series: String, text_form("SERIES", any_text), ["all"];
        /// The figure: `max`, `p50`, `p99`, `p99.9`.
        key figure: String, text_form("FIGURE", any_text), ["`\"max\"`"];
        /// The published figure with that value, and without: two whole numbers of any unit.
        key ratio: Vec<u64>, list_form(2, 2, count_form(1, 1_000_000_000)), ["none: undecided"];
    }
}

section! {
    /// A row of such a table.
    RowSpec {
        /// What the row is called.
        key label: String, text_form("TEXT", any_text), ["none"];
        /// The cells that are set beside it: a value or an array of values for each axis.
        key cells: CellSelection, custom_form(selection_type(), read_cells), ["all"];
        /// The series that are set beside it, with those below it (`irq` is also
        /// `irq/cpu0/to-handler`).
        key series: String, text_form("SERIES", any_text), ["all"];
        /// The smallest value.
        key min: Nanos, duration_form(Nanos::ZERO, MAX_LATENCY), ["not published"];
        /// The arithmetic mean.
        key mean: Nanos, duration_form(Nanos::ZERO, MAX_LATENCY), ["not published"];
        /// The largest value.
        key max: Nanos, duration_form(Nanos::ZERO, MAX_LATENCY), ["not published"];
        /// The limits of the figures.
        key note: String, text_form("TEXT", any_text), ["none"];
    }
}

impl PublicationSpec {
    pub(super) fn to_table(&self) -> PublishedTable {
        PublishedTable {
            title: value_or_default(&self.title),
            setup: value_or_default(&self.setup),
            rows: self.row.iter().map(RowSpec::to_row).collect(),
            claims: self.claim.iter().map(ClaimSpec::to_claim).collect(),
        }
    }
}

impl ClaimSpec {
    fn to_claim(&self) -> PublishedClaimSpec {
        let ratio: Vec<u64> = value_or_default(&self.ratio);
        let figure = value_or_default(&self.figure);
        PublishedClaimSpec {
            label: value_or_default(&self.label),
            published: value_or_default(&self.published),
            with: value_or_default(&self.with),
            against: value_or_default(&self.against),
            cells: value_or_default(&self.cells),
            series: value_or_default(&self.series),
            figure: if figure.is_empty() { "max".to_owned() } else { figure },
            ratio: ratio.try_into().unwrap_or([1, 1]),
        }
    }
}

impl RowSpec {
    fn to_row(&self) -> PublishedRowSpec {
        let time = |time: &Setting<Nanos>| time.as_ref().map(|at| at.value);
        PublishedRowSpec {
            label: value_or_default(&self.label),
            cells: value_or_default(&self.cells),
            series: value_or_default(&self.series),
            min: time(&self.min),
            mean: time(&self.mean),
            max: time(&self.max),
            note: value_or_default(&self.note),
        }
    }
}

fn value_or_default<T: Clone + Default>(setting: &Setting<T>) -> T {
    setting.as_ref().map(|at| at.value.clone()).unwrap_or_default()
}

fn any_text(text: &str) -> Read<String> {
    Ok(text.to_owned())
}

fn selection_type() -> ValueType {
    ValueType::Named(Box::new(one_or_more("VALUE")))
}

fn read_cells(value: &DeValue<'_>) -> Read<CellSelection> {
    match value {
        DeValue::Table(table) => CellSelection::read(table),
        other => Err(type_mismatch(other, "a table of axes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_tables_of_publications_are_valid() {
        for (name, source) in KNOWN {
            let mut notes =
                ProblemNotes::new(SourceText::new_shared(name, source), &LoadOptions::default());
            let (document, errors) = DeTable::parse_recoverable(source);
            assert!(errors.is_empty(), "{errors:?}");
            let mut file = TomlTable::new(document.get_ref(), Span::default(), "a table");
            let title = "`[[publication]]`";
            let tables = read_all::<PublicationSpec>(&mut notes, &mut file, "publication", title);
            let tables: Vec<PublishedTable> =
                tables.iter().map(PublicationSpec::to_table).collect();
            assert!(notes.problems.is_empty(), "{}", notes.problems);
            assert!(tables.iter().all(|table| !table.rows.is_empty() && !table.setup.is_empty()));
        }
        assert!(read_known_tables("P9").is_none());
        let p2 = read_known_tables("P2").unwrap();
        // Relations to a third system are published: they give no figure.
        let rows = || p2.iter().flat_map(|table| &table.rows);
        let others: Vec<_> = rows().filter(|row| row.label.contains("Xenomai")).collect();
        assert_eq!(others.len(), 2, "response and switch");
        assert!(others.iter().all(|row| row.max.is_none() && row.mean.is_none()));
        // −10 % of the response and −99 % of the switch, under load.
        let claims: Vec<_> = p2.iter().flat_map(|table| &table.claims).collect();
        assert!(
            claims.iter().any(|claim| claim.ratio == [90, 100] && claim.series == "irq/to-handler")
        );
        assert!(claims.iter().any(|claim| claim.ratio == [99, 26_120] && claim.series == "switch"));
    }
}
