//! What a workload has to say beside its samples: how its claims compare with independent counts, what the clock costs, further figures.

use crate::{Fact, Finding, Nanos};
use serde::{Deserialize, Serialize};

/// Everything that a measure says of itself when it has ended.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Notes {
    /// Its claims against independent counts.
    #[serde(default)]
    pub validations: Vec<Validation>,
    /// What reading the clock costs where it measured. It is a part of every sample; nothing is subtracted.
    #[serde(default)]
    pub clock_cost: Fact<ClockCost>,
    /// Further figures.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// Figures that belong together in rows.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// Series that could not be measured here, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Absent>,
    /// What the reader must know. The conductor moves these to the findings of the run; in a bundle there are none here.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// A series that could not be measured here: it is in the bundle, with nothing in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Absent {
    /// Its name.
    pub series: String,
    /// What is missing.
    pub why: String,
}

/// A claim and what somebody else counted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Validation {
    /// What is counted: "system calls", "context switches".
    pub what: String,
    /// What the workload says.
    pub claimed: u64,
    /// What the other says.
    pub counted: Fact<u64>,
    /// Who the other is: a file, an event, a kernel counter.
    pub source: String,
    /// Whether they agree within what [`Validation::explanation`] accounts for; `None` where nothing was counted.
    pub agrees: Option<bool>,
    /// What the difference is made of, or how it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}

impl Validation {
    /// A claim beside a count, which may differ by `allowed`: what is not the workload's own and is counted too.
    pub fn compare(
        what: impl Into<String>,
        claimed: u64,
        counted: Fact<u64>,
        source: impl Into<String>,
        allowed: u64,
    ) -> Validation {
        let agrees = counted.known().map(|counted| counted.abs_diff(claimed) <= allowed);
        Validation { what: what.into(), claimed, counted, source: source.into(), agrees, explanation: None }
    }
    /// With words on the difference, or on how it was counted.
    pub fn explain(mut self, explanation: impl Into<String>) -> Validation {
        self.explanation = Some(explanation.into());
        self
    }
}

/// The distance of two readings of the clock directly after one another: what every sample holds of the clock itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClockCost {
    /// Which clock, and how it is read.
    pub clock: String,
    /// Pairs of readings.
    pub count: u64,
    /// The shortest.
    pub min: Nanos,
    /// The median.
    pub median: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
}

/// A named value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// A stable word in kebab case: `jain-index`.
    pub name: String,
    /// What it is, for people.
    pub title: String,
    /// The value.
    pub value: f64,
    /// `ns`, `count`, `bytes`, `ratio`, `per-second`, ….
    pub unit: String,
    /// How many events it is made of, where that is a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl Figure {
    /// A figure with a stable name, words for people, and a unit.
    pub fn new(name: &str, title: impl Into<String>, value: f64, unit: &str) -> Figure {
        Figure { name: name.to_owned(), title: title.into(), value, unit: unit.to_owned(), count: None }
    }
    /// Made of so many events.
    pub fn of(mut self, count: u64) -> Figure {
        self.count = Some(count);
        self
    }
}

/// Rows of figures: who held a lock when; what each mechanism costs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Table {
    /// A stable word in kebab case.
    pub name: String,
    /// What it shows, for people.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each as long as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a [`Table`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Its name, the key of the value for programs.
    pub name: String,
    /// As of [`Figure::unit`]; empty for text.
    #[serde(default)]
    pub unit: String,
}

impl Column {
    /// A column of numbers in a unit, or of text with none.
    pub fn new(name: &str, unit: &str) -> Column {
        Column { name: name.to_owned(), unit: unit.to_owned() }
    }
}

/// A value in a [`Table`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// Not there.
    Nothing,
    /// A number in the column's unit.
    Number(f64),
    /// Words.
    Text(String),
}

impl From<Nanos> for Cell {
    fn from(span: Nanos) -> Cell {
        Cell::Number(span.ns() as f64)
    }
}
impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::Number(number as f64)
    }
}
impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}
impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}
