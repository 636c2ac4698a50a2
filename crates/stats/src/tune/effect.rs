//! The effect of each setting from blocks, on the logarithm of the figure so that effects are
//! factors, with Student's t for their errors. The figure of a block is one value, whatever the
//! dependence within it; groups of blocks have their own levels.

use super::least_squares::fit;
use crate::effect::EffectEstimate;
use crate::probability::{normal_upper, student_upper};
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::tune::{EffectFactor, TuneAnswer};

/// A measured block.
#[derive(Clone, PartialEq, Debug)]
pub struct EffectRow {
    /// The group of blocks.
    pub group: usize,
    /// For each candidate, whether it was set.
    pub on: Vec<bool>,
    /// The logarithm of its figure.
    pub log: f64,
}

/// The result of a round for a setting.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Screened {
    pub estimate: EffectEstimate,
    /// Adjusted for all settings of the round.
    pub p_adjusted: f64,
    pub answer: TuneAnswer,
    /// The round, from 1.
    pub round: u32,
    /// The round's share of the error rate.
    pub share: f64,
}

/// The estimates for the open settings, and the standard deviation between blocks of the same
/// settings.
pub fn estimates(rows: &[EffectRow], open: &[usize]) -> (Vec<Option<EffectEstimate>>, Option<f64>) {
    let groups: Vec<usize> = rows.iter().map(|row| row.group).collect();
    let of_row = |row: &EffectRow| open.iter().map(|place| f64::from(row.on[*place])).collect();
    let columns: Vec<Vec<f64>> = rows.iter().map(of_row).collect();
    let logs: Vec<f64> = rows.iter().map(|row| row.log).collect();
    let fit = fit(&groups, &columns, &logs);
    if fit.freedom < 1.0 {
        return (vec![None; open.len()], None);
    }
    let variance = fit.squares / fit.freedom;
    let estimate = |column: Option<(f64, f64)>| {
        column.map(|(effect, diagonal)| {
            EffectEstimate::of_model(effect, (variance * diagonal).sqrt(), fit.freedom, rows.len())
        })
    };
    (fit.columns.into_iter().map(estimate).collect(), Some(variance.sqrt()))
}

impl EffectEstimate {
    /// As a factor with its 95 % interval. `p_adjusted` is for all tests together.
    pub fn ratio(&self, p_adjusted: f64) -> EffectFactor {
        EffectFactor {
            ratio: self.effect.exp(),
            interval: self.interval(0.05).map(f64::exp),
            p: self.p(),
            p_adjusted,
            blocks: self.count as u64,
        }
    }
    /// Whether it is shown to be within the margin, a factor.
    pub fn is_none(&self, margin: f64) -> bool {
        self.within(margin.ln()).verdict == VerdictWord::Met
    }
    /// Whether a two-sided test with this error finds an effect of this size (a factor) with a
    /// probability of 95 %.
    pub(crate) fn resolves(&self, smallest: f64, error: f64) -> bool {
        let needed = student_upper(self.freedom, error / 2.0) + student_upper(self.freedom, MISSED);
        self.error * needed <= smallest.ln()
    }
    /// The factor of blocks that would probably resolve it: to show that there is no effect, or
    /// that it is as large as it seems.
    pub fn needed(&self, margin: f64, error: f64) -> Option<f64> {
        let seems_none = self.effect.abs() < margin.ln();
        let needed = if seems_none {
            normal_upper(0.05) + normal_upper(0.1)
        } else {
            normal_upper(error / 2.0) + normal_upper(0.2)
        };
        let of = if seems_none { margin.ln() } else { self.effect.abs() };
        let times = (self.error * needed / of).powi(2);
        (times.is_finite() && times > 1.0).then_some(times)
    }
}

/// The probability of missing an effect of the smallest size.
pub(super) const MISSED: f64 = 0.05;
