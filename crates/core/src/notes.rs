//! Results of a workload besides its samples: its counts against independent ones, the cost of the
//! clock, further figures.

use crate::{Fact, Finding, Nanos};
use serde::{Deserialize, Serialize};

/// The notes of a measure at its end.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Notes {
    /// Its claims against independent counts.
    #[serde(default)]
    pub validations: Vec<Validation>,
    /// What reading the clock costs where it measured. It is a part of every sample; nothing is
    /// subtracted.
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
    /// What the reader must know. The conductor moves these to the findings of the run; in a
    /// bundle there are none here.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// A series that could not be measured here: it is in the bundle, with nothing in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Absent {
    pub series: String,
    pub why: String,
}

/// A count of the workload and an independent one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Validation {
    /// What is counted: "system calls", "context switches".
    pub what: String,
    pub claimed: u64,
    /// What is counted on both sides, or its unit.
    pub counted: Fact<u64>,
    /// The independent source: a file, an event, a kernel counter.
    pub source: String,
    /// Whether the count is within the tolerance; `None` where nothing was counted, or where the
    /// difference may happen by chance.
    pub agrees: Option<bool>,
    /// How far the count may be from the claim. `None` in bundles of versions that did not state
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
    /// What the difference is made of, or how it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}

impl Validation {
    /// A claim beside a count.
    pub fn compare(
        what: impl Into<String>,
        claimed: u64,
        counted: Fact<u64>,
        source: impl Into<String>,
        tolerance: Tolerance,
    ) -> Validation {
        let agrees = counted.known().map(|counted| tolerance.admits(claimed, *counted));
        let (what, source) = (what.into(), source.into());
        Validation {
            what,
            claimed,
            counted,
            source,
            agrees,
            tolerance: Some(tolerance),
            explanation: None,
        }
    }
    /// With words on the difference, or on how it was counted.
    pub fn explain(mut self, explanation: impl Into<String>) -> Validation {
        self.explanation = Some(explanation.into());
        self
    }
    /// Without a verdict where the count is above the claim by more than is known: others may have
    /// done it, and nothing counts them.
    pub fn undecided_above(mut self, why: &str) -> Validation {
        let above = self.counted.known().is_some_and(|counted| *counted > self.claimed);
        self.undecided(above, why);
        self
    }
    /// The same where it is below the claim.
    pub fn undecided_below(mut self, why: &str) -> Validation {
        let below = self.counted.known().is_some_and(|counted| *counted < self.claimed);
        self.undecided(below, why);
        self
    }
    fn undecided(&mut self, is_so: bool, why: &str) {
        if is_so && self.agrees == Some(false) {
            self.agrees = None;
            let before =
                self.explanation.take().map_or(String::new(), |before| format!("{before}; "));
            self.explanation = Some(format!("{before}undecided: {why}"));
        }
    }
}

/// How far a count may be from a claim: each difference that can come about, by how much, and why.
/// Every part of it was itself counted, or follows from how the counters are read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tolerance {
    /// How many fewer may be counted than are claimed.
    pub fewer: u64,
    /// How many more; `None`: any number, where the claim is a least one.
    pub more: Option<u64>,
    /// What these are made of; empty where nothing may differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
}

impl Tolerance {
    /// The count must be the claim.
    pub const EXACT: Tolerance = Tolerance { fewer: 0, more: Some(0), because: Vec::new() };

    /// Up to this many fewer; 0 changes nothing.
    pub fn fewer(mut self, by: u64, why: impl AsRef<str>) -> Tolerance {
        self.fewer = self.fewer.saturating_add(by);
        self.note(by, why.as_ref());
        self
    }
    /// Up to this many more; 0 changes nothing.
    pub fn more(mut self, by: u64, why: impl AsRef<str>) -> Tolerance {
        self.more = self.more.map(|more| more.saturating_add(by));
        self.note(by, why.as_ref());
        self
    }
    /// Up to this many fewer or more; 0 changes nothing.
    pub fn either(mut self, by: u64, why: impl AsRef<str>) -> Tolerance {
        self.fewer = self.fewer.saturating_add(by);
        self.more = self.more.map(|more| more.saturating_add(by));
        self.note(by, why.as_ref());
        self
    }
    /// Any number more: the claim is a least one.
    pub fn any_more(mut self, why: impl Into<String>) -> Tolerance {
        self.more = None;
        self.because.push(why.into());
        self
    }
    fn note(&mut self, by: u64, why: &str) {
        if by > 0 {
            self.because.push(format!("{by}: {why}"));
        }
    }

