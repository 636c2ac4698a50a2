//! The generalised extreme value distribution of block maxima (Coles, "An Introduction to
//! Statistical Modeling of Extreme Values", 2001, chapter 3): G(z) = exp(−(1 + ξ(z − μ)/σ)^(−1/ξ)),
//! Gumbel's for ξ = 0.

use super::TailLevel;
use crate::optimize::{border, golden, simplex};
use statrs::function::gamma::gamma;

/// Half the 95 % point of χ² with one degree of freedom: a profile likelihood this far below its
/// maximum ends the interval.
pub(crate) const DROP: f64 = 3.841_458_820_694_124 / 2.0;
/// Shapes nearer to 0 are taken as 0, as the formulae lose precision there.
const ZERO: f64 = 1e-6;
/// The range of fitted shapes: below −1/2 maximum likelihood is not regular (Smith 1985), from 1 on
/// no mean exists.
pub const SHAPES: std::ops::Range<f64> = -0.5..1.0;

/// The parameters of the distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Gev {
    /// μ, in ns.
    pub location: f64,
    pub scale: f64,
    /// ξ: above 0 the tail is heavier than exponential; below 0 it is bounded.
    pub shape: f64,
}

impl Gev {
    pub(crate) fn cdf(&self, z: f64) -> f64 {
        let x = (z - self.location) / self.scale;
        if self.shape.abs() < ZERO {
            return (-(-x).exp()).exp();
        }
        let inside = 1.0 + self.shape * x;
        if inside <= 0.0 {
            return if self.shape > 0.0 { 0.0 } else { 1.0 };
        }
        (-inside.powf(-1.0 / self.shape)).exp()
    }

    /// The value that is exceeded with this probability.
    pub(crate) fn exceeded_with(&self, probability: f64) -> f64 {
        self.location + self.scale * reduced(self.shape, probability)
    }

    /// The negative log-likelihood (Coles, equations 3.7 and 3.9); infinite for impossible data.
    pub(crate) fn deviance(&self, data: &[f64]) -> f64 {
        if self.scale.is_nan() || self.scale <= 0.0 {
            return f64::INFINITY;
        }
        let one = |z: &f64| {
            let x = (z - self.location) / self.scale;
            if self.shape.abs() < ZERO {
                return x + (-x).exp();
            }
            let inside = 1.0 + self.shape * x;
            if inside <= 0.0 {
                return f64::INFINITY;
            }
            (1.0 + 1.0 / self.shape) * inside.ln() + inside.powf(-1.0 / self.shape)
        };
        data.len() as f64 * self.scale.ln() + data.iter().map(one).sum::<f64>()
    }

    /// Fits by L-moments (Hosking, Wallis, Wood, Technometrics 27, 1985). `None` for fewer than
    /// three values or all equal.
    pub(crate) fn by_l_moments(data: &[f64]) -> Option<Gev> {
        let [l1, l2, l3] = l_moments(data)?;
        if l2 <= 0.0 {
            return None;
        }
        let c = 2.0 / (3.0 + l3 / l2) - std::f64::consts::LN_2 / 3f64.ln();
        let k = (7.8590 * c + 2.9554 * c * c).clamp(-0.9, 0.45);
        let (scale, shift) = if k.abs() < ZERO {
            (l2 / std::f64::consts::LN_2, -0.577_215_664_901_532_9)
        } else {
            let g = gamma(1.0 + k);
            (l2 * k / ((1.0 - 2f64.powf(-k)) * g), (g - 1.0) / k)
        };
        Some(Gev { location: l1 + scale * shift, scale, shape: -k })
    }

    /// Fits by maximum likelihood, within [`SHAPES`]. `None` if no such fit exists.
    pub(crate) fn by_likelihood(data: &[f64]) -> Option<Gev> {
        let start = Gev::by_l_moments(data)?;
        // If the data do not allow the start, begins from Gumbel's. A second search from the end of
        // the first is finer.
        let first = start.improved(data).or_else(|| Gev { shape: 0.0, ..start }.improved(data))?;
        first.improved(data)
    }

    /// The local maximum of the likelihood near this one; `None` if the data are impossible under
    /// it.
    pub(crate) fn improved(&self, data: &[f64]) -> Option<Gev> {
        let of = |[location, scale, shape]: [f64; 3]| Gev { location, scale: scale.exp(), shape };
        let bounded = |at: [f64; 3]| {
            if SHAPES.contains(&at[2]) { of(at).deviance(data) } else { f64::INFINITY }
        };
        let steps = [0.3 * self.scale, 0.2, 0.1];
        simplex([self.location, self.scale.ln(), self.shape], steps, bounded).map(|(at, _)| of(at))
    }

    /// The level exceeded by a maximum with this probability, with the 95 % interval of its profile
    /// likelihood (Coles, section 3.3.3).
    pub fn level(&self, data: &[f64], probability: f64) -> TailLevel {
        let seen = self.exceeded_with(probability);
        let least = self.deviance(data);
        let profile = |level: f64| {
            let of = |[scale, shape]: [f64; 2]| {
                let scale = scale.exp();
                Gev { location: level - scale * reduced(shape, probability), scale, shape }
            };
            let bounded = |at: [f64; 2]| {
                if SHAPES.contains(&at[1]) { of(at).deviance(data) } else { f64::INFINITY }
            };
            let starts = [self.shape, self.shape + 0.3];
            let each = starts.map(|shape| {
                simplex([self.scale.ln(), shape], [0.2, 0.1], bounded)
                    .map_or(f64::INFINITY, |(_, d)| d)
            });
            each.into_iter().fold(f64::INFINITY, f64::min)
        };
        TailLevel::around(seen, self.scale, |level| profile(level) <= least + DROP)
    }
}

