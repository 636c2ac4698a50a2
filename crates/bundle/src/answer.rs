//! The answer of a run, which a user reads first: the same in all output.

use serde::{Deserialize, Serialize};

/// The verdict, the figure that decided it, what delayed it, and what to do.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Regression, noise, or undecided, with the reason; absent without a baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// A bound that the runs of the baseline bear, and what it promises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// The verdict in one sentence, with its reason and place.
    pub verdict: String,
    /// The figure that decided it, or the most significant one without requirements; `null` if
    /// nothing was measured.
    pub figure: Option<DecidingFigure>,
    /// The causes of the late samples of that series, or of another one; `null` if unknown.
    pub delayed_by: Option<Delays>,
    /// Recommended actions, the most effective first; at most three.
    pub to_do: Vec<String>,
}

/// A figure of a series with its bound.
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
    /// `<`, `<=`, `==`, …; absent without a requirement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<String>,
    /// The bound in ns or as a count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<i64>,
    /// Samples beyond the bound at the histogram's resolution (0.1 %); absent without a bound on
    /// latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<u64>,
    pub samples: u64,
    /// Its largest value in ns.
    pub max: Option<i64>,
    /// The value is the lower bound of an unfinished sample.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_ended: bool,
}

/// The causes of late samples, with their shares of the time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct Delays {
    /// The series, if it is not the figure's, whose delays are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// The number of late samples divided by cause.
    pub samples: u64,
    /// The number of incidents: samples that follow from one another are one. `null` if their
    /// relation is unknown.
    pub incidents: Option<u64>,
    /// The latency threshold in ns.
    pub from: i64,
    /// The largest share first.
    pub causes: Vec<AnsweredDelay>,
    /// The source of the division, where that is not punctual's events: `rtla`, or the accounting
    /// in the kernel where events leave much open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A cause and its culprit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct AnsweredDelay {
    /// The id of the cause (docs/reference/explain.md) or of the kind of CPU entry.
    pub cause: String,
    pub words: String,
    /// The task, lock holder, interrupt or device; absent if the cause has none, or if it is
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The line of the program, `loop.cpp:142`, at which most of its longest cycles had this delay;
    /// without debug information the function. Absent if no stack shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The task that mostly ended these waits, and its line: `panel-77 at panel.cpp:61`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// What the holder of the lock mostly did meanwhile, and at which line of its own: `preempted
    /// at panel.cpp:70 (no CPU for 87 % of the waits)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The share of the time, 0 to 1.
    pub share: f64,
}

impl AnsweredDelay {
    /// A delay of which no stack shows the line.
    pub fn new(
        cause: impl Into<String>,
        words: impl Into<String>,
        who: Option<String>,
        share: f64,
    ) -> AnsweredDelay {
        let (cause, words) = (cause.into(), words.into());
        AnsweredDelay { cause, words, who, share, ..AnsweredDelay::default() }
    }
}
