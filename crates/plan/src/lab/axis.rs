//! Axes, their values, and selections of them.

use super::change::LabChange;
use crate::notes::{ProblemNotes, Read};
use crate::table::{TomlTable, type_mismatch};
use crate::text::Span;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// A varied parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Its name: `kernel`, `load`, a key's path, or any word.
    pub name: String,
    /// Its values in the order of the file; at least one.
    pub values: Vec<AxisValue>,
}

/// The effect of an axis on the experiment in some of the cells.
#[derive(Clone, PartialEq, Debug)]
pub struct AxisValue {
    /// Its name.
    pub label: String,
    /// Its changes to the experiment.
    pub(super) steps: Vec<LabChange>,
}

impl Axis {
    /// The labels of the values, in their order.
    pub fn value_labels(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| value.label.as_str())
    }
}

/// Values of some axes: a cell is selected if its value is listed for every axis named.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CellSelection(pub Vec<(String, Vec<String>)>);

impl CellSelection {
    /// Parses an inline table, in the order of its text.
    pub(super) fn read(table: &DeTable<'_>) -> Read<CellSelection> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(axis, _)| axis.span().start);
        let one = |(axis, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
            read_labels(value.get_ref())
                .map(|labels| (axis.get_ref().to_string(), labels))
                .map_err(|wrong| wrong.with_key(axis.get_ref()))
        };
        entries.into_iter().map(one).collect::<Read<Vec<_>>>().map(CellSelection)
    }
    /// Whether a cell with these values (by axis) is selected.
    pub(crate) fn has_cell(&self, axes: &[(String, String)]) -> bool {
        self.0.iter().all(|(axis, labels)| {
            axes.iter().any(|(name, label)| name == axis && labels.contains(label))
        })
    }
}

/// Values of some axes: a word or an array of words each.
pub(super) fn read_selection(notes: &mut ProblemNotes, table: &TomlTable) -> CellSelection {
    let mut chosen = Vec::new();
    for (axis, _, value) in table.sorted_entries() {
        match read_labels(value.get_ref()) {
            Ok(labels) => chosen.push((axis.to_owned(), labels)),
            Err(wrong) => notes.report_wrong_value(Span::from(value.span()), wrong.with_key(axis)),
        }
    }
    CellSelection(chosen)
}

fn read_labels(value: &DeValue<'_>) -> Read<Vec<String>> {
    match value {
        DeValue::Array(items) => items.iter().map(|item| read_scalar(item.get_ref())).collect(),
        other => read_scalar(other).map(|label| vec![label]),
    }
}

fn read_scalar(value: &DeValue<'_>) -> Read<String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(on) => Ok(on.to_string()),
        other => Err(type_mismatch(other, "a value of the axis")),
    }
}
