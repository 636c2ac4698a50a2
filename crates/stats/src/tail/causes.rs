//! The composition of the tail: its samples by cause, as far as `explain` and the account know it,
//! and whether causes of different sizes mix.
//!
//! Sizes are compared by ranks (Kruskal and Wallis, J. Amer. Statist. Ass. 47, 1952). Few samples
//! are shuffled. For many the χ² distribution is used; as any small difference is then significant,
//! the effect ε² = H/(n − 1) must also be at least 0.06, which is called a medium one.

use crate::Random;
use crate::probability::chi_squared_beyond;
use punctual_bundle::SeriesAccount;
use punctual_bundle::tail::{CauseShare, CauseSource, TailCauses};
use punctual_core::{Account, CauseKind, Fact, MAIN_PARTS};
use std::collections::BTreeMap;

/// The minimum number of samples for a test.
const FEWEST: usize = 8;
/// The probability below which causes mix,
pub(crate) const LEVEL: f64 = 0.01;
const EFFECT: f64 = 0.06;
/// The share from which one cause is dominant.
const ONE: f64 = 0.9;
/// The maximum number of samples that are shuffled,
const SHUFFLED: usize = 200;
const SHUFFLES: usize = 999;
const SEED: u64 = 0x6361_7573;
/// Without a threshold, the share of an account's samples that is its tail.
const TAIL: f64 = 0.01;

/// Samples in windows by phase and series: the latency of each in ns with its largest cause.
pub type ExplainedLatencies = BTreeMap<(String, String), Vec<(i64, TailCause)>>;

/// The known causes of a series' samples.
#[derive(Clone, Debug, Default)]
pub struct KnownCauses<'a> {
    /// Samples in windows: the latency of each in ns with its largest cause; `None` if unknown.
    pub(super) windows: Option<Vec<(i64, TailCause)>>,
    pub(super) account: Option<&'a SeriesAccount>,
}

/// An id and culprit, as in `punctual explain`; `None` if not attributed.
pub type TailCause = Option<(String, Option<String>)>;

impl<'a> KnownCauses<'a> {
    /// The causes of a series: its explained samples, if windows were kept, and its account, if
    /// any.
    pub fn of(
        windows: Option<Vec<(i64, TailCause)>>,
        account: &'a Fact<SeriesAccount>,
    ) -> KnownCauses<'a> {
        KnownCauses { windows, account: account.known() }
    }

    /// The causes of the `beyond` samples longer than `threshold` ns; without a threshold, of the
    /// known samples.
    pub fn beyond(&self, threshold: Option<(f64, u64)>) -> Vec<TailCauses> {
        let windows = self.windows.as_ref().map(|samples| {
            let samples = samples
                .iter()
                .filter(|(ns, _)| threshold.is_none_or(|(least, _)| *ns as f64 > least));
            tail_causes(
                CauseSource::Windows,
                threshold,
                samples.map(|(ns, cause)| (*ns as f64, cause.clone())).collect(),
            )
        });
        let account = self.account.map(|account| {
            tail_causes(CauseSource::Account, threshold, divided(account, threshold))
        });
        windows.into_iter().chain(account).filter(|causes| causes.samples > 0).collect()
    }
}

/// The samples of an account beyond the threshold; each with its longest part as cause, and the
/// middle of its bucket as latency.
fn divided(account: &SeriesAccount, threshold: Option<(f64, u64)>) -> Vec<(f64, TailCause)> {
    let most = (account.account.count() as f64 * TAIL) as u64;
    let (mut samples, mut before) = (Vec::new(), 0);
    for (edge, bucket) in account.account.buckets().rev() {
        before += bucket.count;
        // A bucket that contains the threshold is not beyond it.
        let beyond = threshold.map_or(before <= most, |(least, _)| edge as f64 >= least);
        if !beyond {
            break;
        }
        let middle = edge as f64 + Account::width(edge) as f64 / 2.0;
        for part in MAIN_PARTS {
            let count = bucket.longest[*part as usize] as usize;
            let cause = (*part != CauseKind::Unknown).then(|| (part.id().to_owned(), None));
            samples.extend(std::iter::repeat_n((middle, cause), count));
        }
    }
    samples
}

