//! Whether a run is worse than earlier ones on the same machine: a change of level in any of its
//! figures, detected as the runs come in.
//!
//! The statistic is that of a nonparametric change-point model (Hawkins and Deng, "A Nonparametric
//! Change-Point Control Chart", Journal of Quality Technology 42 (2010)), with normal scores
//! instead of ranks: over numbers of newest runs that may be a new level, the largest standardized
//! sum of their scores. By ranks an outlier counts as one run, whatever its size. It is taken over
//! all figures together, with the distribution of the same runs in random order (Westfall and
//! Young, 1993). The figures of one run stay together, so whatever their dependence, the
//! probability of an alarm in a run without a change is [`FALSE_ALARMS`] at most. If high runs
//! follow one another in the history itself, sums of the newest count less ([`bursts`]). E-divisive
//! means (Matteson and James, 2014), as used by Hunter and Otava, divide a whole history by its
//! means; that is designed for retrospection, and takes longer to detect a new level.

//!
//! Runs before a detected change remain the reference until the figure has returned ([`changes`]);
//! two or three runs far outside of everything decide immediately ([`leap`]).

mod bursts;
mod changes;
mod effect;
mod leap;
mod levels;
mod noise;
mod propose;
mod runs;
mod scan;
mod simulated;
mod trend;

pub(crate) use changes::RunChanges;
pub use effect::LevelShift;
pub(crate) use effect::{level_shift, smallest_step};
pub use leap::Leap;
#[cfg(test)]
pub(crate) use leap::runs_to_decide;
pub(crate) use levels::{FigureLevel, find_levels};
pub(crate) use runs::{collect_figures, hold_and_propose, list_changes};
pub use runs::{compare_with_baseline, figures_to_keep};
pub use simulated::{
    BoundRates, SimulatedMachine, SimulatedNoise, SimulationResult, simulate_bounds,
    simulate_histories,
};
#[cfg(test)]
pub(crate) use simulated::{Quiet, follow_steps, simulate_quiet};
pub use trend::{ProposedRate, build_trend};

use crate::Random;
use scan::Scored;

/// The probability of an alarm in a run without a change, over all figures together: below 1 %,
/// including the uncertainty of the drawn orders.
pub(crate) const FALSE_ALARMS: f64 = 0.009;
/// The share of it for runs far outside of everything ([`leap`]); the rest is for levels.
const OF_LEAPS: f64 = 0.5;
const OF_LEVELS: f64 = FALSE_ALARMS * (1.0 - OF_LEAPS);
/// The minimum number of runs in a history for a judgement: with fewer, five runs above all others
/// could still be chance.
pub(crate) const MIN_RUNS: usize = 12;
/// The number of runs within which a step should be detected.
pub(crate) const DETECTION_RUNS: usize = 5;
/// The number of orders drawn for a probability.
const ORDERS: usize = 2_000;
/// The number of orders drawn first, and the probability from which they suffice.
const FIRST_ORDERS: usize = 200;
const NO_CHANCE: f64 = 0.05;
/// Recovered: the newest runs are no longer above the first level by this probability.
const STILL: f64 = 0.05;
/// A fixed seed: judging the same runs again gives the same result.
const SEED: u64 = 0x5eed_0ba5;

/// One figure of every run, oldest first; `None` for a run without it.
#[derive(Clone, PartialEq, Debug)]
pub struct RunFigures {
    /// `phase/series p99`, …
    pub name: String,
    /// In ns, or as a count.
    pub values: Vec<Option<f64>>,
    /// Whether the values are times, which change by a factor; counts change by a difference.
    pub is_time: bool,
    /// Whether it is the requested figure, which is watched most closely of those of its series.
    pub is_main: bool,
}

/// The verdict on the newest run.
#[derive(Clone, PartialEq, Debug)]
pub enum RunJudgement {
    /// This many more runs are needed.
    TooFew(usize),
    Known(NewestJudgement),
}

/// The judgement on the newest run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NewestJudgement {
    /// Worse figures, each with the start of its new level.
    pub worse: Vec<LevelStep>,
    /// Figures whose newest runs are far outside of everything before, but too few to decide.
    pub leaps: Vec<Leap>,
}

impl RunJudgement {
    pub fn is_worse(&self) -> bool {
        matches!(self, RunJudgement::Known(known) if !known.worse.is_empty())
    }
}

/// A new level of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct LevelStep {
    /// The index of the figure.
    pub figure: usize,
    /// The first run of the new level.
    pub at: usize,
    /// The size of the step.
    pub shift: LevelShift,
}

/// Judges the last of these runs by all before it, without earlier changes.
pub(crate) fn judge_last_run(figures: &[RunFigures]) -> RunJudgement {
    RunChanges::default().judge_newest(figures)
}

/// New levels as pairs of figure index and start.
fn find_new_levels(figures: &[RunFigures]) -> Vec<(usize, usize)> {
    let scored = Scored::from_figures(figures);
    if scored.is_quiet() {
        return Vec::new();
    }
    let mut random = Random::from_seed(SEED);
    let first = scored.draw_orders(FIRST_ORDERS, &mut random);
    let is_open = |found: &scan::LevelEvidence| first.chance_of_evidence(found.news) <= NO_CHANCE;
    if !scored.find_evidence(&first).iter().any(is_open) {
        return Vec::new();
    }
    let orders = scored.draw_orders(ORDERS, &mut random);
    let news = scored.find_evidence(&orders).into_iter();
    let news = news.filter(|found| orders.chance_of_evidence(found.news) <= OF_LEVELS);
    news.map(|found| (found.figure, scan::find_level_start(&figures[found.figure].values)))
        .filter(|(place, at)| has_stayed(&figures[*place], *at))
        .collect()
}

/// Whether the newest runs are still above those before `at`: an earlier level that is over does
/// not count against the newest run.
fn has_stayed(figure: &RunFigures, at: usize) -> bool {
    let runs = figure.values.len();
    let newest = at.max(runs.saturating_sub(DETECTION_RUNS));
    effect::chance_of_above(&figure.known_values(0..at), &figure.known_values(newest..runs))
        <= STILL
}

impl RunFigures {
    /// Its values in these runs.
    fn known_values(&self, runs: std::ops::Range<usize>) -> Vec<f64> {
        self.values[runs].iter().copied().flatten().collect()
    }
}

#[cfg(test)]
mod tests;
