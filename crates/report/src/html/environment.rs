//! The environment of the runs: sections for one run; for several, first the differences.

use super::ReportInput;
use super::facts::{self, FactValue};
use super::header::machine_lines;
use super::interrupts;
use super::table::{Cell, Column, Table};
use serde::Serialize;
use serde_json::Value;

/// Sections in their display order; others follow.
const ORDER: [&str; 10] = [
    "Kernel",
    "Machine",
    "Clock source",
    "Real-time throttling",
    "Topology",
    "CPUs",
    "Idle driver",
    "Idle governor",
    "Memory",
    "Settings",
];

/// The environment as the page shows it.
#[derive(Default, Serialize)]
pub(crate) struct PageEnvironment {
    /// The machine, in a line that unfolds to the rest.
    pub line: String,
    /// Facts that differ between bundles, one column per bundle.
    pub differs: Option<Table>,
    /// Facts by section; for several bundles, those that are equal.
    pub sections: Vec<Table>,
    /// Interrupts and steal time during each run, under the label of the bundle.
    pub interrupts: Vec<(String, Vec<Table>)>,
    pub without: Vec<String>,
}

/// A fact: its path, and its value in each bundle.
type EnvironmentRow = (Vec<String>, Vec<Option<FactValue>>);

pub(crate) fn compare_environments(
    inputs: &[ReportInput<'_>],
    labels: &[String],
) -> PageEnvironment {
    let environments: Vec<(usize, &Value)> =
        inputs.iter().enumerate().filter_map(|(k, i)| Some((k, i.environment.as_ref()?))).collect();
    let missing_labels = (0..inputs.len())
        .filter(|k| !environments.iter().any(|(place, _)| place == k))
        .map(|k| labels[k].clone())
        .collect();
    let rows = compare_facts(&environments);
    let same = |row: &&EnvironmentRow| row.1.iter().all(|v| v.is_some() && *v == row.1[0]);
    let (equal, different): (Vec<&EnvironmentRow>, Vec<&EnvironmentRow>) =
        rows.iter().partition(same);
    let interrupts = environments.iter().filter_map(|(place, before)| {
        Some((labels[*place].clone(), interrupt_tables(&inputs[*place], before)?))
    });
    PageEnvironment {
        line: machine_line(inputs),
        differs: difference_table(
            &different,
            &environments.iter().map(|(place, _)| labels[*place].as_str()).collect::<Vec<_>>(),
        ),
        sections: section_tables(&equal),
        interrupts: interrupts.collect(),
        without: missing_labels,
    }
}

/// A line that describes the machines if they are equal; else a hint that they differ.
fn machine_line(inputs: &[ReportInput<'_>]) -> String {
    let mut descriptions =
        inputs.iter().map(|input| machine_lines(input.environment.as_ref()).join(" · "));
    let first = descriptions.next().unwrap_or_default();
    match first.is_empty() || descriptions.any(|other| other != first) {
        true => "Facts of the systems".to_owned(),
        false => first,
    }
}

/// All paths of all bundles, in order, with the value in each bundle.
fn compare_facts(known: &[(usize, &Value)]) -> Vec<EnvironmentRow> {
    let mut rows: Vec<EnvironmentRow> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (column, (_, document)) in known.iter().enumerate() {
        for line in facts::fact_lines(document, &["before", "after"]) {
            let place = *places.entry(line.path.clone()).or_insert_with(|| {
                rows.push((line.path, vec![None; known.len()]));
                rows.len() - 1
            });
            rows[place].1[column] = Some(line.known);
        }
    }
    let rank = |row: &EnvironmentRow| {
        ORDER
            .iter()
            .position(|name| row.0.first().is_some_and(|top| top == name))
            .unwrap_or(ORDER.len())
    };
    rows.sort_by_key(rank);
    rows
}

fn fact_cell(known: Option<&FactValue>) -> Cell {
    known.map_or(Cell::missing_value("not in this bundle"), FactValue::to_cell)
}

fn difference_table(rows: &[&EnvironmentRow], labels: &[&str]) -> Option<Table> {
    let mut columns = vec![Column::text("Fact")];
    columns.extend(labels.iter().map(|label| Column::text(label)));
    let row = |(path, values): &&EnvironmentRow| {
        let mut cells = vec![Cell::text(path.join(" › "))];
        cells.extend(values.iter().map(|v| fact_cell(v.as_ref())));
        cells
    };
    let rows: Vec<Vec<Cell>> = rows.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        caption: "Differences between the runs".to_owned(),
        columns,
        rows,
        sortable: false,
    })
}

fn section_tables(rows: &[&EnvironmentRow]) -> Vec<Table> {
    let mut sections: Vec<Table> = Vec::new();
    for (path, values) in rows {
        let (top, rest) = match path.split_first() {
            Some((top, rest)) if !rest.is_empty() => (top.as_str(), rest.join(" › ")),
            _ => ("System", path.join(" › ")),
        };
        if !sections.iter().any(|table| table.caption == top) {
            let columns = vec![Column::text("Fact"), Column::text("Value")];
            sections.push(Table {
                caption: top.to_owned(),
                columns,
                rows: Vec::new(),
                sortable: false,
            });
        }
        let section = sections.iter_mut().find(|table| table.caption == top);
        section.into_iter().for_each(|table| {
            table
                .rows
                .push(vec![Cell::text(&rest), fact_cell(values.first().and_then(Option::as_ref))]);
        });
    }
    sections
}

/// Interrupts during a run: both readings are in one document, or the later one has its own.
fn interrupt_tables(input: &ReportInput<'_>, environment: &Value) -> Option<Vec<Table>> {
    let before = facts::value_at(environment, &["before"])?;
    let has_counts = |side: &&Value| facts::value_at(side, &["interrupts"]).is_some();
    let end: Option<Value> = input.bundle.read_document("environment-end").ok().flatten();
    let later_reading = facts::value_at(environment, &["after"]).filter(has_counts);
    let reading_at_end = || {
        let end = end.as_ref()?;
        ["after", "before"].iter().find_map(|side| facts::value_at(end, &[side]).filter(has_counts))
    };
    let tables = interrupts::difference_tables(before, later_reading.or_else(reading_at_end)?);
    (!tables.is_empty()).then_some(tables)
}
