//! Which groups of blocks are measured anew: those in which the machine changed, by their two
//! controls, which have the same settings and should differ by no more than others do. Only the
//! controls decide, so that no setting is favoured.

use crate::stats::dispersion::moments;

/// Differences of controls further out than this many standard deviations are a drift.
const FAR: f64 = 4.0;
/// With fewer differences nothing is known of their spread.
const FEWEST: usize = 4;
/// A group is measured anew this often at most; then it counts as it is.
pub(super) const ATTEMPTS: u32 = 2;

/// Differences of controls within one group, all so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Controls {
    differences: Vec<f64>,
}

impl Controls {
    /// Adds the difference of the two controls of a group; whether it is a drift.
    pub fn drifted(&mut self, difference: f64) -> bool {
        let known = self.spread();
        let is_far = known.is_some_and(|spread| difference.abs() > FAR * spread);
        if !is_far {
            self.differences.push(difference);
        }
        is_far
    }

    /// The standard deviation of a difference around 0, by its median where that says more: one
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
