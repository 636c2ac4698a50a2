//! Figures in rows that a measure has besides its samples.

use super::{Cell, Column, Table};
use crate::notes::cell;

/// No text of a cell is wider in a terminal.
const WIDEST: usize = 60;
/// Columns; a hostile bundle may hold any number.
const COLUMNS: usize = 24;

/// A table of a measure, called `title`.
pub fn own(title: String, of: &punctual_core::Table) -> Table {
    let column = |(k, column): (usize, &punctual_core::Column)| {
        // The later a column stands, the sooner it is hidden.
        let dispensable = k.min(u8::MAX.into()) as u8;
        let name = crate::format::clipped(&column.name, 24, false);
        match column.unit.as_str() {
            "" => Column::text(name, dispensable).at_most(WIDEST),
            unit => {
                let unit = crate::format::clipped(unit, 16, false);
                Column::figures(format!("{name} ({unit})"), dispensable).at_most(WIDEST)
            }
        }
    };
    let columns: Vec<Column> = of.columns.iter().take(COLUMNS).enumerate().map(column).collect();
    let value = |value: &punctual_core::Cell| match value {
        punctual_core::Cell::Nothing => Cell::default(),
        punctual_core::Cell::Number(number) => Cell::figure(*number, cell(value)),
        punctual_core::Cell::Text(text) => Cell::text(text),
    };
    let row = |row: &Vec<punctual_core::Cell>| {
        let mut cells: Vec<Cell> = row.iter().take(columns.len()).map(value).collect();
        cells.resize_with(columns.len(), Cell::default);
        cells
    };
    let rows: Vec<Vec<Cell>> = of.rows.iter().map(row).collect();
    Table::new(title, columns).rows(rows).sortable().shown(40, 200)
}
