//! Tables as the page draws them: each has a caption, row headers, and cells with sort keys.

use super::text::{format_name, format_sentence};
use crate::format::{count_text, micros_f64, percent_text, span_text};
use crate::tables::{self, Face, Tone, Value};
use punctual_core::Nanos;
use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// Its subject, for display and screen readers.
    pub caption: String,
    pub columns: Vec<Column>,
    /// The rows; the first cell of each is its header.
    pub rows: Vec<Vec<Cell>>,
    /// Whether the reader may sort it.
    pub sortable: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Column {
    pub title: String,
    /// An explanation, if the heading is short.
    pub meaning: Option<String>,
    /// Whether it holds figures (right-aligned).
    pub numeric: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    pub text: String,
    pub sub: Option<String>,
    /// Labels with a meaning of their own.
    pub badges: Vec<Badge>,
    /// Whether it is to be typed: a command, a path.
    pub code: bool,
    /// The sort key, if the text is not suitable.
    pub sort: Option<f64>,
    /// The exact figure, shown on hover.
    pub exact: Option<String>,
    /// `missing` for unknown values.
    pub class: &'static str,
    /// The colour number in pictures, shown as a swatch before the text.
    pub swatch: Option<u8>,
    /// A share, 0 to 1, drawn as a bar.
    pub bar: Option<f64>,
    /// Shares that add up to 1 at most, drawn as one bar, each with its colour class.
    pub parts: Vec<(&'static str, f64)>,
    /// The address that its text links to.
    pub link: Option<String>,
    /// Its own anchor.
    pub place: Option<String>,
    /// The series in the plots that the row describes: a button leads there.
    pub show: Option<Show>,
}

/// A place in the plot over time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Show {
    /// The series, by its index in the page's data.
    pub series: usize,
    /// The sample, by its index among the worst of the series.
    pub sample: usize,
}

/// A label.
#[derive(Clone, Debug, Serialize)]
pub struct Badge {
    pub text: String,
    /// `good`, `bad`, `warn` or empty.
    pub class: &'static str,
}

impl Column {
    pub fn text(title: &str) -> Column {
        Column { title: title.to_owned(), meaning: None, numeric: false }
    }
    pub fn figures(title: &str) -> Column {
        Column { title: title.to_owned(), meaning: None, numeric: true }
    }
    pub(crate) fn with_meaning(mut self, meaning: &str) -> Column {
        self.meaning = Some(meaning.to_owned());
        self
    }
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }
    /// A figure, sorted by its value.
    pub fn figure(text: impl Into<String>, value: f64) -> Cell {
        Cell { text: text.into(), sort: Some(value), ..Cell::default() }
    }
    pub fn count(n: u64) -> Cell {
        Cell::figure(crate::format::count_text(n), n as f64)
    }
    /// An unknown value, with the reason.
    pub(crate) fn missing_value(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), class: "missing", ..Cell::default() }
    }
    pub fn sub(mut self, sub: impl Into<String>) -> Cell {
        self.sub = Some(sub.into());
        self
    }
    pub(crate) fn with_badge(mut self, text: impl Into<String>, class: &'static str) -> Cell {
        self.badges.push(Badge { text: text.into(), class });
        self
    }
}

impl From<&tables::Table> for Table {
    fn from(table: &tables::Table) -> Table {
        let (columns, rows, _) = table.contents_for(Face::Page);
        let (title, remarks) = format_caption(table);
        let caption = format!("{title}. {remarks}").trim_end().to_owned();
        let row = |row: &Vec<&tables::Cell>| {
            let paired_cells = row.iter().zip(&columns);
            paired_cells.map(|(cell, column)| draw_cell(table, column, cell)).collect()
        };
        let heading = |column: &&tables::Column| Column {
            title: match column.verbatim || column.heading.is_empty() {
                true => column.heading.clone(),
                false => capitalize_heading(&column.heading),
            },
            meaning: column.meaning.clone(),
            numeric: column.numeric,
        };
        Table {
            caption,
            rows: rows.iter().map(row).collect(),
            columns: columns.iter().map(heading).collect(),
            sortable: table.sortable,
        }
    }
}

