//! Results of a workload besides its samples: its counts against independent ones, the clock cost,
//! further figures.

use crate::{Fact, Finding, Nanos};
use serde::{Deserialize, Serialize};

/// The notes of a measure at its end.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Notes {
    /// Its claims against independent counts.
    #[serde(default)]
    pub validations: Vec<Validation>,
    /// The cost of reading the clock during the measurement. It is a part of every sample and not
    /// subtracted.
    #[serde(default)]
    pub clock_cost: Fact<ClockCost>,
    /// Further figures.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// Figures in rows.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// Series that could not be measured here, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Absent>,
    /// Warnings for the reader. The controller moves these to the findings of the run; in a bundle
    /// this is empty.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// A series that could not be measured here: it exists in the bundle without samples.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Absent {
    pub series: String,
    pub why: String,
}

/// A count of the workload and an independent one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Validation {
    /// The counted events: "system calls", "context switches".
    pub what: String,
    pub claimed: u64,
    /// The independent count, in the same unit.
    pub counted: Fact<u64>,
    /// The independent source: a file, an event, a kernel counter.
    pub source: String,
    /// Whether the count is within the tolerance; `None` without a count, or if the difference may
    /// be due to chance.
    pub agrees: Option<bool>,
    /// The allowed difference of the count from the claim. `None` in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
    /// The reasons for a difference, or the method of counting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}

impl Validation {
    /// Compares a claim with a count.
    pub fn compare_counts(
        what: impl Into<String>,
        claimed: u64,
        counted: Fact<u64>,
        source: impl Into<String>,
        tolerance: Tolerance,
    ) -> Validation {
        let agrees =
            counted.known_value().map(|counted| tolerance.is_within_tolerance(claimed, *counted));
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
    /// Adds an explanation of the difference, or of the method.
    pub fn with_explanation(mut self, explanation: impl Into<String>) -> Validation {
        self.explanation = Some(explanation.into());
        self
    }
    /// Removes the verdict if the count exceeds the claim by more than is known: others may have
    /// caused it, without a count.
    pub fn undecided_above(mut self, why: &str) -> Validation {
        let above = self.counted.known_value().is_some_and(|counted| *counted > self.claimed);
        self.mark_undecided_if(above, why);
        self
    }
    /// The same for a count below the claim.
    pub fn undecided_below(mut self, why: &str) -> Validation {
        let below = self.counted.known_value().is_some_and(|counted| *counted < self.claimed);
        self.mark_undecided_if(below, why);
        self
    }
    fn mark_undecided_if(&mut self, is_so: bool, why: &str) {
        if is_so && self.agrees == Some(false) {
            self.agrees = None;
            let before =
                self.explanation.take().map_or(String::new(), |before| format!("{before}; "));
            self.explanation = Some(format!("{before}undecided: {why}"));
        }
    }
}

/// The allowed difference of a count from a claim: each possible contribution with its size and
/// reason. Every contribution was counted itself, or follows from the way the counters are read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tolerance {
    /// The allowed shortfall of the count.
    pub fewer: u64,
    /// The allowed excess of the count; `None`: unlimited, if the claim is a minimum.
    pub more: Option<u64>,
    /// The reasons; empty if no difference is allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
}

impl Tolerance {
    /// No difference is allowed.
    pub const EXACT: Tolerance = Tolerance { fewer: 0, more: Some(0), because: Vec::new() };

    /// Up to this many fewer; 0 changes nothing.
    pub fn allow_fewer(mut self, by: u64, why: impl AsRef<str>) -> Tolerance {
        self.fewer = self.fewer.saturating_add(by);
        self.note_reason(by, why.as_ref());
        self
    }
    /// Up to this many more; 0 changes nothing.
    pub fn allow_more(mut self, by: u64, why: impl AsRef<str>) -> Tolerance {
        self.more = self.more.map(|more| more.saturating_add(by));
        self.note_reason(by, why.as_ref());
        self
    }
    /// Up to this many fewer or more; 0 changes nothing.
    pub fn allow_either(mut self, by: u64, why: impl AsRef<str>) -> Tolerance {
        self.fewer = self.fewer.saturating_add(by);
        self.more = self.more.map(|more| more.saturating_add(by));
        self.note_reason(by, why.as_ref());
        self
    }
    /// Allows any excess: the claim is a minimum.
    pub fn any_more(mut self, why: impl Into<String>) -> Tolerance {
        self.more = None;
        self.because.push(why.into());
        self
    }
    fn note_reason(&mut self, by: u64, why: &str) {
        if by > 0 {
            self.because.push(format!("{by}: {why}"));
        }
    }

    /// Whether a count is within the tolerance of a claim.
    fn is_within_tolerance(&self, claimed: u64, counted: u64) -> bool {
        let upper_bound = self.more.map_or(u64::MAX, |more| claimed.saturating_add(more));
        (claimed.saturating_sub(self.fewer)..=upper_bound).contains(&counted)
    }
    pub fn is_exact(&self) -> bool {
        self.fewer == 0 && self.more == Some(0)
    }
}

/// The time between two consecutive readings of the clock: the part of the clock itself in every
/// sample.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClockCost {
    /// The clock and its way of reading.
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
    /// A description, for display.
    pub title: String,
    /// In the unit of the figure.
    pub value: f64,
    /// `ns`, `count`, `bytes`, `ratio`, `per-second`, ….
    pub unit: String,
    /// The number of events behind it, where that applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The 95 % interval of the value; `None` if its spread is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Figure {
    /// A figure with a stable name, a description and a unit.
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
    pub fn with_interval(mut self, low: f64, high: f64) -> Figure {
        self.interval = Some([low, high]);
        self
    }
    /// With the number of events.
    pub fn with_count(mut self, count: u64) -> Figure {
        self.count = Some(count);
        self
    }
}

/// The name of the table of the lines of a program with what happened there.
pub const PLACES: &str = "places";
/// The name of the table of a thread's stacks, outermost function first, `;` between functions. It
/// is drawn as a flame graph, and exported, but not shown as a table.
pub const STACKS: &str = "stacks";

impl Notes {
    /// The tables that are shown as such.
    pub fn shown_tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(|table| table.name != STACKS)
    }
}

/// Rows of figures, such as the holders of a lock, or the cost of each mechanism.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Table {
    /// A stable word in kebab case.
    pub name: String,
    /// A description, for display.
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
    /// As in [`Figure::unit`]; empty for text.
    #[serde(default)]
    pub unit: String,
}

impl Column {
    /// A column of numbers in a unit, or of text without one.
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
    fn a_count_agrees_only_within_its_tolerance() {
        let timers = |counted, passed| {
            let tolerance = Tolerance::EXACT
                .allow_fewer(passed, "instants that had passed")
                .allow_more(0, "nothing");
            Validation::compare_counts(
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
        assert!(Tolerance::EXACT.allow_more(0, "nothing").is_exact());
    }

    #[test]
    fn any_more_admits_larger_counts_but_no_smaller_ones() {
        let tolerance = Tolerance::EXACT.any_more("other processes write too");
        assert!(
            tolerance.is_within_tolerance(5, 5)
                && tolerance.is_within_tolerance(5, u64::MAX)
                && !tolerance.is_within_tolerance(5, 4)
        );
        assert!(!tolerance.is_exact());
    }

    #[test]
    fn a_count_that_others_may_have_raised_is_undecided() {
        let of = |counted| {
            Validation::compare_counts("switches", 10, Fact::Known(counted), "", Tolerance::EXACT)
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
