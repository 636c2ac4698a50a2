//! Tables, each built once: headings with their explanations, and typed cells.
//!
//! The renderer formats the cells: the terminal (`terminal/table.rs`), the page (`html/table.rs`).
//! Texts in cells are unescaped; renderers escape them.

pub mod account;
pub mod allocator;
pub mod calibration;
pub mod call_path;
mod cell;
pub mod checks;
pub mod coincidence;
mod column;
pub mod comparison;
pub mod culprits;
pub mod exact;
pub mod figures;
pub mod intervals;
pub mod lab;
pub(crate) mod lab_figures;
pub(crate) mod lab_work;
pub mod notes;
pub mod occupancy;
pub mod percentiles;
pub mod published;
pub mod recording;
pub mod requirements;
pub mod trend;
pub mod tune;

pub(crate) use cell::verdict_words;
pub use cell::{Cell, Tone, Value};
pub use column::{Column, Face};

#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its subject, without the unit, which the renderer adds.
    pub title: String,
    pub columns: Vec<Column>,
    /// The rows; the first cell of each is its header.
    pub rows: Vec<Vec<Cell>>,
    /// Explanations needed to read it.
    pub remarks: Vec<Remark>,
    /// Rows beyond this are only counted.
    pub shown: RowLimit,
    /// Whether the reader of a page may sort it.
    pub sortable: bool,
    /// The meaning of [`Cell::beside`].
    pub beside: &'static str,
    /// Whether nothing in it depends on the timebase.
    pub untimed: bool,
}

/// A sentence on a table.
#[derive(Clone, Debug)]
pub struct Remark {
    pub text: String,
    pub tone: Tone,
    /// The only face that shows it, if the other shows the same in cells.
    pub only: Option<Face>,
}

/// How many rows are shown.
#[derive(Clone, Copy, Debug)]
pub struct RowLimit {
    pub terminal: usize,
    pub page: usize,
}

impl Default for RowLimit {
    fn default() -> RowLimit {
        RowLimit { terminal: 40, page: 1_000 }
    }
}

impl Table {
    pub fn new(title: impl Into<String>, columns: Vec<Column>) -> Table {
        Table { title: title.into(), columns, ..Table::default() }
    }
    pub(crate) fn with_sorting(mut self) -> Table {
        self.sortable = true;
        self
    }
    pub(crate) fn without_timebase(mut self) -> Table {
        self.untimed = true;
        self
    }
    pub(crate) fn with_row_limit(mut self, terminal: usize, page: usize) -> Table {
        self.shown = RowLimit { terminal, page };
        self
    }
    pub(crate) fn with_rows(mut self, rows: impl IntoIterator<Item = Vec<Cell>>) -> Table {
        self.rows.extend(rows);
        self
    }
    pub fn add_remark(&mut self, tone: Tone, text: impl Into<String>) {
        self.remarks.push(Remark { text: text.into(), tone, only: None });
    }
    pub(crate) fn remark_in(&mut self, face: Face, tone: Tone, text: impl Into<String>) {
        self.remarks.push(Remark { text: text.into(), tone, only: Some(face) });
    }
    /// The table, unless it has no rows.
    pub(crate) fn unless_empty(self) -> Option<Table> {
        (!self.rows.is_empty()).then_some(self)
    }
    /// Whether it holds times in the unit of the whole table.
    pub(crate) fn has_times(&self) -> bool {
        let is_time = |value: &Value| matches!(value, Value::Time(_) | Value::Interval(..));
        self.rows.iter().flatten().any(|cell| is_time(&cell.value))
    }
    /// The columns and rows that one face shows, and the number of remaining rows. A dispensable
    /// column without content is not shown.
    pub(crate) fn contents_for(&self, face: Face) -> (Vec<&Column>, Vec<Vec<&Cell>>, usize) {
        let says = |k: usize| self.rows.iter().any(|row| row.get(k).is_some_and(Cell::has_content));
        let is_kept = |k: &usize| {
            let column = &self.columns[*k];
            column.is_in(face) && (column.dispensable == 0 || self.rows.is_empty() || says(*k))
        };
        let kept: Vec<usize> = (0..self.columns.len()).filter(is_kept).collect();
        let row_limit = match face {
            Face::Terminal => self.shown.terminal,
            Face::Page => self.shown.page,
        };
        let rows = self.rows.iter().take(row_limit);
        let rows = rows.map(|row| kept.iter().filter_map(|k| row.get(*k)).collect());
        let columns = kept.iter().map(|k| &self.columns[*k]).collect();
        (columns, rows.collect(), self.rows.len().saturating_sub(row_limit))
    }
    /// Its remarks for one face.
    pub(crate) fn remarks_of(&self, face: Face) -> impl Iterator<Item = &Remark> {
        self.remarks.iter().filter(move |remark| remark.only.is_none_or(|only| only == face))
    }
}
