//! Whether kinds of events occur in long intervals more often than in ordinary ones.
//!
//! The odds ratio has Woolf's interval with half a count added to each cell (Haldane 1956, Anscombe
//! 1956), so that it exists where a cell is 0. Its probability is Fisher's exact one. A long
//! interval has more room for any event: a kind that is more frequent in long intervals also needs
//! to be more frequent than by the length of these alone.

use crate::compare::multiple::adjust_holm;
use crate::probability::{binomial_at_least, ln_choose};
use punctual_bundle::intervals::{Coincidence, Coincidences};

/// The rate of tables that name any kind as associated where none is.
const ERROR: f64 = 0.05;
/// The normal quantile of a two-sided 95 % interval.
const Z: f64 = 1.959_963_984_540_054;

/// The intervals of a table.
#[derive(Clone, Copy, Debug)]
pub struct LongAndOrdinary {
    pub late: u64,
    pub ordinary: u64,
    /// Their lengths together, in ns.
    pub late_time: f64,
    pub ordinary_time: f64,
    /// Long intervals are longer than this, in ns.
    pub above: i64,
    pub left_out: u64,
}

/// A kind of event, with the number of intervals of each sort that had it.
#[derive(Clone, Debug)]
pub struct OccurredIn {
    pub kind: &'static str,
    pub who: String,
    pub late: u64,
    pub ordinary: u64,
}

/// The table of these kinds, the strongest association first: by the lower end of the odds ratio.
pub fn rank_coincidences(
    name: String,
    of: LongAndOrdinary,
    kinds: Vec<OccurredIn>,
) -> Coincidences {
    let share = of.late_time / (of.late_time + of.ordinary_time).max(1.0);
    let mut kinds: Vec<Coincidence> =
        kinds.into_iter().map(|kind| test_coincidence(&of, share, kind)).collect();
    let p: Vec<f64> = kinds.iter().map(|kind| kind.p).collect();
    for (kind, adjusted) in kinds.iter_mut().zip(adjust_holm(&p)) {
        kind.p_adjusted = adjusted;
        kind.associated = adjusted <= ERROR;
    }
    kinds.sort_by(|a, b| b.low.total_cmp(&a.low).then_with(|| a.who.cmp(&b.who)));
    Coincidences {
        name,
        late: of.late,
        ordinary: of.ordinary,
        above: of.above,
        left_out: of.left_out,
        tested: kinds.len() as u64,
        kinds,
    }
}

fn test_coincidence(of: &LongAndOrdinary, share: f64, kind: OccurredIn) -> Coincidence {
    let OccurredIn { kind, who, late, ordinary } = kind;
    let with = late + ordinary;
    let cells = [late, of.late - late, ordinary, of.ordinary - ordinary];
    let (odds_ratio, low, high) = estimate_odds(cells);
    let fisher = fisher_exact(cells);
    // What a longer interval has room for.
    let by_length = (with as f64 * share).min(of.late as f64);
    let p = if odds_ratio > 1.0 { fisher.max(at_least(late, with, share)) } else { fisher };
    Coincidence {
        kind: kind.to_owned(),
        who,
        late,
        ordinary,
        late_share: late as f64 / of.late.max(1) as f64,
        ordinary_share: ordinary as f64 / of.ordinary.max(1) as f64,
        by_length,
        odds_ratio,
        low,
        high,
        p,
        p_adjusted: p,
        associated: false,
    }
}

/// The odds ratio of `[with, without, with, without]` and its 95 % interval.
fn estimate_odds(cells: [u64; 4]) -> (f64, f64, f64) {
    let [a, b, c, d] = cells.map(|n| n as f64 + 0.5);
    let log = (a * d / (b * c)).ln();
    let error = (1.0 / a + 1.0 / b + 1.0 / c + 1.0 / d).sqrt();
    (log.exp(), (log - Z * error).exp(), (log + Z * error).exp())
}

/// The two-sided probability of Fisher's exact test: of all tables with these margins that are at
/// most as likely.
fn fisher_exact([a, b, c, d]: [u64; 4]) -> f64 {
    let (late, with, all) = (a + b, a + c, a + b + c + d);
    let fixed = ln_choose(all, late);
    let log_p = |k: u64| ln_choose(with, k) + ln_choose(all - with, late - k) - fixed;
    // The tolerance of R's fisher.test.
    let limit = log_p(a) + 1e-7;
    let first = late.saturating_sub(all - with);
    let likely = (first..=late.min(with)).map(log_p).filter(|p| *p <= limit);
    likely.map(f64::exp).sum::<f64>().min(1.0)
}

