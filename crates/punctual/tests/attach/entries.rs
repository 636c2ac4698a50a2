//! The JSON of `punctual attach --cpus` about a CPU.

#![allow(dead_code)] // each test file uses its share

use serde_json::Value;

/// The measure of the CPU.
pub fn measure(summary: &Value) -> &Value {
    &summary["phases"][0]["measures"][0]
}

pub fn table<'v>(summary: &'v Value, name: &str) -> &'v Value {
    let tables = measure(summary)["notes"]["tables"].as_array().unwrap();
    let found = tables.iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("no table {name}: {tables:#?}"))
}

/// The cell of a row in this column.
pub fn cell<'v>(table: &'v Value, row: &'v Value, column: &str) -> &'v Value {
    let columns = table["columns"].as_array().unwrap();
    let place = columns.iter().position(|one| one["name"] == column);
    &row[place.unwrap_or_else(|| panic!("no column {column}: {columns:#?}"))]
}

/// The first row of this kind that this thread caused this often or more, alone or in other
/// entries.
#[track_caller]
pub fn caused<'v>(summary: &'v Value, kind: &str, by: &str, least: f64) -> &'v Value {
    let table = table(summary, "entries");
    let is_its = |row: &&Value| {
        let times =
            ["entries", "in other entries"].map(|of| cell(table, row, of).as_f64().unwrap());
        cell(table, row, "kind") == kind
            && cell(table, row, "originator").as_str().unwrap().starts_with(by)
            && times.iter().sum::<f64>() >= least
    };
    let found = table["rows"].as_array().unwrap().iter().find(is_its);
    found.unwrap_or_else(|| panic!("no {kind} by {by}: {table:#}"))
}

/// The count of a task's own entries, such as page faults.
pub fn own_entries(summary: &Value, task: &str, what: &str) -> f64 {
    let table = table(summary, "own-entries");
    let rows = table["rows"].as_array().unwrap().iter();
    rows.filter(|row| cell(table, row, "task") == task)
        .filter(|row| cell(table, row, "what").as_str().unwrap().contains(what))
        .map(|row| cell(table, row, "entries").as_f64().unwrap())
        .sum()
}
