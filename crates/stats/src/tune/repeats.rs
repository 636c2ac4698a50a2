//! Selects the groups of blocks to measure again: those in which the machine changed, judged by the
//! two controls, which have the same settings and should differ no more than others. Only the
//! controls decide, so that no setting is favoured.

use crate::dispersion::moments;

/// The number of standard deviations from which a difference of controls is a drift.
const FAR: f64 = 4.0;
/// The minimum number of differences for estimating their spread.
const FEWEST: usize = 4;
/// The maximum number of repetitions of a group; after that it counts as it is.
pub(super) const ATTEMPTS: u32 = 2;

/// The differences of controls within groups so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Controls {
    differences: Vec<f64>,
}

impl Controls {
    /// Adds the difference of the two controls of a group; returns whether it is a drift.
    pub(crate) fn drifted(&mut self, difference: f64) -> bool {
        let known = self.spread();
        let is_far = known.is_some_and(|spread| difference.abs() > FAR * spread);
        if !is_far {
            self.differences.push(difference);
        }
        is_far
    }

    /// The standard deviation of a difference around 0, by its median if that is more robust: one
    /// drift must not hide the next.
    fn spread(&self) -> Option<f64> {
        if self.differences.len() < FEWEST {
            return None;
        }
        let mut sizes: Vec<f64> = self.differences.iter().map(|d| d.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let by_median = sizes[sizes.len() / 2] / 0.6745;
        let by_squares = moments(&self.differences).map_or(by_median, |(_, v)| v.sqrt());
        Some(by_median.max(by_squares / 2.0).max(1e-9))
    }
}
