//! Whether a run is worse than those before it on the same machine: a change of level in any of
//! its figures, found as the runs come in.
//!
//! The statistic is that of a nonparametric change-point model (Hawkins and Deng, "A Nonparametric
//! Change-Point Control Chart", Journal of Quality Technology 42 (2010)), with normal scores for
//! ranks: over numbers of newest runs that may be a new level, the largest standardized sum of
//! their scores. By ranks an outlier counts as one run, whatever its size. It is taken over all
//! figures together, and its distribution is that of the same runs in random order (Westfall and
//! Young, 1993): the figures of one run stay together, so that however they depend on each other,
//! the chance of an alarm in a run where nothing has changed is [`FALSE_ALARMS`] at most. Where
//! high runs follow one another in the history itself, sums of the newest count less ([`bursts`]).
//! E-divisive means (Matteson and James, 2014), as Hunter and Otava use it, divides a whole history
//! by its means; it is made for looking back, and waits longer for a level that has just begun.

//!
//! A change that was found keeps the runs before it as the reference, until the figure has
//! returned ([`changes`]); two or three runs far outside of everything decide at once ([`leap`]).

mod bursts;
mod changes;
mod effect;
mod leap;
mod levels;
mod runs;
mod scan;
mod simulated;
mod trend;

pub use changes::Changes;
pub use effect::{Shift, shift, smallest_step};
pub use leap::{Leap, needed};
pub use levels::{Level, levels};
pub use runs::{changed, figures, hold, kept};
pub use simulated::{Followed, Machine, Noise, Quiet, Simulated, follow, quiet, simulate};
pub use trend::trend;

use crate::stats::Random;
use scan::Scored;

/// The chance of an alarm in a run where nothing has changed, over all figures together: below a
/// hundredth, with what the drawn orders leave uncertain.
pub const FALSE_ALARMS: f64 = 0.009;
/// The part of it that is spent on runs far outside of everything ([`leap`]); the rest on levels.
const OF_LEAPS: f64 = 0.5;
const OF_LEVELS: f64 = FALSE_ALARMS * (1.0 - OF_LEAPS);
/// Runs that a history has at least before anything is judged: with fewer, five runs that are all
/// above it could still be chance.
pub const LEAST: usize = 12;
/// Runs within which a step is to be noticed.
pub const WITHIN: usize = 5;
/// Orders that are drawn for a chance.
const ORDERS: usize = 2_000;
/// Orders that are drawn first, and from which chance on they are enough.
const FIRST_ORDERS: usize = 200;
const NO_CHANCE: f64 = 0.05;
/// Recovered: the newest runs are no longer above the first level by this chance.
const STILL: f64 = 0.05;
/// Every judgement of the same runs is the same.
const SEED: u64 = 0x5eed_0ba5;

/// One figure, of every run from the oldest to the newest; `None` where a run does not have it.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// `phase/series p99`, …
    pub name: String,
    /// In ns, or a count.
    pub values: Vec<Option<f64>>,
    /// Whether the values are times, which change by a factor; counts change by a difference.
    pub is_time: bool,
    /// Whether it is the figure that was asked for: of those of its series, it is watched most
    /// closely.
    pub is_main: bool,
}

/// The verdict on the newest run.
#[derive(Clone, PartialEq, Debug)]
pub enum Judged {
    /// This many more runs are needed.
    TooFew(usize),
    Known(Known),
}

/// What is known of the newest run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Known {
    /// Figures that are worse, each with where its new level began.
    pub worse: Vec<Step>,
    /// Figures whose newest runs are far outside of everything before, and too few to decide.
    pub leaps: Vec<Leap>,
}

impl Judged {
    pub fn is_worse(&self) -> bool {
        matches!(self, Judged::Known(known) if !known.worse.is_empty())
    }
}

/// A new level of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Which figure, by its place.
    pub figure: usize,
    /// The first run of the new level.
    pub at: usize,
    /// How far away it is.
    pub shift: Shift,
}

/// Judges the last of these runs by all before it, where no change was found before.
pub fn judge(figures: &[Figure]) -> Judged {
    Changes::default().judge(figures)
}

/// New levels of these figures, by their places: where each began.
fn news(figures: &[Figure]) -> Vec<(usize, usize)> {
    let scored = Scored::of(figures);
    if scored.is_quiet() {
        return Vec::new();
    }
    let mut random = Random::seeded(SEED);
    let first = scored.orders(FIRST_ORDERS, &mut random);
    let is_open = |found: &scan::Found| first.chance(found.news) <= NO_CHANCE;
    if !scored.found(&first).iter().any(is_open) {
        return Vec::new();
    }
    let orders = scored.orders(ORDERS, &mut random);
    let news = scored.found(&orders).into_iter();
    let news = news.filter(|found| orders.chance(found.news) <= OF_LEVELS);
    news.map(|found| (found.figure, scan::began(&figures[found.figure].values)))
        .filter(|(place, at)| has_stayed(&figures[*place], *at))
        .collect()
}

/// Whether the newest runs are still above those before `at`: a level that was there for a while
/// and is over is not held against the newest run.
fn has_stayed(figure: &Figure, at: usize) -> bool {
    let runs = figure.values.len();
    let newest = at.max(runs.saturating_sub(WITHIN));
    effect::chance_of_above(&figure.known(0..at), &figure.known(newest..runs)) <= STILL
}

impl Figure {
    /// Its values in these runs.
    fn known(&self, runs: std::ops::Range<usize>) -> Vec<f64> {
        self.values[runs].iter().copied().flatten().collect()
    }
}

#[cfg(test)]
mod tests;
