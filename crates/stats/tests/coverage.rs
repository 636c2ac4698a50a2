//! The coverage of intervals and bounds that have no table elsewhere: 1,000 simulated runs of each,
//! with known truth. The figures are in docs/notes/error-rates.md; print them with `cargo test -p
//! punctual-stats --test pure coverage:: -- --nocapture`.

use punctual_stats::Random;
use punctual_stats::calibration::{TurnLatencies, percentile_shifts};
use punctual_stats::compare::run::ComparedRun;
use punctual_stats::tail::model_free;

const RUNS: usize = 1_000;

/// The share of runs in which a property holds.
fn share(what: &str, stated: f64, mut holds: impl FnMut(&mut Random) -> bool) -> f64 {
    let mut random = Random::from_seed(17);
    let share = (0..RUNS).filter(|_| holds(&mut random)).count() as f64 / RUNS as f64;
    println!("{what}: {:.1} % of {RUNS} runs, stated {:.1} %", share * 100.0, stated * 100.0);
    share
}

/// The minimum count that a stated share gives in this many runs, except in 1 of 1,000 cases.
fn tolerated(stated: f64) -> f64 {
    stated - 3.1 * (stated * (1.0 - stated) / RUNS as f64).sqrt()
}

/// Exponential, with a mean of 1 ms in ns, so that a sample's exceedance probability is known.
const MEAN: f64 = 1e6;

fn sample(random: &mut Random) -> i64 {
    (-MEAN * random.next_unit().ln()) as i64
}

/// Whether the maximum is exceeded with at most the probability that the bound states.
fn is_bounded(samples: Vec<i64>) -> bool {
    let max = samples.iter().copied().max().unwrap_or_default();
    let beyond = model_free::bound_run(&ComparedRun::of_samples(samples)).beyond.expect("a bound");
    (-(max as f64) / MEAN).exp() <= beyond
}

#[test]
fn the_maximum_bounds_as_often_as_stated() {
    let stated = 1.0 - model_free::ERROR;
    let independent = share("maximum of 3,000 independent samples", stated, |random| {
        is_bounded((0..3_000).map(|_| sample(random)).collect())
    });
    let bursts = share("maximum of 3,000 samples in bursts of five", stated, |random| {
        is_bounded((0..600).flat_map(|_| [sample(random); 5]).collect())
    });
    // If assumed independent, samples in bursts of five would hold in 1 − 0.05^(1/5) of runs: 45 %.
    for share in [independent, bursts] {
        assert!(share >= tolerated(stated), "{share}");
    }
}

#[test]
fn the_cost_of_recording_lies_in_its_interval_as_often_as_stated() {
    const ADDED: i64 = 700;
    // Of ten turns, from the second smallest to the second largest: 1 − 2·(1 + 10)/2^10.
    let stated = 1.0 - 22.0 / 1_024.0;
    let block = |random: &mut Random, turn: i64, added: i64| -> Vec<i64> {
        // A drift over turns, and a tail that affects both.
        (0..200).map(|_| 20_000 + turn * 50 + added + sample(random) / 1_000).collect()
    };
    let percentiles = [50.0, 90.0, 99.0];
    let mut missed = [0; 3];
    for seed in 0..RUNS {
        let mut random = Random::from_seed(seed as u64);
        let turns: Vec<TurnLatencies> = (0..10)
            .map(|turn| TurnLatencies {
                without: block(&mut random, turn, 0),
                with: block(&mut random, turn, ADDED),
            })
            .collect();
        let found = percentile_shifts(&turns);
        assert_eq!(found.iter().map(|one| one.percentile).collect::<Vec<_>>(), percentiles);
        for (missed, one) in missed.iter_mut().zip(&found) {
            *missed += usize::from(!(one.low_ns..=one.high_ns).contains(&ADDED));
        }
    }
    for (percentile, missed) in percentiles.iter().zip(missed) {
        let share = 1.0 - missed as f64 / RUNS as f64;
        println!(
            "shift of p{percentile}: {:.1} % of {RUNS} runs, stated {:.1} %",
            share * 100.0,
            stated * 100.0
        );
        assert!(share >= tolerated(stated), "p{percentile}: {share}");
    }
}
