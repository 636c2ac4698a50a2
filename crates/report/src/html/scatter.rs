//! Rows of a measure's table as dots, one column over another, drawn without a script.

use super::ReportInput;
use super::drawing::{Area, AxisTick, PlotAxis};
use super::notes::titled_measures;
use crate::notes::format_number;
use punctual_core::{Cell, Column, Table};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The drawings: the table, the horizontal column, the vertical column.
const DRAWN: [(&str, &str, &str); 3] =
    [("lists", "size", "pages"), ("lists", "pages", "touch"), ("lists", "list", "touch")];
const DRAWINGS: usize = 24;
const DOTS: usize = 4_096;
/// Up to this many dots are larger.
const FEW: usize = 200;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const PLOT: Area = Area { left: 62.0, right: WIDTH - 20.0, top: 22.0, bottom: HEIGHT - 34.0 };

/// The input of the template.
#[derive(Debug, Serialize)]
pub(crate) struct Scatter {
    title: String,
    width: f64,
    height: f64,
    plot: Area,
    x_ticks: Vec<AxisTick>,
    y_ticks: Vec<AxisTick>,
    x_title: String,
    y_title: String,
    /// A stroke of zero length for each dot.
    dots: String,
    /// Whether there is room for larger dots.
    few: bool,
    /// The levels; empty: none.
    steps: String,
    /// Vertical lines at changes; empty: none.
    changes: String,
    /// A text alternative for screen readers.
    description: String,
}

