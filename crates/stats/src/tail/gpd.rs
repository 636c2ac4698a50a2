//! The generalised Pareto distribution of excesses over a threshold (Coles 2001, chapter 4): H(y) =
//! 1 − (1 + ξy/σ)^(−1/ξ), exponential for ξ = 0.

use super::TailLevel;
#[cfg(test)]
use super::gev::l_moments;
use super::gev::{DROP, SHAPES, least_over};
use crate::Random;
use crate::optimize::{golden, simplex};

/// Shapes nearer to 0 are taken as 0.
const ZERO: f64 = 1e-6;

/// The parameters of the distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Gpd {
    pub scale: f64,
    /// ξ: above 0 the tail is heavier than exponential; below 0 it is bounded.
    pub shape: f64,
}

impl Gpd {
    /// The distribution function of an excess.
    pub(crate) fn cdf(&self, y: f64) -> f64 {
        1.0 - (-self.reduced(y)).exp()
    }

    /// ln(1 + ξy/σ)/ξ: exponential with mean 1 if the fit is right; infinite beyond the end of the
    /// distribution.
    pub fn reduced(&self, y: f64) -> f64 {
        let y = y.max(0.0) / self.scale;
        if self.shape.abs() < ZERO {
            return y;
        }
        let inside = 1.0 + self.shape * y;
        if inside <= 0.0 { f64::INFINITY } else { inside.ln() / self.shape }
    }

    /// The excess that is exceeded with this probability.
    pub(crate) fn exceeded_with(&self, probability: f64) -> f64 {
        if self.shape.abs() < ZERO {
            -self.scale * probability.ln()
        } else {
            self.scale / self.shape * (probability.powf(-self.shape) - 1.0)
        }
    }

    /// An excess drawn from it.
    pub fn draw(&self, random: &mut Random) -> f64 {
        self.exceeded_with(random.unit())
    }

    /// The negative log-likelihood (Coles, equations 4.10 and 4.11).
    pub(crate) fn deviance(&self, excesses: &[f64]) -> f64 {
        if self.scale.is_nan() || self.scale <= 0.0 {
            return f64::INFINITY;
        }
        let sum: f64 = excesses.iter().map(|y| self.reduced(*y)).sum();
        // (1 + 1/ξ)·Σ ln(1 + ξy/σ) = (1 + ξ)·Σ reduced
        excesses.len() as f64 * self.scale.ln() + (1.0 + self.shape) * sum
    }

    /// Fits by L-moments (Hosking and Wallis, Technometrics 29, 1987).
    #[cfg(test)]
    pub(crate) fn by_l_moments(excesses: &[f64]) -> Option<Gpd> {
        let [l1, l2, _] = l_moments(excesses)?;
        let k = (l1 / l2 - 2.0).clamp(-0.9, 0.45);
        (l2 > 0.0 && l1 > 0.0).then_some(Gpd { scale: (1.0 + k) * l1, shape: -k })
    }

    /// Fits by maximum likelihood within [`SHAPES`], over one parameter: θ = ξ/σ determines ξ =
    /// mean ln(1 + θy) (Grimshaw, Technometrics 35, 1993).
    pub(crate) fn by_likelihood(excesses: &[f64]) -> Option<Gpd> {
        let max = excesses.iter().copied().fold(0.0, f64::max);
        let mean = excesses.iter().sum::<f64>() / excesses.len().max(1) as f64;
        if excesses.len() < 3 || mean <= 0.0 || max <= 0.0 {
            return None;
        }
        let of = |theta: f64| {
            if (theta * mean).abs() < 1e-8 {
                return Gpd { scale: mean, shape: 0.0 };
            }
            let shape =
                excesses.iter().map(|y| (theta * y).ln_1p()).sum::<f64>() / excesses.len() as f64;
            Gpd { scale: shape / theta, shape }
        };
        let deviance = |theta: f64| {
            let fit = of(theta);
            // (1 + 1/ξ)·Σ ln(1 + θy) is n·(1 + ξ) there.
            let deviance = excesses.len() as f64 * (fit.scale.ln() + 1.0 + fit.shape);
            if SHAPES.contains(&fit.shape) { deviance } else { f64::INFINITY }
        };
        // From the end of the distribution at the largest excess to very heavy tails, denser around
        // the exponential distribution.
        const STEPS: i32 = 16;
        let lower =
            (0..STEPS).map(|k| -(0.999_999 / max) * f64::from(STEPS - k) / f64::from(STEPS));
        let upper =
            (0..STEPS).map(|k| 1e-3 / mean * (1e6f64).powf(f64::from(k) / f64::from(STEPS)));
        let grid: Vec<f64> = lower.chain([0.0]).chain(upper).collect();
        let values: Vec<f64> = grid.iter().map(|theta| deviance(*theta)).collect();
        let best = (0..grid.len()).min_by(|a, b| values[*a].total_cmp(&values[*b]))?;
        let around = (grid[best.saturating_sub(1)], grid[(best + 1).min(grid.len() - 1)]);
        let finer = golden(around.0, around.1, deviance);
        let theta = if deviance(finer) < values[best] { finer } else { grid[best] };
        deviance(theta).is_finite().then(|| of(theta))
    }