fn tail_causes(
    source: CauseSource,
    threshold: Option<(f64, u64)>,
    mut samples: Vec<(f64, TailCause)>,
) -> TailCauses {
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all = samples.len();
    let mut groups: BTreeMap<(String, Option<String>), Vec<f64>> = BTreeMap::new();
    for (ns, cause) in samples {
        if let Some(cause) = cause {
            groups.entry(cause).or_default().push(ns);
        }
    }
    let known: usize = groups.values().map(Vec::len).sum();
    let share = |((cause, who), sizes): (&(String, Option<String>), &Vec<f64>)| CauseShare {
        cause: cause.clone(),
        who: who.clone(),
        count: sizes.len() as u64,
        share: sizes.len() as f64 / known as f64,
        median: (sizes[(sizes.len() - 1) / 2] + sizes[sizes.len() / 2]) / 2.0,
        max: sizes.last().copied().unwrap_or_default(),
    };
    let mut causes: Vec<CauseShare> = groups.iter().map(share).collect();
    causes.sort_by(|a, b| {
        b.count.cmp(&a.count).then_with(|| (&a.cause, &a.who).cmp(&(&b.cause, &b.who)))
    });
    let groups: Vec<Vec<f64>> = groups.into_values().collect();
    let test = different_sizes(&groups);
    let dominant = known >= FEWEST && causes.first().is_some_and(|first| first.share >= ONE);
    TailCauses {
        source,
        threshold: threshold.map(|(least, _)| least),
        beyond: threshold.map(|(_, count)| count),
        samples: all as u64,
        known: known as u64,
        causes,
        dominant,
        p: test.map(|(p, _)| p),
        mixture: test.map(|(p, effect)| p <= LEVEL && effect >= EFFECT),
    }
}

