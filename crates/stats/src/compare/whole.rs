//! Two tests of whether both sides are the same: one of the whole distribution, one of its tail.
//!
//! Blocks of time, or runs if several exist, are permuted between the two sides: if the sides are
//! alike, no permutation is special (Lehmann and Romano, "Testing Statistical Hypotheses", chapter
//! 15). Within a block samples may depend on each other in any way. With only histograms, Smirnov's
//! test and a test of shares assume independent samples, which is reported.

use super::ladder::Ladder;
use super::run::SideRuns;
use crate::Random;
use crate::dispersion::{block_length, mean_and_variance, variance_inflation};
use crate::percentiles::percentile_rank;
use crate::probability::{kolmogorov_beyond, normal_cdf};
use punctual_bundle::comparison::DistributionTest;

/// The number of points at which the distribution functions are compared.
const POINTS: u64 = 128;
/// Percentiles of the tail, of both sides together.
const TAIL: [f64; 3] = [99.0, 99.9, 99.99];
/// The minimum number of samples of both sides beyond a compared share of the tail.
const BEYOND: f64 = 20.0;
const DEALS: usize = 9_999;
/// Permutation ends early after this many as extreme as the observed one (Besag and Clifford,
/// "Sequential Monte Carlo p-values", 1991).
const ENOUGH: usize = 25;
/// A fixed seed: the same bundles give the same figures.
const SEED: u64 = 0x70756e637475616c;

/// The values at which the distribution functions are compared: first those of the whole, then
/// `tail` of the tail.
struct Grid {
    values: Vec<i64>,
    tail: usize,
}

impl Grid {
    fn from_ladder(pooled: &Ladder) -> Grid {
        let n = pooled.count();
        let value = |rank: u64| pooled.at_rank(rank).map(|(_, high)| high);
        let mut values: Vec<i64> =
            (1..POINTS).filter_map(|k| value((n / POINTS * k).max(1))).collect();
        values.dedup();
        let tail = TAIL.iter().filter_map(|p| value(percentile_rank(*p, n)));
        let mut tail: Vec<i64> =
            tail.filter(|v| pooled.share_above(*v) * n as f64 >= BEYOND).collect();
        tail.dedup();
        values.extend(&tail);
        Grid { values, tail: tail.len() }
    }
    fn body_len(&self) -> usize {
        self.values.len() - self.tail
    }
}

/// The tests that the data allow; empty if neither side can be divided and both are too small, or
/// if no test could reach this error rate.
pub(crate) fn test_distribution(a: &SideRuns, b: &SideRuns, error: f64) -> Vec<DistributionTest> {
    if a.count() == 0 || b.count() == 0 {
        return Vec::new();
    }
    let pooled = Ladder::merge(&[&a.ladder, &b.ladder]);
    let grid = Grid::from_ladder(&pooled);
    if a.runs.len() + b.runs.len() > 2 {
        let units =
            |side: &SideRuns| side.runs.iter().map(|run| shares_of(&run.ladder, &grid)).collect();
        return permute_units(
            "run permutation",
            units(a),
            units(b),
            grid.body_len(),
            [1.0; 2],
            error,
        );
    }
    let samples = [a, b].map(|side| side.runs.first().map_or(&[][..], |run| &run.samples));
    match block_length(samples[0].len().min(samples[1].len())) {
        Some(length) => {
            let units = |samples: &[i64]| {
                samples.chunks_exact(length).map(|b| shares_in(b, &grid)).collect()
            };
            let (a, b): (Vec<_>, Vec<_>) = (units(samples[0]), units(samples[1]));
            // Blocks that resemble their neighbours: the observation counts for less.
            let at = |point: usize| {
                let side_inflation = |units: &[Vec<f64>]| {
                    variance_inflation(&units.iter().map(|unit| unit[point]).collect::<Vec<f64>>())
                };
                side_inflation(&a).max(side_inflation(&b)).sqrt()
            };
            let discount =
                [at(grid.body_len() / 2), at(grid.body_len().min(grid.values.len() - 1))];
            permute_units("block permutation", a, b, grid.body_len(), discount, error)
        }
        None => by_histogram(a, b, &grid),
    }
}

/// The share of samples at or below each value of the grid.
fn shares_of(ladder: &Ladder, grid: &Grid) -> Vec<f64> {
    let n = ladder.count().max(1) as f64;
    grid.values.iter().map(|value| ladder.at_or_below(*value) as f64 / n).collect()
}

/// The same for a few samples.
fn shares_in(samples: &[i64], grid: &Grid) -> Vec<f64> {
    // The tail's values are among the body's last: both parts are sorted separately.
    let (body, tail) = grid.values.split_at(grid.body_len());
    let count = |values: &[i64]| {
        let mut cells = vec![0u64; values.len() + 1];
        samples.iter().for_each(|s| cells[values.partition_point(|value| value < s)] += 1);
        let mut sum = 0;
        cells.pop();
        cells
            .into_iter()
            .map(|n| {
                sum += n;
                sum as f64 / samples.len() as f64
            })
            .collect::<Vec<f64>>()
    };
    [count(body), count(tail)].concat()
}

