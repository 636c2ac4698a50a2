//! The latency that recording adds to a thread, from alternating measurements without and with it.

use punctual_bundle::calibration::PercentileShift;

/// Latencies measured in turn, in ns.
#[derive(Clone, Debug, Default)]
pub struct TurnLatencies {
    pub without: Vec<i64>,
    pub with: Vec<i64>,
}

/// The percentiles, with the number of samples that a block needs: one is beyond each.
const PERCENTILES: [(f64, usize); 3] = [(50.0, 2), (90.0, 10), (99.0, 100)];
/// The minimum confidence of an interval.
const CONFIDENCE: f64 = 0.95;

/// The shift of each percentile that every block supports; none with too few turns for an interval.
///
/// The shift is the median of the differences within turns, so that drift over turns affects
/// neither side. Its interval is between two of the ordered differences (sign test), which assumes
/// nothing of their distribution.
pub fn percentile_shifts(turns: &[TurnLatencies]) -> Vec<PercentileShift> {
    let Some(outside) = ranks_outside(turns.len()) else { return Vec::new() };
    let blocks = || turns.iter().flat_map(|turn| [&turn.without, &turn.with]);
    let fewest = blocks().map(Vec::len).min().unwrap_or(0);
    let shift_of_percentile = |(percentile, _): (f64, usize)| {
        let added = |turn: &TurnLatencies| {
            value_at_rank(&turn.with, percentile) - value_at_rank(&turn.without, percentile)
        };
        let mut added: Vec<i64> = turns.iter().map(added).collect();
        added.sort_unstable();
        let (low_ns, high_ns) = (added[outside], added[added.len() - 1 - outside]);
        let values_without: Vec<i64> =
            turns.iter().flat_map(|turn| &turn.without).copied().collect();
        PercentileShift {
            percentile,
            without_ns: value_at_rank(&values_without, percentile),
            added_ns: median_of_ordered(&added),
            low_ns,
            high_ns,
            resolved: low_ns > 0 || high_ns < 0,
        }
    };
    PERCENTILES
        .into_iter()
        .filter(|(_, needed)| fewest >= *needed)
        .map(shift_of_percentile)
        .collect()
}

/// The number of `n` ordered differences below the interval, and as many above: the largest at
/// which the interval contains the median with that confidence. `None` if even all of them do not
/// suffice.
pub(crate) fn ranks_outside(n: usize) -> Option<usize> {
    // For n coin tosses: the probability of exactly k, and of at most k.
    let (mut exactly, mut at_most, mut found) = (0.5f64.powi(n as i32), 0.0, None);
    for k in 0..n.div_ceil(2) {
        at_most += exactly;
        if 1.0 - 2.0 * at_most < CONFIDENCE {
            break;
        }
        found = Some(k);
        exactly *= (n - k) as f64 / (k + 1) as f64;
    }
    found
}

/// The nearest rank; 0 without values.
fn value_at_rank(values: &[i64], percentile: f64) -> i64 {
    let mut values = values.to_vec();
    let rank = (values.len() as f64 * percentile / 100.0).ceil() as usize;
    match values.len() {
        0 => 0,
        n => *values.select_nth_unstable(rank.clamp(1, n) - 1).1,
    }
}

/// The median of sorted values.
fn median_of_ordered(ordered: &[i64]) -> i64 {
    let [low, high] = [(ordered.len() - 1) / 2, ordered.len() / 2].map(|place| ordered[place]);
    low + (high - low) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn order_statistics_of_the_interval_reach_the_confidence() {
        // Binomial, by hand: 2/2^5 > 5 %; 2/2^6; 2(1+9)/2^9; 2(1+10)/2^10; 2(1+12+66)/2^12.
        let ranks = [0, 1, 5, 6, 9, 10, 12].map(ranks_outside);
        assert_eq!(ranks, [None, None, None, Some(0), Some(1), Some(1), Some(2)]);
    }

    /// Latencies around 20 µs, rising by 50 ns per turn; `added` while recorded.
    fn turns(random: &mut Random, added: i64) -> Vec<TurnLatencies> {
        let mut block = |turn: i64, added: i64| -> Vec<i64> {
            (0..200).map(|_| 20_000 + turn * 50 + added + random.next_below(4_000) as i64).collect()
        };
        (0..10).map(|k| TurnLatencies { without: block(k, 0), with: block(k, added) }).collect()
    }

    #[test]
    fn an_added_delay_is_measured_despite_drift() {
        let mut random = Random::from_seed(1);
        let found = percentile_shifts(&turns(&mut random, 3_000));
        assert_eq!(found.iter().map(|of| of.percentile).collect::<Vec<_>>(), [50.0, 90.0, 99.0]);
        for of in &found {
            assert!(of.resolved && (of.added_ns - 3_000).abs() < 500, "{of:?}");
            assert!(of.low_ns <= of.added_ns && of.added_ns <= of.high_ns, "{of:?}");
        }
        assert!((found[0].without_ns - 22_225).abs() < 500, "{:?}", found[0]);
    }

    #[test]
    fn an_unchanged_distribution_rarely_shows_a_shift() {
        let mut random = Random::from_seed(2);
        let claimed =
            (0..400).filter(|_| percentile_shifts(&turns(&mut random, 0))[0].resolved).count();
        // 2.1 % of them are expected: 8.6 of 400.
        assert!(claimed <= 20, "{claimed}");
        let missed = (0..400).filter(|_| {
            let of = &percentile_shifts(&turns(&mut random, 700))[0];
            of.low_ns > 700 || of.high_ns < 700
        });
        let missed = missed.count();
        assert!((1..=20).contains(&missed), "{missed}");
    }

    #[test]
    fn too_few_samples_or_turns_have_no_figure() {
        let block = |n: i64| (0..n).collect::<Vec<i64>>();
        let turn = |n| TurnLatencies { without: block(200), with: block(n) };
        let percentiles = |turns: &[TurnLatencies]| percentile_shifts(turns).len();
        assert_eq!(percentiles(&vec![turn(100); 10]), 3);
        assert_eq!(percentiles(&vec![turn(99); 10]), 2);
        assert_eq!(percentiles(&vec![turn(0); 10]), 0);
        assert_eq!(percentiles(&vec![turn(200); 5]), 0);
        assert_eq!(percentiles(&[]), 0);
    }
}