    /// Whether a count is as near to a claim as that.
    pub fn admits(&self, claimed: u64, counted: u64) -> bool {
        let more = self.more.map_or(u64::MAX, |more| claimed.saturating_add(more));
        (claimed.saturating_sub(self.fewer)..=more).contains(&counted)
    }
    pub fn is_exact(&self) -> bool {
        self.fewer == 0 && self.more == Some(0)
    }
}

/// The distance of two readings of the clock directly after one another: what every sample holds of
/// the clock itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClockCost {
    /// Which clock, and how it is read.
    pub clock: String,
    pub count: u64,
    pub min: Nanos,
    /// Half of the values are at most this.
    pub median: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    pub max: Nanos,
}

/// A named value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// A stable word in kebab case: `jain-index`.
    pub name: String,
    /// What it is, for people.
    pub title: String,
    /// In the unit of the figure.
    pub value: f64,
    /// `ns`, `count`, `bytes`, `ratio`, `per-second`, ….
    pub unit: String,
    /// How many events it is made of, where that is a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Where the value is between with 95 % confidence; `None` where its spread is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Figure {
    /// A figure with a stable name, words for people, and a unit.
    pub fn new(name: &str, title: impl Into<String>, value: f64, unit: &str) -> Figure {
        Figure {
            name: name.to_owned(),
            title: title.into(),
            value,
            unit: unit.to_owned(),
            count: None,
            interval: None,
        }
    }
    /// With its 95 % interval.
    pub fn within(mut self, low: f64, high: f64) -> Figure {
        self.interval = Some([low, high]);
        self
    }
    /// With the number of events.
    pub fn of(mut self, count: u64) -> Figure {
        self.count = Some(count);
        self
    }
}

/// Rows of figures: the holders of a lock; the cost of each mechanism.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Table {
    /// A stable word in kebab case.
    pub name: String,
    /// What it shows, for people.
    pub title: String,
    /// From left to right; every row has a cell for each.
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
    Nothing,
    /// A number in the column's unit.
    Number(f64),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_agrees_within_what_its_tolerance_is_made_of_and_no_farther() {
        let timers = |counted, passed| {
            let tolerance =
                Tolerance::EXACT.fewer(passed, "instants that had passed").more(0, "nothing");
            Validation::compare(
                "timers",
                5_000,
                Fact::Known(counted),
                "timer:hrtimer_expire_entry",
                tolerance,
            )
        };
        assert_eq!(timers(4_750, 0).agrees, Some(false), "a twentieth is no tolerance");
        assert_eq!(timers(4_996, 4).agrees, Some(true));
        assert_eq!(timers(4_995, 4).agrees, Some(false));
        assert_eq!(timers(5_001, 4).agrees, Some(false));
        let tolerance = timers(5_000, 4).tolerance.unwrap();
        assert_eq!(tolerance.because, ["4: instants that had passed"], "what is 0 is no reason");
        assert!(Tolerance::EXACT.more(0, "nothing").is_exact());
    }

    #[test]
    fn at_least_is_any_more_and_never_fewer() {
        let tolerance = Tolerance::EXACT.any_more("other processes write too");
        assert!(tolerance.admits(5, 5) && tolerance.admits(5, u64::MAX) && !tolerance.admits(5, 4));
        assert!(!tolerance.is_exact());
    }

    #[test]
    fn what_may_be_others_is_undecided_and_what_cannot_be_differs() {
        let of = |counted| {
            Validation::compare("switches", 10, Fact::Known(counted), "", Tolerance::EXACT)
        };
        assert_eq!(of(12).undecided_above("others").agrees, None);
        assert_eq!(of(9).undecided_above("others").agrees, Some(false));
        assert_eq!(of(10).undecided_above("others").agrees, Some(true));
        assert_eq!(
            of(9).undecided_below("found there").explanation.unwrap(),
            "undecided: found there"
        );
    }
}