/// Every drawing of the page's bundles.
pub(crate) fn draw_tables(inputs: &[ReportInput<'_>], labels: &[String]) -> Vec<Scatter> {
    let measures = titled_measures(inputs, labels);
    let tables = measures
        .iter()
        .flat_map(|(who, measure)| measure.notes.tables.iter().map(move |table| (who, table)));
    let drawn = tables.flat_map(|(who, table)| {
        let pairs = DRAWN.iter().filter(|(name, ..)| *name == table.name);
        pairs.filter_map(move |(_, x, y)| draw_table(who, table, x, y))
    });
    drawn.take(DRAWINGS).collect()
}

fn draw_table(who: &str, table: &Table, x: &str, y: &str) -> Option<Scatter> {
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
    let side = |column: &Column| ScatterSide::new(&column.name, &column.unit);
    let (x, y) = (side(table.columns.get(of_x)?), side(table.columns.get(of_y)?));
    let title = format!("{} over {}, of {who}", y.title, x.title);
    Scatter::from_points(title, &x, &y, &points, &[])
}

pub(crate) struct ScatterSide {
    title: String,
    /// `ns`, `count`, `bytes`, or a unit as it is written behind a number.
    unit: String,
}

impl ScatterSide {
    pub(crate) fn new(title: &str, unit: &str) -> ScatterSide {
        ScatterSide { title: crate::format::escape_unsafe(title), unit: unit.to_owned() }
    }
}

/// A level over points: its horizontal range and height; `None` is unknown.
pub(crate) type ScatterLevel = ([f64; 2], Option<f64>);

/// The coordinate system of a drawing.
struct ScatterFrame {
    across: PlotAxis,
    upwards: PlotAxis,
}

impl ScatterFrame {
    fn from_points(points: &[(f64, f64)]) -> ScatterFrame {
        let axis = |of: fn(&(f64, f64)) -> f64| {
            PlotAxis::from_zero(points.iter().map(of).fold(0.0, f64::max))
        };
        ScatterFrame { across: axis(|point| point.0), upwards: axis(|point| point.1) }
    }

    fn x(&self, value: f64) -> f64 {
        PLOT.left + self.across.relative_position(value) * (PLOT.right - PLOT.left)
    }

    fn y(&self, value: f64) -> f64 {
        PLOT.bottom - self.upwards.relative_position(value) * (PLOT.bottom - PLOT.top)
    }

    /// A stroke of zero length for each point; points at one place are merged.
    fn dot_path(&self, points: &[(f64, f64)]) -> String {
        let tenths = |at: f64| (at * 10.0).round() as i64;
        let places = points.iter().map(|(x, y)| (tenths(self.x(*x)), tenths(self.y(*y))));
        let mut dots = String::new();
        for (x, y) in places.collect::<BTreeSet<_>>() {
            // Writing to a string cannot fail.
            let _ = write!(dots, "M{}.{} {}.{}h0", x / 10, x % 10, y / 10, y % 10);
        }
        dots
    }

    /// A line segment for each level.
    fn level_path(&self, levels: &[ScatterLevel]) -> String {
        let piece = |([from, to], height): &ScatterLevel| {
            let y = self.y((*height)?);
            Some(format!("M{:.1} {y:.1}H{:.1}", self.x(*from), self.x(*to)))
        };
        levels.iter().filter_map(piece).collect()
    }

    /// A vertical line at the beginning of each level but the first.
    fn change_path(&self, levels: &[ScatterLevel]) -> String {
        let begins = levels.iter().skip(1).map(|([from, _], _)| self.x(*from));
        begins.map(|x| format!("M{x:.1} {}V{}", PLOT.top, PLOT.bottom)).collect()
    }
}

impl Scatter {
    /// Points as dots, with levels over them; `None` if there are fewer than two.
    pub(crate) fn from_points(
        title: String,
        x: &ScatterSide,
        y: &ScatterSide,
        points: &[(f64, f64)],
        levels: &[ScatterLevel],
    ) -> Option<Scatter> {
        if points.len() < 2 {
            return None;
        }
        let frame = ScatterFrame::from_points(points);
        let ticks = |axis: &PlotAxis, unit: &str, at: &dyn Fn(f64) -> f64| -> Vec<AxisTick> {
            let tick = |value: f64| AxisTick { at: at(value), label: tick_label(value, unit) };
            // Counts of runs have no fractional ticks.
            let is_whole = |value: &f64| unit != "count" || value.fract() == 0.0;
            axis.ticks().into_iter().filter(is_whole).map(tick).collect()
        };
        Some(Scatter {
            title,
            width: WIDTH,
            height: HEIGHT,
            x_ticks: ticks(&frame.across, &x.unit, &|value| frame.x(value)),
            y_ticks: ticks(&frame.upwards, &y.unit, &|value| frame.y(value)),
            description: format!(
                "{} dots: {} up to {} over {} up to {}; the rows are in the table.",
                points.len(),
                y.title,
                tick_label(frame.upwards.end(), &y.unit),
                x.title,
                tick_label(frame.across.end(), &x.unit),
            ),
            x_title: x.title.clone(),
            y_title: y.title.clone(),
            dots: frame.dot_path(points),
            few: points.len() <= FEW,
            steps: frame.level_path(levels),
            changes: frame.change_path(levels),
            plot: PLOT,
        })
    }
}

fn tick_label(value: f64, unit: &str) -> String {
    match unit {
        "ns" => crate::format::span_text(punctual_core::Nanos(value.round() as i64)),
        "count" => crate::format::short_count(value.round() as u64),
        "bytes" if value >= 1e6 => {
            format!("{} MB", format_number((value / 1e5).round() / 10.0, ""))
        }
        "bytes" if value >= 1e3 => {
            format!("{} kB", format_number((value / 1e2).round() / 10.0, ""))
        }
        unit => crate::format::escape_unsafe(&format_number(value.round(), unit)),
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
    fn each_table_row_is_drawn_as_a_dot() {
        let row = |size: f64, pages: f64| {
            vec![Cell::Number(size), Cell::Number(pages), Cell::Number(pages * 1_000.0)]
        };
        let rows = vec![row(0.0, 0.0), row(5e5, 50.0), row(1e6, 100.0), row(1e6, 100.0)];
        let drawn = draw_table("a", &table(rows), "size", "pages").unwrap();
        // The end of an axis is 2 % beyond the largest value; two rows share one place.
        assert_eq!(drawn.dots, "M62.0 226.0h0M227.7 126.0h0M393.4 26.0h0");
        assert_eq!(drawn.title, "pages over size, of a");
        assert!(drawn.description.starts_with("4 dots: pages up to 102"), "{}", drawn.description);
        assert!(drawn.y_ticks.iter().any(|tick| tick.at == 226.0));
    }

    #[test]
    fn levels_are_drawn_as_segments_and_changes_at_their_start() {
        let side = || ScatterSide::new("", "count");
        let points = [(1.0, 10.0), (2.0, 10.0), (3.0, 20.0), (4.0, 20.0)];
        let levels = [([0.5, 2.5], Some(10.0)), ([2.5, 4.5], None)];
        let drawn =
            Scatter::from_points(String::new(), &side(), &side(), &points, &levels).unwrap();
        assert_eq!(drawn.steps, "M103.4 126.0H269.1");
        assert_eq!(drawn.changes, "M269.1 22V226");
    }

    #[test]
    fn invalid_numbers_are_not_drawn() {
        let hostile = |value: f64| vec![Cell::Number(value), Cell::Nothing, Cell::Text("x".into())];
        let rows = vec![hostile(f64::NAN), hostile(-1.0), vec![], hostile(f64::INFINITY)];
        assert!(draw_table("a", &table(rows.clone()), "size", "pages").is_none());
        assert!(draw_table("a", &table(rows), "size", "absent").is_none());
    }
}
