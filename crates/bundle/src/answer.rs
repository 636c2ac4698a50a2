//! The answer of a run: what a user reads first, the same wherever it is shown.

use serde::{Deserialize, Serialize};

/// The verdict, the figure that decided it, what delayed it, and what to do.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The verdict in one sentence, with its reason and place.
    pub verdict: String,
    /// The figure that decided it, or the one of most weight where nothing was required; `null`
    /// where nothing was measured.
    pub figure: Option<DecidingFigure>,
    /// What delayed the late samples of that series, or of another one; `null` where that is not
    /// known.
    pub delayed_by: Option<Delays>,
    /// What to do, the strongest first; at most three.
    pub to_do: Vec<String>,
}

/// A figure of a series, and the bound that it was held against.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DecidingFigure {
    /// `phase/series`.
    pub series: String,
    /// `max`, `p99.9`, `overruns`, …
    pub metric: String,
    /// In ns, or a count.
    pub value: f64,
    /// Whether the value and the bound are times in ns.
    pub is_time: bool,
    /// `<`, `<=`, `==`, …; absent where nothing was required of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<String>,
    /// What it was held against, in ns or as a count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<i64>,
    /// Samples beyond the bound, as the histogram resolves them (0.1 %); absent where there is no
    /// bound on latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<u64>,
    pub samples: u64,
    /// Its largest value in ns.
    pub max: Option<i64>,
    /// The value is the lower bound of a sample that had not ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_ended: bool,
}

/// What delayed late samples, with the shares of their time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delays {
    /// The series, where it is another one than the figure's: nothing shows what delayed that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Late samples that are divided by cause.
    pub samples: u64,
    /// Incidents that they make: samples that follow from one another are one. `null` where it is
    /// not known which do.
    pub incidents: Option<u64>,
    /// From which latency on, in ns.
    pub from: i64,
    /// The largest share first.
    pub causes: Vec<Delay>,
    /// The source of the division, where that is not punctual's events: `rtla`, or the accounting
    /// in the kernel where events leave much open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A cause, and who it was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delay {
    /// The id of the cause (docs/reference/explain.md), or of the kind of entry of a CPU.
    pub cause: String,
    pub words: String,
    /// The task, lock holder, interrupt or device; absent where the cause has none, or where it is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Of the time, 0 to 1.
    pub share: f64,
}
