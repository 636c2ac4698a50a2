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

mod bursts;
mod effect;
mod levels;
mod runs;
mod scan;
mod simulated;
mod trend;

pub use effect::{Shift, shift, smallest_step};
pub use levels::{Level, levels};
pub use runs::{changed, figures, hold, kept};
pub use simulated::{Machine, Noise, Simulated, simulate};
pub use trend::trend;

use crate::stats::Random;
use scan::Scored;

/// The chance of an alarm in a run where nothing has changed, over all figures together: below a
/// hundredth, with what the drawn orders leave uncertain.
pub const FALSE_ALARMS: f64 = 0.009;
/// Runs that a history has at least before anything is judged: with fewer, five runs that are all
/// above it could still be chance.
pub const LEAST: usize = 12;
/// Runs within which a step is to be noticed.
pub const WITHIN: usize = 5;
/// Orders that are drawn for a chance.
const ORDERS: usize = 2_000;
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

/// What is to be said of the newest run.
#[derive(Clone, PartialEq, Debug)]
pub enum Judged {
    /// So many more runs are needed.
    TooFew(usize),
    AsBefore,
    /// These figures are, each with where its new level began.
    Worse(Vec<Step>),
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

/// Judges the last of these runs by all before it.
pub fn judge(figures: &[Figure]) -> Judged {
    let runs = figures.iter().map(|figure| figure.values.len()).max().unwrap_or(0);
    if runs <= LEAST || figures.is_empty() {
        return Judged::TooFew((LEAST + 1).saturating_sub(runs).max(1));
    }
    let scored = Scored::of(figures);
    if scored.is_quiet() {
        return Judged::AsBefore;
    }
    let orders = scored.orders(ORDERS, &mut Random::seeded(SEED));
    let news = scored.found(&orders).into_iter();
    let news = news.filter(|found| orders.chance(found.news) <= FALSE_ALARMS);
    let steps: Vec<Step> = news
        .map(|found| (found.figure, scan::began(&figures[found.figure].values)))
        .filter(|(place, at)| has_stayed(&figures[*place], *at))
        .map(|(figure, at)| Step { figure, at, shift: shift(&figures[figure], at, runs) })
        .collect();
    if steps.is_empty() { Judged::AsBefore } else { Judged::Worse(steps) }
}

/// Whether the newest runs are still above those before `at`: a level that was there for a while
/// and is over is not held against the newest run.
fn has_stayed(figure: &Figure, at: usize) -> bool {
    let runs = figure.values.len();
    let newest = at.max(runs.saturating_sub(WITHIN));
    let known = |range: std::ops::Range<usize>| -> Vec<f64> {
        figure.values[range].iter().copied().flatten().collect()
    };
    let (before, now) = (known(0..at), known(newest..runs));
    effect::chance_of_above(&before, &now) <= STILL
}

#[cfg(test)]
mod tests;
