//! The dominant part of the time in each range of a distribution.

use punctual_bundle::SeriesAccount;
use punctual_bundle::summary::{AccountBand, AccountSummary};
use punctual_core::cause::CAUSES;
use punctual_core::{Account, AccountBucket, Fact, MAIN_PARTS};
use std::collections::BTreeMap;

pub const BANDS: [(f64, f64); 5] =
    [(0.0, 50.0), (50.0, 90.0), (90.0, 99.0), (99.0, 99.9), (99.9, 100.0)];

/// The summary of the accounting of a series.
pub(crate) fn summarize_account(account: &Fact<SeriesAccount>) -> Fact<AccountSummary> {
    let account = match account {
        Fact::Known(account) => account,
        Fact::Unavailable(why) => return Fact::Unavailable(why.clone()),
        Fact::NotAsked => return Fact::NotAsked,
    };
    let bands = BANDS.map(|(from, to)| account_band(&account.account, from, to));
    Fact::Known(AccountSummary {
        samples: account.account.sample_count(),
        unattributed: account.unattributed,
        lost: account.lost,
        cost: account.cost.clone(),
        whole: account_band(&account.account, 0.0, 100.0),
        bands: bands.into_iter().filter(|band| band.count >= 0.5).collect(),
    })
}

/// The samples between two percentiles, by rank: from `from` percent up to, and excluding, `to`
/// percent.
pub(crate) fn account_band(account: &Account, from: f64, to: f64) -> AccountBand {
    let sample_count = account.sample_count() as f64;
    let (first, end) = (sample_count * from / 100.0, sample_count * to / 100.0);
    let (mut before, mut sums, mut longest) = (0.0, [0.0; CAUSES], [0.0; CAUSES]);
    let (mut count, mut low, mut high) = (0.0, None, 0);
    for (edge, bucket) in account.occupied_buckets() {
        let band_count = samples_in_ranks(before, bucket, first, end);
        before += bucket.count as f64;
        if band_count <= 0.0 {
            continue;
        }
        let share = band_count / bucket.count as f64;
        count += band_count;
        low.get_or_insert(edge);
        high = edge.saturating_add(Account::bucket_width(edge));
        sums.iter_mut().zip(bucket.parts).for_each(|(sum, ns)| *sum += ns as f64 * share);
        longest.iter_mut().zip(bucket.longest).for_each(|(sum, n)| *sum += n as f64 * share);
    }
    let total: f64 = MAIN_PARTS.iter().map(|part| sums[*part as usize]).sum();
    let largest_part =
        MAIN_PARTS.iter().copied().max_by(|a, b| sums[*a as usize].total_cmp(&sums[*b as usize]));
    let dominant = largest_part.filter(|part| sums[*part as usize] > 0.0);
    AccountBand {
        from,
        to,
        count,
        low_ns: low.unwrap_or(0),
        high_ns: high,
        mean_ns: by_word(&sums, |sum| sum / count),
        longest: by_word(&longest, |n| n),
        share: dominant.map_or(0.0, |part| sums[part as usize] / total),
        dominant,
    }
}

/// The number of samples of a bucket, after `before` earlier ones, with ranks between the two.
fn samples_in_ranks(before: f64, bucket: &AccountBucket, first: f64, end: f64) -> f64 {
    (before + bucket.count as f64).min(end) - before.max(first)
}

fn by_word(values: &[f64; CAUSES], each: impl Fn(f64) -> f64) -> BTreeMap<String, f64> {
    let named = MAIN_PARTS.iter().map(|part| (part.id().to_owned(), values[*part as usize]));
    named.filter(|(_, value)| *value > 0.0).map(|(word, value)| (word, each(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::{CauseKind, Nanos, Split};

    /// 990 fast samples, mostly interrupt, and ten slow ones, mostly a task that was not preempted.
    fn account() -> Account {
        let mut account = Account::default();
        for k in 0..1_000 {
            let mut split = Split::default();
            split.add(CauseKind::Irq, Nanos(3_000));
            split.add(CauseKind::NonPreemptible, Nanos(if k % 100 == 0 { 97_000 } else { 1_000 }));
            account.record_split(&split);
        }
        account
    }

    #[test]
    fn each_band_has_its_own_dominant_part() {
        let known = SeriesAccount { account: account(), ..SeriesAccount::default() };
        let Fact::Known(summary) = summarize_account(&Fact::Known(known)) else {
            panic!("it is known")
        };
        let rows: Vec<_> = summary
            .bands
            .iter()
            .map(|b| (b.to, b.count.round() as u64, b.dominant, (b.share * 100.0) as u32))
            .collect();
        let (irq, switch) = (Some(CauseKind::Irq), Some(CauseKind::NonPreemptible));
        assert_eq!(
            rows,
            [
                (50.0, 500, irq, 75),
                (90.0, 400, irq, 75),
                (99.0, 90, irq, 75),
                (99.9, 9, switch, 97),
                (100.0, 1, switch, 97)
            ]
        );
        let mean: f64 = summary.whole.mean_ns.values().sum();
        assert!((mean - 4_960.0).abs() < 1e-6);
        assert_eq!(summary.bands[3].longest["non-preemptible"].round(), 9.0);
    }

    #[test]
    fn an_empty_account_has_no_dominant_part() {
        let band = account_band(&Account::default(), 0.0, 100.0);
        assert_eq!(
            (band.count, band.dominant, band.share, band.mean_ns.len()),
            (0.0, None, 0.0, 0)
        );
        assert_eq!(summarize_account(&Fact::NotAsked), Fact::NotAsked);
    }
}