fn permute_units(
    method: &str,
    a: Vec<Vec<f64>>,
    b: Vec<Vec<f64>>,
    body: usize,
    discount: [f64; 2],
    error: f64,
) -> Vec<DistributionTest> {
    let of_a = a.len();
    let units: Vec<Vec<f64>> = a.into_iter().chain(b).collect();
    if of_a == 0 || of_a == units.len() {
        return Vec::new();
    }
    let points = units[0].len();
    let deviations: Vec<f64> = (0..points)
        .map(|k| {
            let column: Vec<f64> = units.iter().map(|unit| unit[k]).collect();
            mean_and_variance(&column).map_or(0.0, |(_, variance)| variance.sqrt())
        })
        .collect();
    let totals: Vec<f64> = (0..points).map(|k| units.iter().map(|unit| unit[k]).sum()).collect();
    let scale = (1.0 / of_a as f64 + 1.0 / (units.len() - of_a) as f64).sqrt();
    let statistics = |chosen: &[usize]| {
        let mut largest_distances = [0f64; 2];
        for k in 0..points {
            let sum: f64 = chosen.iter().map(|unit| units[*unit][k]).sum();
            let distance =
                (sum / of_a as f64 - (totals[k] - sum) / (units.len() - of_a) as f64).abs();
            let (part, size) = if k < body {
                (0, distance)
            } else {
                (1, distance / (deviations[k] * scale).max(1e-300))
            };
            largest_distances[part] = largest_distances[part].max(size);
        }
        largest_distances
    };
    let observed_distances = statistics(&(0..of_a).collect::<Vec<_>>());
    let counted = [observed_distances[0] / discount[0], observed_distances[1] / discount[1]];
    let deal_count = count_combinations(units.len(), of_a);
    let (p, least) = if deal_count <= DEALS as f64 {
        (every_deal(units.len(), of_a, counted, statistics), 1.0 / deal_count)
    } else {
        (random_deals(units.len(), of_a, counted, statistics), 1.0 / (DEALS + 1) as f64)
    };
    // Sides of equal size: each permutation and its mirror image are the same.
    let smallest_p =
        if deal_count <= DEALS as f64 && 2 * of_a == units.len() { 2.0 * least } else { least };
    // A test that cannot become significant is omitted.
    if smallest_p > error {
        return Vec::new();
    }
    let test = |part: usize, name: &str| DistributionTest {
        part: name.to_owned(),
        method: method.to_owned(),
        statistic: observed_distances[part],
        p: Some(p[part].min(1.0)),
        p_adjusted: None,
        least_p: smallest_p,
    };
    let mut tests = vec![test(0, "whole")];
    tests.extend((points > body).then(|| test(1, "tail")));
    tests
}

/// Slightly below equality: sums in another order differ in the last digits.
fn as_extreme(one: f64, seen: f64) -> bool {
    one >= seen * (1.0 - 1e-9)
}

fn every_deal(
    units: usize,
    of_a: usize,
    seen: [f64; 2],
    statistics: impl Fn(&[usize]) -> [f64; 2],
) -> [f64; 2] {
    let (mut chosen, mut deals, mut extreme) =
        ((0..of_a).collect::<Vec<usize>>(), 0usize, [0usize; 2]);
    loop {
        let now = statistics(&chosen);
        deals += 1;
        (0..2).for_each(|k| extreme[k] += usize::from(as_extreme(now[k], seen[k])));
        // The next choice in lexical order: the last that can move up does.
        let Some(k) = (0..of_a).rev().find(|k| chosen[*k] < units - of_a + k) else { break };
        chosen[k] += 1;
        (k + 1..of_a).for_each(|j| chosen[j] = chosen[j - 1] + 1);
    }
    extreme.map(|n| n as f64 / deals as f64)
}

fn random_deals(
    units: usize,
    of_a: usize,
    seen: [f64; 2],
    statistics: impl Fn(&[usize]) -> [f64; 2],
) -> [f64; 2] {
    let mut random = Random::from_seed(SEED);
    let mut order: Vec<usize> = (0..units).collect();
    let (mut extreme, mut p) = ([0usize; 2], [None; 2]);
    for deals in 1..=DEALS {
        random.choose_first(&mut order, of_a);
        let now = statistics(&order[..of_a]);
        for k in 0..2 {
            extreme[k] += usize::from(as_extreme(now[k], seen[k]));
            if extreme[k] == ENOUGH && p[k].is_none() {
                p[k] = Some(ENOUGH as f64 / deals as f64);
            }
        }
        if p.iter().all(Option::is_some) {
            break;
        }
    }
    [0, 1].map(|k| p[k].unwrap_or((extreme[k] + 1) as f64 / (DEALS + 1) as f64))
}

