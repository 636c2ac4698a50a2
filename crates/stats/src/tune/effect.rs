//! The effect of a setting on the logarithm of the figure, so that effects are factors. The figure
//! of a block is one value, whatever the dependence within it.

use crate::effect::EffectEstimate;
use crate::probability::{normal_upper, student_upper};
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::tune::{EffectFactor, TuneAnswer};

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

impl EffectEstimate {
    /// As a factor with its 95 % interval. `p_adjusted` is for all tests together.
    pub(crate) fn to_factor(self, p_adjusted: f64) -> EffectFactor {
        EffectFactor {
            ratio: self.effect.exp(),
            interval: self.confidence_interval(0.05).map(f64::exp),
            p: self.p_value(),
            p_adjusted,
            pairs: self.count as u64,
        }
    }
    /// Whether it is shown to be within the margin, a factor.
    pub fn is_none(&self, margin: f64) -> bool {
        self.test_equivalence(margin.ln()).verdict == VerdictWord::Met
    }
    /// Whether a two-sided test with this error finds an effect of this size (a factor) with a
    /// probability of 95 %.
    pub(crate) fn can_resolve(&self, smallest: f64, error: f64) -> bool {
        let needed = student_upper(self.freedom, error / 2.0) + student_upper(self.freedom, MISSED);
        self.error * needed <= smallest.ln()
    }
    /// The factor of blocks that would probably resolve it: to show that there is no effect, or
    /// that it is as large as it seems.
    pub(crate) fn factor_of_blocks(&self, margin: f64, error: f64) -> Option<f64> {
        let seems_none = self.effect.abs() < margin.ln();
        let needed = if seems_none {
            normal_upper(0.05) + normal_upper(0.1)
        } else {
            normal_upper(error / 2.0) + normal_upper(0.2)
        };
        let effect_size = if seems_none { margin.ln() } else { self.effect.abs() };
        let times = (self.error * needed / effect_size).powi(2);
        (times.is_finite() && times > 1.0).then_some(times)
    }
}

/// The probability of missing an effect of the smallest size.
pub(super) const MISSED: f64 = 0.05;
