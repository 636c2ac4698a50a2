//! The effect of one side against another: an estimate with its standard error, from pairs, from
//! unpaired values or from groups; its interval and its probability by chance, by
//! Student's t; and whether it is within a margin.
//!
//! Two sides are equivalent by two one-sided tests against a margin stated before the measurement
//! (Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987). At 5 %, they are if the 90 % interval of the
//! difference is within the margin. An insignificant difference is no proof of equivalence.

use crate::dispersion::{mean, mean_and_variance};
use crate::probability::{normal_upper, student_two_sided, student_upper};
use punctual_bundle::summary::VerdictWord;

/// The error of each of the two tests.
const ERROR: f64 = 0.05;
/// The probability that the stated number of values shows equivalence, if the sides are equal.
const POWER: f64 = 0.8;
/// The largest number of values that is worth proposing.
const MAX_PROPOSED_VALUES: f64 = 1e6;

/// The other side minus the first: a difference, or the logarithm of a ratio.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EffectEstimate {
    /// The estimate.
    pub effect: f64,
    /// Its standard error.
    pub error: f64,
    /// The degrees of freedom of the error.
    pub freedom: f64,
    /// The variance of a pair's difference, or of both sides' values together.
    pub variance: f64,
    /// The number of pairs, or of values of each side.
    pub count: usize,
}

/// The outcome of a margin.
#[derive(Clone, PartialEq, Debug)]
pub struct Tested {
    /// The 90 % interval of the difference in ns.
    pub interval: [f64; 2],
    /// The allowed difference in ns.
    pub margin: f64,
    /// Met: equivalent. Not met: the whole interval is outside of the margin.
    pub verdict: VerdictWord,
    /// The number of pairs, or of values of each side.
    pub count: usize,
    /// The number that would show equivalence with a probability of 80 %, if the sides are equal
    /// and vary as these do: these are the pilot.
    pub needed: Option<u64>,
}

impl EffectEstimate {
    /// From the differences of pairs. `None` for fewer than two.
    pub fn of_pairs(differences: &[f64]) -> Option<EffectEstimate> {
        let (effect, variance) = mean_and_variance(differences)?;
        let (n, count) = (differences.len() as f64, differences.len());
        Some(EffectEstimate {
            effect,
            error: (variance / n).sqrt(),
            freedom: n - 1.0,
            variance,
            count,
        })
    }

    /// From unpaired values of each side: blocks of time, runs. `inflation` is the factor by which
    /// correlated neighbours increase the variance of each mean. `None` for fewer than two on a
    /// side.
    pub(crate) fn of_sides(sides: [&[f64]; 2], inflation: [f64; 2]) -> Option<EffectEstimate> {
        let [(a, of_a), (b, of_b)] = [mean_and_variance(sides[0])?, mean_and_variance(sides[1])?];
        let variances = [of_a * inflation[0], of_b * inflation[1]];
        let (square, freedom) =
            welch_variance(&[0, 1].map(|k| (variances[k], sides[k].len() as f64)));
        Some(EffectEstimate {
            effect: b - a,
            error: square.sqrt(),
            freedom,
            variance: variances[0] + variances[1],
            count: sides[0].len().min(sides[1].len()),
        })
    }

    /// From unpaired values with one variance for both sides, one of which may have a single value.
    pub(crate) fn of_alike_sides(sides: [&[f64]; 2]) -> Option<EffectEstimate> {
        let (variance, freedom) = pooled_variance(sides)?;
        let [a, b] = sides.map(|side| side.len() as f64);
        Some(EffectEstimate {
            effect: mean(sides[1]) - mean(sides[0]),
            error: (variance * (1.0 / a + 1.0 / b)).sqrt(),
            freedom,
            variance: 2.0 * variance,
            count: sides[0].len().min(sides[1].len()),
        })
    }

    /// The mean of these very groups' means, each with its own spread. `None` without two
    /// differences in each.
    pub fn of_groups(groups: &[Vec<f64>]) -> Option<EffectEstimate> {
        let group_moments: Vec<(f64, f64)> =
            groups.iter().map(|group| mean_and_variance(group)).collect::<Option<_>>()?;
        let means: Vec<f64> = group_moments.iter().map(|(mean, _)| *mean).collect();
        let of_each =
            group_moments.iter().zip(groups).map(|((_, v), group)| (*v, group.len() as f64));
        let (square, freedom) = welch_variance(&of_each.collect::<Vec<_>>());
        let error = square.sqrt() / groups.len() as f64;
        Some(EffectEstimate::of_model(mean(&means), error, freedom, groups.len()))
    }

    /// From a model of `count` values.
    fn of_model(effect: f64, error: f64, freedom: f64, count: usize) -> EffectEstimate {
        EffectEstimate { effect, error, freedom, variance: error * error * count as f64, count }
    }

    /// The interval that misses the effect with this probability.
    pub(crate) fn confidence_interval(&self, error: f64) -> [f64; 2] {
        let is_exact = self.error <= 0.0;
        let reach =
            if is_exact { 0.0 } else { student_upper(self.freedom, error / 2.0) * self.error };
        [self.effect - reach, self.effect + reach]
    }

    /// The probability of an effect at least this large, up or down, by chance.
    pub(crate) fn p_value(&self) -> f64 {
        if self.error > 0.0 {
            student_two_sided(self.freedom, self.effect / self.error)
        } else {
            f64::from(self.effect == 0.0)
        }
    }

