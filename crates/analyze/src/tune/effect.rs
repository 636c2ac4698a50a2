//! What blocks show of each setting: effects on the logarithm of the figure, so that they are
//! factors, with Student's t for their errors. A block's figure is one value, whatever depends on
//! what inside of it; groups of blocks have levels of their own.

use super::least_squares::fit;
use crate::equivalence::{self, Tested};
use crate::stats::probability::{normal_upper, student_two_sided, student_upper};
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::tune::{Answer, Ratio};

/// A block as it was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The group of blocks that it belongs to.
    pub group: usize,
    /// For each candidate, whether it was set.
    pub on: Vec<bool>,
    /// The logarithm of its figure.
    pub log: f64,
}

/// What is known of an effect, as a logarithm.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The estimate; below 0 is better.
    pub effect: f64,
    pub error: f64,
    /// The degrees of freedom of that.
    pub freedom: f64,
    /// The blocks from which it was computed.
    pub blocks: usize,
}

/// What a round has shown of a setting.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Screened {
    pub estimate: Estimate,
    /// Adjusted for all settings of the round.
    pub p_adjusted: f64,
    pub answer: Answer,
    /// The round, from 1.
    pub round: u32,
    /// The round's share of the errors.
    pub share: f64,
}

/// Of each of the open settings, and the standard deviation between blocks of the same settings.
pub fn estimates(rows: &[Row], open: &[usize]) -> (Vec<Option<Estimate>>, Option<f64>) {
    let groups: Vec<usize> = rows.iter().map(|row| row.group).collect();
    let of_row = |row: &Row| open.iter().map(|place| f64::from(row.on[*place])).collect();
    let columns: Vec<Vec<f64>> = rows.iter().map(of_row).collect();
    let logs: Vec<f64> = rows.iter().map(|row| row.log).collect();
    let fit = fit(&groups, &columns, &logs);
    if fit.freedom < 1.0 {
        return (vec![None; open.len()], None);
    }
    let variance = fit.squares / fit.freedom;
    let estimate = |column: Option<(f64, f64)>| {
        column.map(|(effect, diagonal)| Estimate {
            effect,
            error: (variance * diagonal).sqrt(),
            freedom: fit.freedom,
            blocks: rows.len(),
        })
    };
    (fit.columns.into_iter().map(estimate).collect(), Some(variance.sqrt()))
}

impl Estimate {
    /// The probability of an effect at least as large, up or down, if there is none.
    pub fn p(&self) -> f64 {
        if self.error > 0.0 {
            student_two_sided(self.freedom, self.effect / self.error)
        } else {
            f64::from(self.effect == 0.0)
        }
    }
    /// As a factor with its 95 % interval. `p_adjusted` is for all tests together.
    pub fn ratio(&self, p_adjusted: f64) -> Ratio {
        let reach = student_upper(self.freedom, 0.025) * self.error;
        Ratio {
            ratio: self.effect.exp(),
            interval: [(self.effect - reach).exp(), (self.effect + reach).exp()],
            p: self.p(),
            p_adjusted,
            blocks: self.blocks as u64,
        }
    }
    /// Two one-sided tests against a margin, a factor.
    pub fn equivalence(&self, margin: f64) -> Tested {
        equivalence::of_estimate(self.effect, self.error, self.freedom, self.blocks, margin.ln())
    }
    /// Whether it is shown to lie within the margin.
    pub fn is_none(&self, margin: f64) -> bool {
        self.equivalence(margin).verdict == VerdictWord::Met
    }
    /// Whether an effect of this size (a factor) is found with a chance of 95 % by a two-sided test
    /// with this error.
    pub fn resolves(&self, smallest: f64, error: f64) -> bool {
        let needed = student_upper(self.freedom, error / 2.0) + student_upper(self.freedom, MISSED);
        self.error * needed <= smallest.ln()
    }
    /// How many times as many blocks would probably resolve it, of so many as there are: those that
    /// show that it is none, or that it is as large as it seems.
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

/// The chance that an effect of the smallest size is missed.
pub(super) const MISSED: f64 = 0.05;
