//! Whether two sides are equivalent: two one-sided tests against a margin stated before the
//! measurement (Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987). At 5 %, they are equivalent if
//! the 90 % interval of the difference is within the margin. An insignificant difference is no
//! proof of equivalence.

use crate::dispersion::moments;
use crate::probability::{normal_upper, student_upper};
use punctual_bundle::summary::VerdictWord;

/// The error of each of the two tests.
const ERROR: f64 = 0.05;
/// The probability that the stated number of values shows equivalence, if the sides are equal.
const POWER: f64 = 0.8;
/// The largest number of values that is worth proposing.
const MOST: f64 = 1e6;

/// The outcome of a margin.
#[derive(Clone, PartialEq, Debug)]
pub struct Tested {
    /// The mean difference in ns: the other side minus the first.
    pub difference: f64,
    /// Its 90 % interval.
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

/// From pairs: the differences, each the other side minus the first. `None` for fewer than two.
pub fn of_pairs(differences: &[f64], margin: f64) -> Option<Tested> {
    let (mean, variance) = moments(differences)?;
    let n = differences.len() as f64;
    Some(judge(mean, (variance / n).sqrt(), n - 1.0, variance, margin, differences.len()))
}

/// From unpaired values of each side: blocks of time, runs. `inflation` is the factor by which
/// correlated neighbours increase the variance of each mean. `None` for fewer than two on a side.
pub fn of_sides(sides: [&[f64]; 2], inflation: [f64; 2], margin: f64) -> Option<Tested> {
    let [(a, of_a), (b, of_b)] = [moments(sides[0])?, moments(sides[1])?];
    let variances = [of_a * inflation[0], of_b * inflation[1]];
    let counts = sides.map(|side| side.len() as f64);
    let errors = [0, 1].map(|k| variances[k] / counts[k]);
    let square = errors[0] + errors[1];
    // Welch's and Satterthwaite's degrees of freedom.
    let lost: f64 = (0..2).map(|k| errors[k].powi(2) / (counts[k] - 1.0)).sum();
    let freedom = if lost > 0.0 { square.powi(2) / lost } else { f64::INFINITY };
    let count = sides[0].len().min(sides[1].len());
    Some(judge(b - a, square.sqrt(), freedom, variances[0] + variances[1], margin, count))
}

/// From an estimate with its standard error, based on `count` values.
pub fn of_estimate(difference: f64, error: f64, freedom: f64, count: usize, margin: f64) -> Tested {
    judge(difference, error, freedom, error * error * count as f64, margin, count)
}

fn judge(
    difference: f64,
    error: f64,
    freedom: f64,
    variance: f64,
    margin: f64,
    count: usize,
) -> Tested {
    let reach = if error > 0.0 { student_upper(freedom, ERROR) * error } else { 0.0 };
    let [low, high] = [difference - reach, difference + reach];
    let verdict = if -margin < low && high < margin {
        VerdictWord::Met
    } else if low > margin || high < -margin {
        VerdictWord::NotMet
    } else {
        VerdictWord::Undecided
    };
    // Both tests must hold, so each has half of the probability of failing.
    let z = normal_upper(ERROR) + normal_upper((1.0 - POWER) / 2.0);
    let needed = (z * z * variance / (margin * margin)).ceil() + 1.0;
    let needed = (margin > 0.0 && needed <= MOST).then_some(needed.max(2.0) as u64);
    Tested { difference, interval: [low, high], margin, verdict, count, needed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn a_90_percent_interval_within_the_margin_is_equivalence() {
        // Mean 1, standard deviation 1, eight pairs: t of 7 degrees at 5 % is 1.895.
        let differences = [0.0, 2.0, 0.0, 2.0, 0.0, 2.0, 0.0, 2.0];
        let tested = of_pairs(&differences, 3.0).unwrap();
        let reach = 1.894_579 * (8.0f64 / 7.0 / 8.0).sqrt();
        assert!((tested.interval[0] - (1.0 - reach)).abs() < 1e-4, "{tested:?}");
        assert!((tested.interval[1] - (1.0 + reach)).abs() < 1e-4, "{tested:?}");
        assert_eq!((tested.verdict, tested.count), (VerdictWord::Met, 8));
        let verdict = |margin| of_pairs(&differences, margin).unwrap().verdict;
        assert_eq!(verdict(1.5), VerdictWord::Undecided);
        assert_eq!(verdict(0.1), VerdictWord::NotMet, "all of the interval is outside");
        // Only its spread determines the needed number: z is 1.645 + 1.282.
        assert_eq!(tested.needed, Some(3));
        assert_eq!(of_pairs(&differences, 0.1).unwrap().needed, Some(980));
        assert_eq!((of_pairs(&[1.0], 3.0), of_pairs(&[], 3.0)), (None, None));
    }

    #[test]
    fn sides_that_differ_by_the_margin_are_called_equivalent_in_a_twentieth_at_most() {
        let mut random = Random::seeded(7);
        let mut met = [0; 2];
        for _ in 0..2_000 {
            let mut side = |level: f64| -> Vec<f64> {
                (0..12).map(|_| level + (0..6).map(|_| random.unit() - 0.5).sum::<f64>()).collect()
            };
            let (a, same, other) = (side(0.0), side(0.0), side(1.0));
            for (k, b) in [same, other].iter().enumerate() {
                let tested = of_sides([&a, b], [1.0; 2], 1.0).unwrap();
                met[k] += usize::from(tested.verdict == VerdictWord::Met);
            }
        }
        assert!(met[1] < 130, "5 % of 2,000 are 100: {met:?}");
        assert!(met[0] > 1_300, "and equal ones mostly are: {met:?}");
    }

    #[test]
    fn the_computed_number_of_pairs_reaches_a_power_of_80_percent() {
        let mut random = Random::seeded(9);
        let mut pairs = |n: u64| -> Vec<f64> {
            (0..n).map(|_| (0..12).map(|_| random.unit() - 0.5).sum::<f64>()).collect()
        };
        let needed = of_pairs(&pairs(400), 0.5).unwrap().needed.unwrap();
        let met = (0..1_000)
            .filter(|_| of_pairs(&pairs(needed), 0.5).unwrap().verdict == VerdictWord::Met)
            .count();
        assert!((700..900).contains(&met), "{needed} pairs: {met} of 1,000");
    }
}
