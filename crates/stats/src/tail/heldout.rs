//! Predicts the second half of a run from its first half: a model that fails here is refused.

use super::gates::Gates;
use super::gpd::Gpd;
use super::independence::TestOutcome;
use super::peaks::Over;
use crate::Random;

/// The number of draws of fit and count.
const DRAWS: usize = 199;
/// The numbers of exceedances in the second half that the first half predicts for its levels.
const EXPECTED: [f64; 2] = [8.0, 2.0];

/// Counts bursts of the second half beyond levels of the first half's fit. The uncertainty of the
/// fit is included in the draws.
pub(crate) fn predict(gates: &mut Gates, over: &Over, samples: usize, random: &mut Random) {
    let half = over.places.partition_point(|place| *place < samples / 2);
    let (first, second) = over.excesses.split_at(half);
    let Some(fit) = Gpd::by_likelihood(first).filter(|_| first.len() >= 20) else {
        gates.require("predicted", "the first half predicts the second", false, || {
            "the first half of the run has too few bursts to predict the second".to_owned()
        });
        return;
    };
    for expected in EXPECTED {
        let level = fit.exceeded_with(expected / first.len() as f64);
        let seen = second.iter().filter(|y| **y > level).count();
        let outcome = TestOutcome {
            statistic: seen as f64,
            p: probability(seen, level, first.len(), &fit, random),
        };
        let what = format!(
            "the first half predicts how many bursts of the second half exceed a level that \
             {expected} should"
        );
        gates.test(&format!("foretold-{expected}"), &what, Some(outcome), || {
            format!(
                "the first half of the run predicts {expected} bursts above a level in the second \
                 half; there were {seen}"
            )
        });
    }
}

/// The two-sided probability of this many beyond the level: fits drawn from the fit, a Poisson
/// count drawn from each.
fn probability(seen: usize, level: f64, peaks: usize, fit: &Gpd, random: &mut Random) -> f64 {
    let (mut fewer, mut more) = (1usize, 1usize);
    for _ in 0..DRAWS {
        let drawn: Vec<f64> =
            (0..poisson(peaks as f64, random)).map(|_| fit.draw(random)).collect();
        let Some(again) = Gpd::by_likelihood(&drawn) else { continue };
        let count = poisson(drawn.len() as f64 * (1.0 - again.cdf(level)), random);
        fewer += usize::from(count <= seen);
        more += usize::from(count >= seen);
    }
    (2.0 * fewer.min(more) as f64 / (DRAWS + 1) as f64).min(1.0)
}

/// A Poisson count (Knuth, "The Art of Computer Programming" 2, 3.4.1), drawn in parts so that the
/// exponential does not underflow.
fn poisson(mean: f64, random: &mut Random) -> usize {
    let (mut left, mut count) = (mean.clamp(0.0, 1e6), 0);
    while left > 0.0 {
        let part = left.min(30.0);
        left -= part;
        let floor = (-part).exp();
        let mut product = random.unit();
        while product > floor {
            count += 1;
            product *= random.unit();
        }
    }
    count
}