    /// Fits by maximum likelihood from some excesses and the number of those longer than `bound`,
    /// without an upper end: shapes from 0 on.
    pub(crate) fn by_censored_likelihood(
        excesses: &[f64],
        bound: f64,
        longer: usize,
    ) -> Option<Gpd> {
        let mean = excesses.iter().sum::<f64>() / excesses.len().max(1) as f64;
        if excesses.len() < 3 || mean <= 0.0 || mean.is_nan() {
            return None;
        }
        let of = |[scale, shape]: [f64; 2]| Gpd { scale: scale.exp(), shape };
        let deviance = |at: [f64; 2]| {
            let fit = of(at);
            let inside = (0.0..SHAPES.end).contains(&fit.shape);
            if inside {
                fit.deviance(excesses) + longer as f64 * fit.reduced(bound)
            } else {
                f64::INFINITY
            }
        };
        simplex([mean.ln(), 0.05], [0.3, 0.1], deviance).map(|(at, _)| of(at))
    }

    /// The excess exceeded by one peak in `peaks`, with the 95 % interval of its profile likelihood
    /// (Coles, section 4.3.3).
    pub fn level(&self, excesses: &[f64], peaks: f64) -> TailLevel {
        let probability = 1.0 / peaks.max(1.0 + 1e-9);
        let seen = self.exceeded_with(probability);
        let least = self.deviance(excesses);
        let profile = |level: f64| {
            let deviance = |shape: f64| {
                let unit = Gpd { scale: 1.0, shape }.exceeded_with(probability);
                Gpd { scale: level / unit, shape }.deviance(excesses)
            };
            least_over(SHAPES, deviance)
        };
        TailLevel::around(seen, self.scale, |level| level > 0.0 && profile(level) <= least + DROP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tail::testdata;

    fn near(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} is not {b}");
    }

    /// Insurance losses above 100,000 (`lossalae` of R's evd 2.3-6.1), in thousands: evd's dgpd
    /// minimised by R's optim to its last digits (fpot itself stops a little before, at 129.08,
    /// 0.2432 and 799.1286).
    #[test]
    fn losses_are_fitted_as_r_does() {
        let excesses: Vec<f64> = testdata::losses().iter().map(|loss| loss / 1e3 - 100.0).collect();
        let fit = Gpd::by_likelihood(&excesses).unwrap();
        near(fit.scale, 128.215_394, 1e-3);
        near(fit.shape, 0.246_497_19, 1e-5);
        near(fit.deviance(&excesses), 799.127_347, 1e-6);
        let other = Gpd::by_l_moments(&excesses).unwrap();
        near(other.shape, fit.shape, 0.15);
    }

    #[test]
    fn parameters_of_drawn_excesses_are_recovered() {
        let mut random = Random::seeded(21);
        for shape in [-0.3, 0.0, 0.4] {
            let truth = Gpd { scale: 5_000.0, shape };
            let excesses: Vec<f64> = (0..4_000).map(|_| truth.draw(&mut random)).collect();
            let fit = Gpd::by_likelihood(&excesses).unwrap();
            near(fit.shape, shape, 0.07);
            near(fit.scale / 5_000.0, 1.0, 0.08);
            let level = fit.level(&excesses, 100_000.0);
            let true_level = truth.exceeded_with(1e-5);
            assert!(
                level.low.unwrap() < true_level && true_level < level.high.unwrap(),
                "{level:?} {true_level}"
            );
        }
        assert_eq!(Gpd::by_likelihood(&[]), None);
        assert_eq!(Gpd::by_likelihood(&[0.0; 9]), None);
    }
}