/// The probability that of `n` events with this share at least `k` fall into the long intervals. An
/// interval counts once however many it has, so that of `n` intervals with any this is an upper
/// bound: the longer ones lose more. 1 if `k` is not above the mean.
fn at_least(k: u64, n: u64, share: f64) -> f64 {
    if k as f64 <= n as f64 * share || share >= 1.0 {
        return 1.0;
    }
    binomial_at_least(k, n, share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 + 1e-6 * b.abs(), "{a} is not {b}");
    }

    fn choose(n: u64, k: u64) -> u128 {
        (0..u128::from(k)).fold(1, |all, i| all * (u128::from(n) - i) / (i + 1))
    }

    /// In whole numbers: of all ways to choose the late ones, those at most as likely.
    fn by_counting([a, b, c, d]: [u64; 4]) -> f64 {
        let (late, with, without) = (a + b, a + c, b + d);
        let ways = |k: u64| match late.checked_sub(k) {
            Some(rest) if k <= with && rest <= without => choose(with, k) * choose(without, rest),
            _ => 0,
        };
        let likely = (0..=late).map(ways).filter(|n| *n <= ways(a)).sum::<u128>();
        likely as f64 / choose(with + without, late) as f64
    }

    #[test]
    fn fishers_probability_is_that_of_counting_all_tables() {
        for a in 0..8 {
            for b in 0..5 {
                for (c, d) in [(0, 9), (3, 20), (12, 2), (7, 0)] {
                    near(fisher_exact([a, b, c, d]), by_counting([a, b, c, d]));
                }
            }
        }
        // Fisher's lady tasting tea, and Agresti's table of it.
        near(fisher_exact([3, 1, 1, 3]), 34.0 / 70.0);
        near(fisher_exact([4, 0, 0, 4]), 2.0 / 70.0);
    }

    /// 7 of 10 and 30 of 990 with half a count added: 7.5 · 960.5 / (3.5 · 30.5), by hand.
    #[test]
    fn the_odds_ratio_has_woolfs_interval() {
        let (ratio, low, high) = estimate_odds([7, 3, 30, 960]);
        near(ratio, 67.482_435_597);
        let error = f64::sqrt(1.0 / 7.5 + 1.0 / 3.5 + 1.0 / 30.5 + 1.0 / 960.5);
        near(high / low, (2.0 * 1.959_963_984_540_054 * error).exp());
        let (ratio, low, high) = estimate_odds([10, 0, 0, 990]);
        assert!(low > 100.0 && ratio > low && high > ratio && high.is_finite());
    }

    #[test]
    fn a_binomial_tail_is_that_of_adding_terms() {
        // 0.1^3 · 0.9^2 · 10 + 0.1^4 · 0.9 · 5 + 0.1^5.
        near(at_least(3, 5, 0.1), 0.008_56);
        near(at_least(1, 4, 0.1), 1.0 - 0.9f64.powi(4));
        near(at_least(0, 4, 0.1), 1.0);
    }

    /// 1,000 intervals, of which the 10 long ones last `longer` times as long.
    fn drawn(random: &mut Random, kinds: usize, longer: f64) -> Coincidences {
        let of = LongAndOrdinary {
            late: 10,
            ordinary: 990,
            late_time: 10.0 * longer,
            ordinary_time: 990.0,
            above: 1,
            left_out: 0,
        };
        let kind = |k: usize| {
            let rate = 0.002 * (k + 1) as f64;
            let mut occurred = |n: u64, length: f64| {
                let p = 1.0 - (-rate * length).exp();
                (0..n).filter(|_| random.next_unit() < p).count() as u64
            };
            let (late, ordinary) = (occurred(10, longer), occurred(990, 1.0));
            OccurredIn { kind: "tracepoint", who: format!("event {k}"), late, ordinary }
        };
        rank_coincidences("a->b".into(), of, (0..kinds).map(kind).collect())
    }

    #[test]
    fn where_none_is_associated_few_tables_name_one() {
        // Of 400 tables with a rate of 5 %, 20 are expected, and more than 33 by chance in 1 of
        // 1,000.
        for longer in [1.0, 3.0, 30.0] {
            let mut random = Random::from_seed(53);
            let named = (0..400)
                .filter(|_| drawn(&mut random, 20, longer).kinds.iter().any(|k| k.associated));
            let named = named.count();
            assert!(named <= 33, "{named} of 400 where long ones last {longer} times as long");
        }
    }

    #[test]
    fn length_alone_explains_what_a_table_shows() {
        let of = LongAndOrdinary {
            late: 10,
            ordinary: 990,
            late_time: 1_000.0,
            ordinary_time: 990.0,
            above: 1,
            left_out: 0,
        };
        let tick = OccurredIn { kind: "irq", who: "tick".into(), late: 9, ordinary: 20 };
        let table = rank_coincidences("a->b".into(), of, vec![tick]);
        assert!(fisher_exact([9, 1, 20, 970]) < 1e-9);
        assert!(!table.kinds[0].associated && table.kinds[0].by_length > 9.0, "{table:?}");
    }
}