/// The title of a table with its unit, and its remarks.
pub(crate) fn format_caption(table: &tables::Table) -> (String, String) {
    let unit = match (table.has_times(), table.title.contains(": ")) {
        (false, _) => "",
        (true, false) => ", in µs",
        (true, true) => ", times in µs",
    };
    let title = format!("{}{unit}", capitalize_heading(&format_sentence(&table.title)));
    let remarks = table.remarks_of(Face::Page);
    let mut remarks: Vec<String> = remarks
        .map(|remark| format!("{}.", capitalize_heading(&format_sentence(&remark.text))))
        .collect();
    let hidden_rows = table.contents_for(Face::Page).2 as u64;
    remarks.extend(
        (hidden_rows > 0).then(|| format!("{} more are not shown.", count_text(hidden_rows))),
    );
    (title, remarks.join(" "))
}

impl From<tables::Table> for Table {
    fn from(table: tables::Table) -> Table {
        Table::from(&table)
    }
}

impl From<tables::Cell> for Cell {
    fn from(cell: tables::Cell) -> Cell {
        draw_cell(&tables::Table::default(), &tables::Column::default(), &cell)
    }
}

fn draw_cell(table: &tables::Table, column: &tables::Column, cell: &tables::Cell) -> Cell {
    let mut drawn_cell = format_value(&cell.value, cell.tone);
    let second = cell.beside.as_ref().map(|value| format_value(value, Tone::Plain).text);
    // The second view is shown below the first if the two differ.
    if let Some(second) = second.filter(|text| *text != drawn_cell.text) {
        drawn_cell.sub = Some(format!("{} {second}", table.beside));
    }
    drawn_cell.sub = cell.sub.as_deref().map(format_sentence).or(drawn_cell.sub);
    drawn_cell.exact = cell.exact.as_deref().map(format_sentence).or(drawn_cell.exact);
    for (text, tone) in &cell.labels {
        drawn_cell = drawn_cell.with_badge(format_sentence(text), tone_class(*tone));
    }
    drawn_cell.bar = cell.bar;
    drawn_cell.parts = cell.parts.clone();
    drawn_cell.place = cell.place.clone();
    drawn_cell.link = cell.link.clone();
    if column.wide {
        drawn_cell.class = "wide";
    }
    drawn_cell
}

fn format_value(value: &Value, tone: Tone) -> Cell {
    let end = |ns: &Option<f64>, none: &str| ns.map_or(none.to_owned(), micros_f64);
    match value {
        Value::Nothing => Cell::default(),
        Value::Name(text) => Cell::text(format_name(text)),
        Value::Text(text) => Cell::text(format_sentence(text)),
        Value::Command(text) => Cell { code: true, ..Cell::text(format_sentence(text)) },
        Value::Time(ns) => {
            Cell { exact: Some(format!("{ns} ns")), ..Cell::figure(micros_f64(*ns), *ns) }
        }
        Value::Latency(ns) => {
            let exact = Some(format!("{ns} ns"));
            Cell { exact, ..Cell::figure(format!("{} µs", micros_f64(*ns)), *ns) }
        }
        Value::Interval(low, high) => {
            Cell::text(format!("{} to {}", end(low, "−∞"), end(high, "∞")))
        }
        Value::Span(ns) => Cell::figure(span_text(Nanos(*ns)), *ns as f64),
        Value::Count(n) if tone == Tone::Uncertain => Cell { class: "alert", ..Cell::count(*n) },
        Value::Count(n) => Cell::count(*n),
        Value::Share(share) => Cell::figure(percent_text(*share), *share),
        Value::Figure(value, words) => Cell::figure(format_sentence(words), *value),
        Value::Verdict("", word) => {
            Cell::default().with_badge(format_sentence(word), tone_class(tone))
        }
        Value::Verdict(sign, word) => Cell::default()
            .with_badge(format!("{sign} {}", format_sentence(word)), tone_class(tone)),
        Value::Absent(why) => Cell::missing_value(format_sentence(why)),
        Value::Unknown => Cell::missing_value("unknown"),
    }
}

/// The class of a label.
pub(crate) fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Uncertain => "warn",
        _ => "",
    }
}

/// Capitalises a heading or sentence: `min` becomes `Min`, but `p99` is unchanged.
pub(crate) fn capitalize_heading(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), second) if !second.is_some_and(|c| c.is_ascii_digit()) => {
            first.to_ascii_uppercase().to_string() + &text[first.len_utf8()..]
        }
        _ => text.to_owned(),
    }
}
