//! Tables as the page draws them: every one has a caption, row headers, and cells that know by what
//! they are sorted.

use serde::Serialize;

/// A table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// What it shows, for eyes and screen readers.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows; the first cell of each is its header.
    pub rows: Vec<Vec<Cell>>,
    /// Whether the reader may sort it.
    pub sortable: bool,
}

/// A column.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Column {
    /// Its heading.
    pub title: String,
    /// What it means, where the heading is short.
    pub meaning: Option<String>,
    /// Whether it holds figures (set flush right).
    pub numeric: bool,
}

/// A cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// A second, smaller line.
    pub sub: Option<String>,
    /// Labels with a meaning of their own.
    pub badges: Vec<Badge>,
    /// Whether it is something typed: a command, a path.
    pub code: bool,
    /// What it is sorted by, where the text does not do.
    pub sort: Option<f64>,
    /// The exact figure, shown when pointed at.
    pub exact: Option<String>,
    /// `missing` for what is unknown.
    pub class: &'static str,
    /// The number of a colour in pictures that stands before it.
    pub swatch: Option<u8>,
    /// A share, 0 to 1, drawn as a bar.
    pub bar: Option<f64>,
    /// Shares that add up to 1 at most, each with the class of its colour, drawn as one bar.
    pub parts: Vec<(&'static str, f64)>,
    /// The place in the page that its text leads to.
    pub leads_to: Option<String>,
    /// Its own name as such a place.
    pub place: Option<String>,
    /// The series in the plots that the row is about: a button leads there.
    pub show: Option<Show>,
}

/// A place in the plot over time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Show {
    /// The series, by its number in the page's data.
    pub series: usize,
    /// The sample, by its number among the worst of the series.
    pub sample: usize,
}

/// A label.
#[derive(Clone, Debug, Serialize)]
pub struct Badge {
    /// Its text.
    pub text: String,
    /// `good`, `bad`, `warn` or empty.
    pub class: &'static str,
}

impl Column {
    /// A column of texts.
    pub fn text(title: &str) -> Column {
        Column { title: title.to_owned(), meaning: None, numeric: false }
    }
    /// A column of figures.
    pub fn figures(title: &str) -> Column {
        Column { title: title.to_owned(), meaning: None, numeric: true }
    }
    /// With its meaning.
    pub fn meaning(mut self, meaning: &str) -> Column {
        self.meaning = Some(meaning.to_owned());
        self
    }
}

impl Cell {
    /// A text.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }
    /// A figure, sorted by its value.
    pub fn figure(text: impl Into<String>, value: f64) -> Cell {
        Cell { text: text.into(), sort: Some(value), ..Cell::default() }
    }
    /// A count.
    pub fn count(n: u64) -> Cell {
        Cell::figure(crate::format::count(n), n as f64)
    }
    /// An unknown value, with the reason.
    pub fn missing(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), class: "missing", ..Cell::default() }
    }
    /// Leading to a place in the page.
    pub fn to(mut self, place: Option<String>) -> Cell {
        self.leads_to = place;
        self
    }
    /// Being a place in the page.
    pub fn at(mut self, place: Option<String>) -> Cell {
        self.place = place;
        self
    }
    /// With a second line.
    pub fn sub(mut self, sub: impl Into<String>) -> Cell {
        self.sub = Some(sub.into());
        self
    }
    /// With a label.
    pub fn badge(mut self, text: impl Into<String>, class: &'static str) -> Cell {
        self.badges.push(Badge { text: text.into(), class });
        self
    }
}