    /// Whether the sides are equivalent by this margin.
    pub(crate) fn test_equivalence(&self, margin: f64) -> Tested {
        let interval @ [low, high] = self.confidence_interval(2.0 * ERROR);
        let verdict = if -margin < low && high < margin {
            VerdictWord::Met
        } else if low > margin || high < -margin {
            VerdictWord::NotMet
        } else {
            VerdictWord::Undecided
        };
        // Both tests must hold, so each has half of the probability of failing.
        let z = normal_upper(ERROR) + normal_upper((1.0 - POWER) / 2.0);
        let needed = (z * z * self.variance / (margin * margin)).ceil() + 1.0;
        let needed =
            (margin > 0.0 && needed <= MAX_PROPOSED_VALUES).then_some(needed.max(2.0) as u64);
        Tested { interval, margin, verdict, count: self.count, needed }
    }
}

/// The variance of a sum of means, each from values of this variance and number, with its degrees
/// of freedom (Welch; Satterthwaite, Biometrics Bulletin 2, 1946).
fn welch_variance(means: &[(f64, f64)]) -> (f64, f64) {
    let of_mean = |(variance, count): &(f64, f64)| variance / count;
    let square: f64 = means.iter().map(of_mean).sum();
    let lost: f64 = means.iter().map(|of| of_mean(of).powi(2) / (of.1 - 1.0)).sum();
    (square, if lost > 0.0 { square.powi(2) / lost } else { f64::INFINITY })
}

/// One variance for both sides, as in Student's test, with its degrees of freedom; `None` if
/// neither side has two values.
pub(crate) fn pooled_variance(sides: [&[f64]; 2]) -> Option<(f64, f64)> {
    let freedom: f64 = sides.iter().map(|side| side.len() as f64 - 1.0).sum();
    let squares = sides.iter().filter_map(|side| {
        mean_and_variance(side).map(|(_, variance)| variance * (side.len() as f64 - 1.0))
    });
    (freedom >= 1.0).then(|| (squares.sum::<f64>() / freedom, freedom))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn a_90_percent_interval_within_the_margin_is_equivalence() {
        // Mean 1, standard deviation 1, eight pairs: t of 7 degrees at 5 % is 1.895.
        let differences = [0.0, 2.0, 0.0, 2.0, 0.0, 2.0, 0.0, 2.0];
        let tested = EffectEstimate::of_pairs(&differences).unwrap().test_equivalence(3.0);
        let reach = 1.894_579 * (8.0f64 / 7.0 / 8.0).sqrt();
        assert!((tested.interval[0] - (1.0 - reach)).abs() < 1e-4, "{tested:?}");
        assert!((tested.interval[1] - (1.0 + reach)).abs() < 1e-4, "{tested:?}");
        assert_eq!((tested.verdict, tested.count), (VerdictWord::Met, 8));
        let verdict = |margin| {
            EffectEstimate::of_pairs(&differences).unwrap().test_equivalence(margin).verdict
        };
        assert_eq!(verdict(1.5), VerdictWord::Undecided);
        assert_eq!(verdict(0.1), VerdictWord::NotMet, "all of the interval is outside");
        // Only its spread determines the needed number: z is 1.645 + 1.282.
        assert_eq!(tested.needed, Some(3));
        assert_eq!(
            EffectEstimate::of_pairs(&differences).unwrap().test_equivalence(0.1).needed,
            Some(980)
        );
        assert_eq!((EffectEstimate::of_pairs(&[1.0]), EffectEstimate::of_pairs(&[])), (None, None));
    }

    #[test]
    fn sides_that_differ_by_the_margin_are_called_equivalent_in_a_twentieth_at_most() {
        let mut random = Random::from_seed(7);
        let mut met = [0; 2];
        for _ in 0..2_000 {
            let mut side = |level: f64| -> Vec<f64> {
                (0..12)
                    .map(|_| level + (0..6).map(|_| random.next_unit() - 0.5).sum::<f64>())
                    .collect()
            };
            let (a, same, other) = (side(0.0), side(0.0), side(1.0));
            for (k, b) in [same, other].iter().enumerate() {
                let tested =
                    EffectEstimate::of_sides([&a, b], [1.0; 2]).unwrap().test_equivalence(1.0);
                met[k] += usize::from(tested.verdict == VerdictWord::Met);
            }
        }
        assert!(met[1] < 130, "5 % of 2,000 are 100: {met:?}");
        assert!(met[0] > 1_300, "and equal ones mostly are: {met:?}");
    }

    #[test]
    fn the_computed_number_of_pairs_reaches_a_power_of_80_percent() {
        let mut random = Random::from_seed(9);
        let mut pairs = |n: u64| -> Vec<f64> {
            (0..n).map(|_| (0..12).map(|_| random.next_unit() - 0.5).sum::<f64>()).collect()
        };
        let needed =
            EffectEstimate::of_pairs(&pairs(400)).unwrap().test_equivalence(0.5).needed.unwrap();
        let met = (0..1_000)
            .filter(|_| {
                EffectEstimate::of_pairs(&pairs(needed)).unwrap().test_equivalence(0.5).verdict
                    == VerdictWord::Met
            })
            .count();
        assert!((700..900).contains(&met), "{needed} pairs: {met} of 1,000");
    }
}
