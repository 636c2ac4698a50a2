use super::run::{ComparedRun, SideRuns};
use super::series::{METRICS, SeriesPair};
use super::*;
use crate::Random;
use proptest::prelude::*;
use punctual_bundle::comparison::{Basis, Difference};

fn exponential(random: &mut Random, n: usize, from: f64) -> Vec<i64> {
    (0..n).map(|_| (from - 3_000.0 * random.next_unit().ln()) as i64).collect()
}

fn compared(a: Vec<Vec<i64>>, b: Vec<Vec<i64>>) -> SeriesComparison {
    let side = |runs: Vec<Vec<i64>>| {
        SideRuns::new(runs.into_iter().map(ComparedRun::of_samples).collect())
    };
    let mut all = [SeriesPair { a: side(a), b: side(b) }.compare_series(1, "p/s", "p/s")];
    multiple::decide_differences(&mut all);
    let [one] = all;
    one
}

#[test]
fn a_shift_of_the_median_is_detected_within_its_interval() {
    let mut random = Random::from_seed(11);
    let a = exponential(&mut random, 60_000, 20_000.0);
    let b = exponential(&mut random, 60_000, 18_000.0);
    let got = compared(vec![a], vec![b]);
    assert_eq!(got.basis, Basis::Blocks);
    let median = &got.metrics[0];
    assert_eq!(median.verdict, Difference::Lower);
    assert!(median.low.unwrap() < -2_000.0 && -2_000.0 < median.high.unwrap(), "{median:?}");
    assert!(got.distribution[0].p_adjusted.unwrap() < 0.05);
    assert!(got.superiority.unwrap() < 0.4);
    assert_eq!(got.metrics[3].verdict, Difference::Unsupported);
    assert_eq!(
        got.metrics[3].reason.as_deref(),
        Some("it needs 100000 samples on each side and one side has 60000")
    );
}

#[test]
fn run_to_run_spread_is_no_significant_difference() {
    let mut random = Random::from_seed(12);
    // Each run has its own level, which with one run per side looks like a difference.
    let mut run = |level: f64| exponential(&mut random, 5_000, level);
    let (a, b) = (
        vec![run(0.0), run(900.0), run(400.0), run(1_200.0)],
        vec![run(1_100.0), run(100.0), run(600.0), run(1_000.0)],
    );
    let single = compared(vec![a[0].clone()], vec![b[0].clone()]);
    assert_eq!(single.metrics[0].verdict, Difference::Higher);
    let several = compared(a, b);
    assert_eq!(several.basis, Basis::Runs);
    assert!(several.metrics.iter().all(|m| matches!(
        m.verdict,
        Difference::NoSignificantDifference | Difference::Unsupported
    )));
}

#[test]
fn an_open_comparison_reports_how_much_more_data_it_needs() {
    let mut random = Random::from_seed(13);
    let a = exponential(&mut random, 20_000, 10_000.0);
    let b = exponential(&mut random, 20_000, 10_030.0);
    let got = compared(vec![a], vec![b]);
    let open = got.metrics.iter().filter(|m| m.verdict == Difference::NoSignificantDifference);
    assert!(
        open.clone().any(|m| m.more_data.is_some_and(|times| times > 1.0)),
        "{:?}",
        got.metrics
    );
}

#[test]
fn equal_sides_have_no_significant_difference() {
    let same: Vec<i64> = (0..10_000).map(|k| 5_000 + k * 7_919 % 1_000).collect();
    let got = compared(vec![same.clone()], vec![same]);
    assert!(
        got.metrics
            .iter()
            .all(|m| m.difference.is_none_or(|d| d == 0.0) && m.p.is_none_or(|p| p == 1.0))
    );
    assert_eq!(got.superiority, Some(0.5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_input_panics(
        a in proptest::collection::vec(proptest::collection::vec(any::<i64>(), 0..400), 1..3),
        b in proptest::collection::vec(proptest::collection::vec(-3i64..3, 0..400), 1..4),
    ) {
        for (a, b) in [(a.clone(), b.clone()), (b, a)] {
            let got = compared(a, b);
            prop_assert_eq!(got.metrics.len(), METRICS.len());
            for m in &got.metrics {
                let inside = |low: Option<f64>, d: f64, high: Option<f64>| {
                    low.is_none_or(|l| l <= d) && high.is_none_or(|h| h >= d)
                };
                prop_assert!(m.difference.is_none_or(|d| inside(m.low, d, m.high)), "{:?}", m);
                prop_assert!(m.p_adjusted.is_none_or(|p| (0.0..=1.0).contains(&p)));
            }
        }
    }
}
