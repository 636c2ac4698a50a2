//! Columns that line up, the least important left out where the terminal is too narrow for all.

use super::paint::{Page, Tone};
use crate::format::{shortened, width_of};

/// A column: its heading, how its cells stand, and how soon it is left out.
pub struct Column {
    pub heading: String,
    pub right: bool,
    /// 0: always shown; of the others the highest goes first.
    pub dispensable: u8,
    /// Whether its cells are cut where leaving out columns is not enough.
    pub shrinks: bool,
}

impl Column {
    pub fn left(heading: &str, dispensable: u8) -> Column {
        Column { heading: heading.to_owned(), right: false, dispensable, shrinks: false }
    }
    pub fn right(heading: &str, dispensable: u8) -> Column {
        Column { heading: heading.to_owned(), right: true, dispensable, shrinks: false }
    }
    /// Never left out: what it says is worth more, cut, than not at all.
    pub fn shrinking(heading: &str) -> Column {
        Column { shrinks: true, ..Column::left(heading, 0) }
    }
}

/// A cell and its tone.
pub struct Cell(pub String, pub Tone);

impl Cell {
    pub fn plain(text: impl Into<String>) -> Cell {
        Cell(text.into(), Tone::Plain)
    }
}

const INDENT: usize = 2;
const BETWEEN: usize = 2;
/// A column that shrinks keeps so much.
const SHRUNK: usize = 12;

/// Writes the table and returns the headings that found no space.
pub fn write(out: &mut Page, mut columns: Vec<Column>, mut rows: Vec<Vec<Cell>>) -> Vec<String> {
    let mut left_out = Vec::new();
    loop {
        let widths = widths(&columns, &rows);
        let total =
            INDENT + widths.iter().sum::<usize>() + BETWEEN * widths.len().saturating_sub(1);
        let candidate = (0..columns.len())
            .filter(|k| columns[*k].dispensable > 0)
            .max_by_key(|k| columns[*k].dispensable);
        match candidate.filter(|_| total > out.options.width) {
            Some(k) => {
                left_out.push(columns.remove(k).heading);
                rows.iter_mut().for_each(|row| drop(row.remove(k)));
            }
            None => {
                let widths = shrink(out, &columns, &mut rows, widths, total);
                lines(out, &columns, &rows, &widths);
                return left_out;
            }
        }
    }
}

/// Cuts what can be cut where the table is still too wide, and returns the widths that are left.
fn shrink(
    out: &Page,
    columns: &[Column],
    rows: &mut [Vec<Cell>],
    mut widths: Vec<usize>,
    total: usize,
) -> Vec<usize> {
    let excess = total.saturating_sub(out.options.width);
    if let Some(k) = columns.iter().position(|column| column.shrinks).filter(|_| excess > 0) {
        let kept = widths[k].saturating_sub(excess).max(SHRUNK.min(widths[k]));
        for row in rows.iter_mut() {
            row[k].0 = shortened(&row[k].0, kept, out.options.ascii);
        }
        widths[k] = kept.max(width_of(&columns[k].heading));
    }
    widths
}

fn widths(columns: &[Column], rows: &[Vec<Cell>]) -> Vec<usize> {
    let cells = |k: usize| rows.iter().map(move |row| width_of(&row[k].0));
    let width = |(k, column): (usize, &Column)| {
        cells(k).chain([width_of(&column.heading)]).max().unwrap_or(0)
    };
    columns.iter().enumerate().map(width).collect()
}

fn lines(out: &mut Page, columns: &[Column], rows: &[Vec<Cell>], widths: &[usize]) {
    let headings: Vec<Cell> =
        columns.iter().map(|c| Cell(c.heading.clone(), Tone::Faint)).collect();
    for row in [&headings].into_iter().chain(rows) {
        let mut line = " ".repeat(INDENT);
        for (k, Cell(text, tone)) in row.iter().enumerate() {
            let space = " ".repeat(widths[k].saturating_sub(width_of(text)));
            let text = out.paint(*tone, text);
            line += &if columns[k].right { space + &text } else { text + &space };
            line += &" ".repeat(BETWEEN);
        }
        out.line(&line);
    }
}
