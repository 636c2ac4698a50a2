//! Rows of a measure's table as dots, one column over another: drawn without a script.

use super::ReportInput;
use super::drawing::{Area, Axis, Tick};
use super::notes::measures;
use crate::notes::number;
use punctual_core::{Cell, Column, Table};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What is drawn: the table, the column across, the column upwards.
const DRAWN: [(&str, &str, &str); 3] =
    [("lists", "size", "pages"), ("lists", "pages", "touch"), ("lists", "list", "touch")];
/// Drawings of a page.
const DRAWINGS: usize = 24;
/// Dots of one.
const DOTS: usize = 4_096;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const PLOT: Area = Area { left: 62.0, right: WIDTH - 20.0, top: 22.0, bottom: HEIGHT - 34.0 };

/// What the template draws.
#[derive(Serialize)]
pub struct Scatter {
    title: String,
    width: f64,
    height: f64,
    plot: Area,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    x_title: String,
    y_title: String,
    /// A stroke without length for each dot.
    dots: String,
    /// What it shows, for those who cannot see it.
    description: String,
}

/// Every drawing of the page's bundles.
pub fn drawings(inputs: &[ReportInput<'_>], labels: &[String]) -> Vec<Scatter> {
    let measures = measures(inputs, labels);
    let tables = measures
        .iter()
        .flat_map(|(who, measure)| measure.notes.tables.iter().map(move |table| (who, table)));
    let drawn = tables.flat_map(|(who, table)| {
        let pairs = DRAWN.iter().filter(|(name, ..)| *name == table.name);
        pairs.filter_map(move |(_, x, y)| draw(who, table, x, y))
    });
    drawn.take(DRAWINGS).collect()
}

fn draw(who: &str, table: &Table, x: &str, y: &str) -> Option<Scatter> {
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let (of_x, of_y) = (place(x)?, place(y)?);
    let value = |row: &[Cell], place: usize| match row.get(place) {
        Some(Cell::Number(number)) if number.is_finite() && *number >= 0.0 => Some(*number),
        _ => None,
    };
    let points: Vec<(f64, f64)> = table
        .rows
        .iter()
        .filter_map(|row| Option::zip(value(row, of_x), value(row, of_y)))
        .take(DOTS)
        .collect();
    if points.len() < 2 {
        return None;
    }
    let axis =
        |of: fn(&(f64, f64)) -> f64| Axis::from_zero(points.iter().map(of).fold(0.0, f64::max));
    let (across, upwards) = (axis(|point| point.0), axis(|point| point.1));
    let at_x = |value: f64| PLOT.left + across.share(value) * (PLOT.right - PLOT.left);
    let at_y = |value: f64| PLOT.bottom - upwards.share(value) * (PLOT.bottom - PLOT.top);
    // Dots at one place are one.
    let places: BTreeSet<(i64, i64)> = points
        .iter()
        .map(|(x, y)| ((at_x(*x) * 10.0).round() as i64, (at_y(*y) * 10.0).round() as i64))
        .collect();
    let mut dots = String::new();
    for (x, y) in places {
        // Writing to a string cannot fail.
        let _ = write!(dots, "M{}.{} {}.{}h0", x / 10, x % 10, y / 10, y % 10);
    }
    let unit = |place: usize| table.columns.get(place).map_or("", |column| column.unit.as_str());
    let ticks = |axis: &Axis, place: usize, at: &dyn Fn(f64) -> f64| -> Vec<Tick> {
        let tick = |value: f64| Tick { at: at(value), label: label(value, unit(place)) };
        axis.ticks().into_iter().map(tick).collect()
    };
    let name = |column: &Column| crate::format::plain(&column.name);
    let (x_title, y_title) = (name(table.columns.get(of_x)?), name(table.columns.get(of_y)?));
    Some(Scatter {
        title: format!("{y_title} over {x_title}, of {who}"),
        width: WIDTH,
        height: HEIGHT,
        x_ticks: ticks(&across, of_x, &at_x),
        y_ticks: ticks(&upwards, of_y, &at_y),
        description: format!(
            "{} dots: {y_title} up to {} over {x_title} up to {}; the rows are in the table.",
            points.len(),
            label(upwards.end(), unit(of_y)),
            label(across.end(), unit(of_x)),
        ),
        x_title,
        y_title,
        dots,
        plot: PLOT,
    })
}

fn label(value: f64, unit: &str) -> String {
    match unit {
        "ns" => crate::format::span(punctual_core::Nanos(value.round() as i64)),
        "count" => crate::format::short_count(value.round() as u64),
        "bytes" if value >= 1e6 => format!("{} MB", number((value / 1e5).round() / 10.0, "")),
        "bytes" if value >= 1e3 => format!("{} kB", number((value / 1e2).round() / 10.0, "")),
        unit => crate::format::plain(&number(value.round(), unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: Vec<Vec<Cell>>) -> Table {
        Table {
            name: "lists".to_owned(),
            title: String::new(),
            columns: vec![
                Column::new("size", "bytes"),
                Column::new("pages", "count"),
                Column::new("touch", "ns"),
            ],
            rows,
        }
    }

    #[test]
    fn each_row_is_a_dot_at_its_place() {
        let row = |size: f64, pages: f64| {
            vec![Cell::Number(size), Cell::Number(pages), Cell::Number(pages * 1_000.0)]
        };
        let rows = vec![row(0.0, 0.0), row(5e5, 50.0), row(1e6, 100.0), row(1e6, 100.0)];
        let drawn = draw("a", &table(rows), "size", "pages").unwrap();
        // The end of an axis is 2 % beyond the largest value; two rows are at one place.
        assert_eq!(drawn.dots, "M62.0 226.0h0M227.7 126.0h0M393.4 26.0h0");
        assert_eq!(drawn.title, "pages over size, of a");
        assert!(drawn.description.starts_with("4 dots: pages up to 102"), "{}", drawn.description);
        assert!(drawn.y_ticks.iter().any(|tick| tick.at == 226.0));
    }

    #[test]
    fn what_is_no_number_is_no_dot() {
        let hostile = |value: f64| vec![Cell::Number(value), Cell::Nothing, Cell::Text("x".into())];
        let rows = vec![hostile(f64::NAN), hostile(-1.0), vec![], hostile(f64::INFINITY)];
        assert!(draw("a", &table(rows.clone()), "size", "pages").is_none());
        assert!(draw("a", &table(rows), "size", "absent").is_none());
    }
}