/// The standardised level: ((−ln(1 − p))^(−ξ) − 1)/ξ.
fn reduced(shape: f64, probability: f64) -> f64 {
    let y = -(-probability).ln_1p();
    if shape.abs() < ZERO { -y.ln() } else { (y.powf(-shape) - 1.0) / shape }
}

/// The first three L-moments (Hosking, J. R. Statist. Soc. B 52, 1990), from probability-weighted
/// moments.
pub(crate) fn l_moments(data: &[f64]) -> Option<[f64; 3]> {
    if data.len() < 3 {
        return None;
    }
    let mut sorted = data.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let mut b = [0.0; 3];
    for (k, value) in sorted.iter().enumerate() {
        let k = k as f64;
        b[0] += value / n;
        b[1] += value * k / (n * (n - 1.0));
        b[2] += value * k * (k - 1.0) / (n * (n - 1.0) * (n - 2.0));
    }
    Some([b[0], 2.0 * b[1] - b[0], 6.0 * b[2] - 6.0 * b[1] + b[0]])
}

impl TailLevel {
    /// Searches outwards from the observed level until `inside` is false; an upper end beyond a
    /// thousand times the scale counts as unbounded.
    pub(super) fn around(seen: f64, scale: f64, inside: impl Fn(f64) -> bool) -> TailLevel {
        let reach = |sign: f64| {
            let mut step = 0.1 * scale;
            while step < 1e4 * scale {
                if !inside(seen + sign * step) {
                    return Some(border(seen, seen + sign * step, &inside));
                }
                step *= 2.0;
            }
            None
        };
        TailLevel { level: seen, low: reach(-1.0), high: reach(1.0) }
    }
}

/// The minimum over one parameter, after a coarse search: profiles are smooth but may be flat.
pub(super) fn least_over(range: std::ops::Range<f64>, f: impl Fn(f64) -> f64) -> f64 {
    const STEPS: usize = 30;
    let at = |k: usize| range.start + (range.end - range.start) * (k as f64 + 0.5) / STEPS as f64;
    let values: Vec<f64> = (0..STEPS).map(|k| f(at(k))).collect();
    let best = (0..STEPS).min_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap_or(0);
    let width = (range.end - range.start) / STEPS as f64;
    let place = golden((at(best) - width).max(range.start), (at(best) + width).min(range.end), &f);
    f(place).min(values[best])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tail::testdata;

    fn near(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} is not {b}");
    }

    /// Annual maximal sea levels at Port Pirie: Coles 2001, section 3.4.1 (3.87, 0.198, −0.050;
    /// log-likelihood 4.34); R's evd 2.3-6.1, fgev.
    #[test]
    fn the_gev_fit_of_the_port_pirie_data_matches_published_values() {
        let data = testdata::port_pirie();
        let fit = Gev::by_likelihood(&data).unwrap();
        near(fit.location, 3.874_751, 2e-4);
        near(fit.scale, 0.198_049, 2e-4);
        near(fit.shape, -0.050_117, 1e-3);
        near(fit.deviance(&data), -4.339_058, 1e-5);
        // Return levels of 10 and 100 years: 4.30 and 4.69; profile intervals 4.21 to 4.45 (evd:
        // 4.2049 to 4.4451) and 4.50 to 5.27 (4.4907 to 5.2607).
        let ten = fit.level(&data, 0.1);
        near(ten.level, 4.296_256, 1e-3);
        near(ten.low.unwrap(), 4.204_9, 2e-3);
        near(ten.high.unwrap(), 4.445_1, 2e-3);
        let hundred = fit.level(&data, 0.01);
        near(hundred.level, 4.688_436, 2e-3);
        near(hundred.low.unwrap(), 4.490_7, 5e-3);
        near(hundred.high.unwrap(), 5.260_7, 5e-3);
    }

    /// Annual maximal sea levels at Venice: Coles 2001, table 3.1 (111.1, 17.2, −0.077;
    /// log-likelihood −222.7); R's evd 2.3-6.1.
    #[test]
    fn the_gev_fit_of_the_venice_data_matches_published_values() {
        let data = testdata::venice();
        let fit = Gev::by_likelihood(&data).unwrap();
        near(fit.location, 111.091_88, 0.02);
        near(fit.scale, 17.173_89, 0.02);
        near(fit.shape, -0.076_663, 1e-3);
        near(fit.deviance(&data), 222.714_53, 1e-4);
        // L-moments are another estimator of the same: near, not equal.
        let other = Gev::by_l_moments(&data).unwrap();
        near(other.location, fit.location, 1.5);
        near(other.scale, fit.scale, 1.5);
    }

    /// Hosking 1990: L-moments of an exponential distribution are 1, 1/2, 1/6 of its mean.
    #[test]
    fn l_moments_are_as_defined() {
        let data: Vec<f64> = (0..20_000).map(|k| -((k as f64 + 0.5) / 20_000.0).ln()).collect();
        let [l1, l2, l3] = l_moments(&data).unwrap();
        near(l1, 1.0, 1e-3);
        near(l2, 0.5, 1e-3);
        near(l3, 1.0 / 6.0, 1e-3);
        assert_eq!(l_moments(&[1.0, 2.0]), None);
    }
}