/// The probability of such different sizes if they do not depend on the cause, and the effect;
/// `None` with too few samples or a single cause.
fn different_sizes(groups: &[Vec<f64>]) -> Option<(f64, f64)> {
    let n: usize = groups.iter().map(Vec::len).sum();
    if n < FEWEST || groups.len() < 2 {
        return None;
    }
    let mut all: Vec<f64> = groups.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    // Ties share the mean of their ranks.
    let rank = |value: f64| {
        let (below, upto) =
            (all.partition_point(|x| *x < value), all.partition_point(|x| *x <= value));
        (below + upto + 1) as f64 / 2.0
    };
    let mut ranks: Vec<f64> = groups.iter().flatten().map(|value| rank(*value)).collect();
    let mean = (n as f64 + 1.0) / 2.0;
    let spread: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    if spread <= 0.0 {
        return Some((1.0, 0.0));
    }
    let lengths: Vec<usize> = groups.iter().map(Vec::len).collect();
    let between = |ranks: &[f64]| {
        let mut from = 0;
        let parts = lengths.iter().map(|length| {
            let part = &ranks[from..from + length];
            from += length;
            *length as f64 * (part.iter().sum::<f64>() / *length as f64 - mean).powi(2)
        });
        // With ties in the variance (Kruskal and Wallis, equation 1.4).
        parts.sum::<f64>() * (n as f64 - 1.0) / spread
    };
    let statistic = between(&ranks);
    let p = if n > SHUFFLED {
        chi_squared_beyond(lengths.len() as f64 - 1.0, statistic)
    } else {
        let mut random = Random::seeded(SEED);
        let mut as_high = 1;
        for _ in 0..SHUFFLES {
            (1..n).rev().for_each(|k| ranks.swap(k, random.below(k + 1)));
            as_high += usize::from(between(&ranks) >= statistic - 1e-9);
        }
        as_high as f64 / (SHUFFLES + 1) as f64
    };
    Some((p, statistic / (n as f64 - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(cause: &str, sizes: impl Iterator<Item = i64>) -> Vec<(i64, TailCause)> {
        sizes.map(|ns| (ns, Some((cause.to_owned(), None)))).collect()
    }

    fn causes(samples: Vec<(i64, TailCause)>, threshold: Option<(f64, u64)>) -> TailCauses {
        KnownCauses { windows: Some(samples), account: None }.beyond(threshold).remove(0)
    }

    #[test]
    fn causes_are_a_mixture_only_if_their_sizes_differ() {
        let of = |far: i64| {
            let mut all = samples("preempted", (0..10).map(|k| 90_000 + k * 1_000));
            all.extend(samples("page-fault", (0..10).map(|k| 90_500 + far + k * 1_000)));
            causes(all, Some((80_000.0, 400)))
        };
        let (apart, alike) = (of(100_000), of(0));
        assert_eq!(
            (apart.mixture, alike.mixture),
            (Some(true), Some(false)),
            "{apart:?} {alike:?}"
        );
        assert!(
            apart.causes.iter().all(|cause| cause.count == 10 && cause.share == 0.5)
                && !apart.dominant
        );
        assert_eq!((apart.samples, apart.known, apart.beyond), (20, 20, Some(400)));
    }

    #[test]
    fn samples_of_unknown_cause_or_below_the_threshold_are_excluded() {
        let mut all = samples("preempted", (0..19).map(|k| 100_000 + k));
        all.push((200_000, None));
        all.extend(samples("irq", 5_000..5_050));
        let tail = causes(all, Some((50_000.0, 20)));
        assert_eq!(
            (tail.samples, tail.known, tail.causes.len(), tail.dominant),
            (20, 19, 1, true),
            "{tail:?}"
        );
        assert_eq!((tail.p, tail.mixture), (None, None));
        assert!(!causes(samples("io", 1..4), None).dominant);
    }

    #[test]
    fn different_sizes_are_tested_as_by_kruskal_wallis_in_r() {
        // R: kruskal.test(list(c(1, 2, 3, 4), c(5, 6, 7, 8))): 5.3333, and 1/35 by counting the 70
        // orders.
        let (p, effect) =
            different_sizes(&[vec![1.0, 2.0, 3.0, 4.0], vec![5.0, 6.0, 7.0, 8.0]]).unwrap();
        assert!(
            (effect * 7.0 - 16.0 / 3.0).abs() < 1e-9 && (0.015..0.045).contains(&p),
            "{p} {effect}"
        );
        assert_eq!(different_sizes(&[vec![3.0; 5], vec![3.0; 5]]), Some((1.0, 0.0)));
    }

    #[test]
    fn an_account_is_divided_over_its_longest_parts() {
        use punctual_core::{Nanos, Split};
        let mut account = SeriesAccount::default();
        for k in 0..40_000i64 {
            let (part, ns) = match k % 100 {
                0 => (CauseKind::Preempted, 300_000),
                1 => (CauseKind::Runqueue, 100_000),
                _ => (CauseKind::Irq, 3_000),
            };
            let mut split = Split::default();
            split.add(part, Nanos(ns + k / 100));
            account.account.record(&split);
        }
        let account = Fact::Known(account);
        let tail = KnownCauses::of(None, &account).beyond(Some((50_000.0, 800))).remove(0);
        assert_eq!(
            (tail.source, tail.samples, tail.known, tail.mixture),
            (CauseSource::Account, 800, 800, Some(true))
        );
        // Without a threshold: the longest hundredth.
        let tail = KnownCauses::of(None, &account).beyond(None).remove(0);
        assert_eq!((tail.samples, tail.dominant), (400, true), "{tail:?}");
    }
}