fn count_combinations(n: usize, k: usize) -> f64 {
    (0..k).map(|j| (n - j) as f64 / (j + 1) as f64).product::<f64>().round()
}

/// Samples assumed independent: Smirnov's two-sample test, and the largest of the tail's
/// differences with Bonferroni's bound.
fn by_histogram(a: &SideRuns, b: &SideRuns, grid: &Grid) -> Vec<DistributionTest> {
    let (n_a, n_b) = (a.count() as f64, b.count() as f64);
    if n_a < 1.0 || n_b < 1.0 {
        return Vec::new();
    }
    let (of_a, of_b) = (shares_of(&a.ladder, grid), shares_of(&b.ladder, grid));
    let distance = |k: usize| (of_a[k] - of_b[k]).abs();
    let effective_count = n_a * n_b / (n_a + n_b);
    let largest = (0..grid.body_len()).map(distance).fold(0.0, f64::max);
    let test = |part: &str, statistic: f64, p: f64| DistributionTest {
        part: part.to_owned(),
        method: "histogram".to_owned(),
        statistic,
        p: Some(p.min(1.0)),
        p_adjusted: None,
        least_p: 0.0,
    };
    let mut tests =
        vec![test("whole", largest, kolmogorov_beyond(largest * effective_count.sqrt()))];
    let standardised = |k: usize| {
        let share = (of_a[k] * n_a + of_b[k] * n_b) / (n_a + n_b);
        distance(k) * effective_count.sqrt() / (share * (1.0 - share)).sqrt().max(1e-300)
    };
    let farthest = (grid.body_len()..grid.values.len()).map(standardised).fold(0.0, f64::max);
    tests.extend(
        (grid.tail > 0)
            .then(|| test("tail", farthest, 2.0 * grid.tail as f64 * normal_cdf(-farthest))),
    );
    tests
}

/// P(B > A) + P(B = A)/2, from the ladders.
pub(crate) fn estimate_superiority(a: &SideRuns, b: &SideRuns) -> Option<f64> {
    let (n_a, n_b) = (a.count() as f64, b.count() as f64);
    if n_a < 1.0 || n_b < 1.0 {
        return None;
    }
    let (mut sum, mut below) = (0.0, 0u64);
    for (value, count) in b.ladder.distinct_values() {
        // The number of samples of A below this value, and of those at it.
        let up_to = a.ladder.at_or_below(value);
        let under = a.ladder.at_or_below(value.saturating_sub(1)).max(below.min(up_to));
        sum += count as f64 * (under as f64 + (up_to - under) as f64 / 2.0);
        below = under;
    }
    Some(sum / (n_a * n_b))
}

#[cfg(test)]
mod checks {
    use super::super::run::ComparedRun;
    use super::*;

    fn side(samples: Vec<i64>) -> SideRuns {
        SideRuns::new(vec![ComparedRun::of_samples(samples)])
    }

    #[test]
    fn equal_distributions_pass_and_shifted_ones_fail_the_test() {
        let mut random = Random::from_seed(5);
        let mut draw = |from: f64| {
            (0..5_000)
                .map(|_| (from - 1_000.0 * random.next_unit().ln()) as i64)
                .collect::<Vec<_>>()
        };
        let (a, b, c) = (side(draw(0.0)), side(draw(0.0)), side(draw(300.0)));
        assert!(test_distribution(&a, &b, 0.05).iter().all(|test| test.p.unwrap() > 0.01));
        assert!(test_distribution(&a, &c, 0.05)[0].p.unwrap() < 0.001);
        assert!((estimate_superiority(&a, &b).unwrap() - 0.5).abs() < 0.03);
        assert!(estimate_superiority(&a, &c).unwrap() > 0.6);
    }

    #[test]
    fn too_few_runs_for_significance_are_not_tested() {
        let runs = |count: i64, from: i64| {
            SideRuns::new(
                (0..count).map(|k| ComparedRun::of_samples(vec![from + k; 100])).collect(),
            )
        };
        assert!(test_distribution(&runs(3, 0), &runs(3, 1_000), 0.05).is_empty());
        let tests = test_distribution(&runs(4, 0), &runs(4, 1_000), 0.05);
        assert_eq!((tests[0].p, tests[0].least_p), (Some(2.0 / 70.0), 2.0 / 70.0));
    }

    #[test]
    fn every_permutation_is_visited_once() {
        let count = std::cell::RefCell::new(std::collections::BTreeSet::new());
        every_deal(6, 3, [1.0; 2], |chosen| {
            assert!(count.borrow_mut().insert(chosen.to_vec()));
            [0.0; 2]
        });
        assert_eq!((count.borrow().len() as f64, count_combinations(6, 3)), (20.0, 20.0));
    }
}
