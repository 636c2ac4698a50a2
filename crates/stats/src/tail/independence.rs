//! Tests of values in order of time: dependence on earlier ones, and drift of the level.

use crate::Random;
use crate::probability::{chi_squared_beyond, normal, normal_upper};

/// A statistic, with the probability of one at least as large under the hypothesis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TestOutcome {
    /// Larger values contradict the hypothesis.
    pub statistic: f64,
    pub p: f64,
}

/// The same values as normal scores of their ranks: the tests are about the order, for any
/// distribution (van der Waerden; ties share a rank).
pub(crate) fn normal_scores(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut scores = vec![0.0; values.len()];
    let mut start = 0;
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = start as f64 + (group.len() as f64 + 1.0) / 2.0;
        let score = -normal_upper(rank / (values.len() as f64 + 1.0));
        group.iter().for_each(|k| scores[*k] = score);
        start += group.len();
    }
    scores
}

/// Ljung and Box, "On a measure of lack of fit in time series models", Biometrika 65 (1978). `None`
/// for fewer values than lags and two, or equal ones.
pub(crate) fn ljung_box(values: &[f64], lags: usize) -> Option<TestOutcome> {
    let n = values.len();
    if n < lags + 2 || lags == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let centred: Vec<f64> = values.iter().map(|v| v - mean).collect();
    let variance: f64 = centred.iter().map(|v| v * v).sum();
    if variance <= 0.0 {
        return None;
    }
    let correlation = |lag: usize| {
        centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum::<f64>() / variance
    };
    let sum: f64 = (1..=lags).map(|lag| correlation(lag).powi(2) / (n - lag) as f64).sum();
    let statistic = n as f64 * (n as f64 + 2.0) * sum;
    Some(TestOutcome { statistic, p: chi_squared_beyond(lags as f64, statistic) })
}

/// Kwiatkowski, Phillips, Schmidt, Shin, J. Econometrics 54 (1992), for a constant level:
/// Bartlett's window over `lags`; p between 0.01 and 0.1 from their table 1, no nearer. `None` for
/// fewer than ten values or equal ones.
pub(crate) fn kpss(values: &[f64], lags: usize) -> Option<TestOutcome> {
    let n = values.len();
    if n < 10 || lags >= n {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let centred: Vec<f64> = values.iter().map(|v| v - mean).collect();
    let covariance = |lag: usize| {
        centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum::<f64>() / n as f64
    };
    let window = |lag: usize| 1.0 - lag as f64 / (lags as f64 + 1.0);
    let long_run =
        covariance(0) + 2.0 * (1..=lags).map(|lag| window(lag) * covariance(lag)).sum::<f64>();
    if long_run <= 0.0 {
        return None;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    for value in &centred {
        sum += value;
        squares += sum * sum;
    }
    let statistic = squares / (n as f64).powi(2) / long_run;
    const TABLE: [(f64, f64); 4] = [(0.347, 0.10), (0.463, 0.05), (0.574, 0.025), (0.739, 0.01)];
    let between = TABLE.windows(2).find(|pair| statistic < pair[1].0);
    let p = match between {
        _ if statistic <= TABLE[0].0 => 0.10,
        Some(pair) => {
            pair[0].1 + (statistic - pair[0].0) / (pair[1].0 - pair[0].0) * (pair[1].1 - pair[0].1)
        }
        None => 0.01,
    };
    Some(TestOutcome { statistic, p })
}

/// The lags of [`kpss`] that its authors use: 4·(n/100)^(1/4).
pub(crate) fn kpss_lags(n: usize) -> usize {
    (4.0 * (n as f64 / 100.0).powf(0.25)) as usize
}

/// The pairs of values nearer than a bound, as one row of bits each.
struct Near {
    n: usize,
    rows: Vec<Vec<bool>>,
}

impl Near {
    fn of(values: &[f64], bound: f64) -> Near {
        let rows =
            values.iter().map(|a| values.iter().map(|b| (a - b).abs() < bound).collect()).collect();
        Near { n: values.len(), rows }
    }
    /// The share of near pairs of windows of `m` values, from the value `from` on.
    fn share(&self, m: usize, from: usize) -> f64 {
        let last = self.n + 1 - m;
        let near = |a: usize, b: usize| (0..m).all(|k| self.rows[a + k][b + k]);
        let count: usize =
            (from..last).map(|a| (a + 1..last).filter(|b| near(a, *b)).count()).sum();
        let windows = (last - from) as f64;
        count as f64 / (windows * (windows - 1.0) / 2.0)
    }
    /// The share of triples whose second and third are near to the first.
    fn triples(&self) -> f64 {
        let n = self.n as f64;
        let degrees: Vec<f64> =
            self.rows.iter().map(|row| row.iter().filter(|near| **near).count() as f64).collect();
        let squares: f64 = degrees.iter().map(|d| d * d).sum();
        (squares - 3.0 * degrees.iter().sum::<f64>() + 2.0 * n) / (n * (n - 1.0) * (n - 2.0))
    }
}

/// Brock, Dechert, Scheinkman, LeBaron, "A test for independence based on the correlation
/// dimension", Econometric Reviews 15 (1996): the statistic for windows of `m` values and distances
/// below `bound`, standard normal for many independent values; p on both sides. O(n²). `None` where
/// it is not defined.
pub(crate) fn bds(values: &[f64], m: usize, bound: f64) -> Option<TestOutcome> {
    if values.len() < m + 20 || m < 2 {
        return None;
    }
    let near = Near::of(values, bound);
    let (c, k) = (near.share(1, 0), near.triples());
    let power = |x: f64, e: usize| x.powi(e as i32);
    let middle: f64 = (1..m).map(|j| power(k, m - j) * power(c, 2 * j)).sum();
    let m_squared = (m * m) as f64;
    let variance = 4.0
        * (power(k, m) + 2.0 * middle + ((m - 1) * (m - 1)) as f64 * power(c, 2 * m)
            - m_squared * k * power(c, 2 * m - 2));
    if variance.is_nan() || variance <= 0.0 {
        return None;
    }
    let n = (values.len() - m + 1) as f64;
    let statistic =
        n.sqrt() * (near.share(m, 0) - power(near.share(1, m - 1), m)) / variance.sqrt();
    Some(TestOutcome { statistic, p: 2.0 * normal(-statistic.abs()) })
}

/// The same with p from shuffles of the values, which is right for few of them, too.
pub(crate) fn bds_shuffled(
    values: &[f64],
    m: usize,
    bound: f64,
    shuffles: usize,
    seed: u64,
) -> Option<TestOutcome> {
    const ENOUGH: usize = 10;
    let seen = bds(values, m, bound)?;
    let mut random = Random::seeded(seed);
    let mut order: Vec<usize> = (0..values.len()).collect();
    let n = order.len();
    let mut extreme = 0;
    for done in 0..shuffles {
        // Enough were as extreme: the hypothesis is not rejected.
        if extreme == ENOUGH {
            return Some(TestOutcome { statistic: seen.statistic, p: ENOUGH as f64 / done as f64 });
        }
        random.choose(&mut order, n);
        let shuffled: Vec<f64> = order.iter().map(|k| values[*k]).collect();
        let larger = bds(&shuffled, m, bound)
            .is_none_or(|other| other.statistic.abs() >= seen.statistic.abs());
        extreme += usize::from(larger);
    }
    Some(TestOutcome { statistic: seen.statistic, p: (extreme + 1) as f64 / (shuffles + 1) as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tail::testdata;
    use proptest::prelude::*;

    fn near(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} is not {b}");
    }

    /// R 4.2.2, Box.test(…, "Ljung-Box") on its data sets lh and LakeHuron.
    #[test]
    fn ljung_box_is_as_in_r() {
        let lh = testdata::lh();
        for (lags, statistic, p) in [
            (1, 16.913_791_76, 3.911_634e-5),
            (5, 22.673_185, 3.897_447e-4),
            (10, 25.350_930_36, 4.718_556_6e-3),
        ] {
            let got = ljung_box(&lh, lags).unwrap();
            near(got.statistic, statistic, 1e-6);
            near(got.p, p, 1e-9);
        }
        near(ljung_box(&testdata::lake_huron(), 5).unwrap().statistic, 155.040_704_2, 1e-5);
    }

    /// R's tseries 0.10-53, kpss.test on lh and LakeHuron: its printed p are the ends of the table
    /// as well.
    #[test]
    fn kpss_is_as_in_r() {
        let lh = kpss(&testdata::lh(), 3).unwrap();
        near(lh.statistic, 0.293_815_727_3, 1e-8);
        near(lh.p, 0.1, 0.0);
        let huron = kpss(&testdata::lake_huron(), 3).unwrap();
        near(huron.statistic, 0.995_290_114_4, 1e-7);
        near(huron.p, 0.01, 0.0);
        assert_eq!([48, 98, 200, 1_000].map(kpss_lags), [3, 3, 4, 7]);
    }

    /// statsmodels 0.13.5, bds(…, max_dim = 3, epsilon = 1.5·sd) of log(lynx) and lh. (R's tseries
    /// leaves out other values at the ends of its windows: 20.74 and 19.33 for the first.)
    #[test]
    fn bds_is_as_in_statsmodels() {
        let lynx: Vec<f64> = testdata::lynx().iter().map(|v| v.ln()).collect();
        for (m, statistic) in [(2, 21.049_990_06), (3, 19.477_618_7)] {
            near(bds(&lynx, m, 1.928_675_186_853_68).unwrap().statistic, statistic, 1e-6);
        }
        for (m, statistic) in [(2, 9.422_055_98), (3, 9.580_438_89)] {
            near(
                bds(&testdata::lh(), m, 0.827_390_154_694_329).unwrap().statistic,
                statistic,
                1e-6,
            );
        }
    }

    #[test]
    fn independent_samples_pass_the_independence_tests() {
        let mut random = Random::seeded(31);
        let values: Vec<f64> = (0..300).map(|_| random.unit().ln()).collect();
        let scores = normal_scores(&values);
        assert!(ljung_box(&scores, 10).unwrap().p > 0.01);
        assert!(kpss(&scores, kpss_lags(300)).unwrap().p > 0.01);
        assert!(bds_shuffled(&scores, 2, 1.0, 99, 1).unwrap().p > 0.01);
        near(scores.iter().sum::<f64>(), 0.0, 1e-9);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn no_input_panics(
            values in proptest::collection::vec(any::<f64>(), 0..60),
            lags in 0usize..70,
        ) {
            let _ = (ljung_box(&values, lags), kpss(&values, lags), bds(&values, 2, 1.0));
            prop_assert_eq!(normal_scores(&values).len(), values.len());
        }
    }
}
