//! The data of a series of samples, identical in a run and in a bundle.

use crate::{LinearHistogram, Losses, Nanos, Sample, Unfinished};
use hdrhistogram::Histogram;

/// The default number of worst samples kept.
pub const WORST_KEPT: usize = 64;
/// The significant digits of the overall histogram: every value within 0.1 %.
pub(crate) const HDR_DIGITS: u8 = 3;
/// The limit of the overall histogram (12 days), which longer latencies are counted as; `max` stays
/// exact.
pub const HDR_MAX: u64 = 1 << 50;
/// The maximum number of missed periods that one sample adds to the corrected view: a limit on
/// work, not reached in real runs.
const CORRECTION_MAX: i64 = 10_000_000;

/// The parameters needed before the first sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeriesShape {
    /// The largest latency in the exact histogram.
    pub range: Nanos,
    /// The width of its bins.
    pub resolution: Nanos,
    /// The period, for samples expected at equal distances: missed periods can then be corrected
    /// for.
    pub period: Option<Nanos>,
}

/// The statistics of a series, updated sample by sample: the shape limits the memory, not the
/// number of samples.
#[derive(Clone, Debug)]
pub struct SeriesData {
    /// The period, if any.
    pub period: Option<Nanos>,
    /// The exact histogram in the requested range.
    pub exact: LinearHistogram,
    /// The overall HDR histogram in ns; negative latencies are counted as 0.
    pub whole: Histogram<u64>,
    /// The same including the samples of missed periods (Tene's correction for coordinated
    /// omission: a sample late by `L > period` hid latencies `L - period`, `L - 2·period`, …).
    /// Absent while it would not differ.
    pub corrected: Option<Histogram<u64>>,
    /// The smallest latency; `None` without samples.
    pub min: Option<Nanos>,
    pub max: Option<Nanos>,
    /// Sum of all latencies in ns.
    pub sum: i128,
    /// Sum of their squares in ns²; `None` if the source does not report it (imports).
    pub sum_squares: Option<u128>,
    /// The worst samples, the highest latency first.
    pub worst: Vec<Sample>,
    pub losses: Losses,
    /// The sample in progress at the end, which is in no other statistic.
    pub unfinished: Option<Unfinished>,
}

/// An empty, auto-resizing HDR histogram of punctual's precision.
pub fn empty_hdr() -> Histogram<u64> {
    let mut hdr = Histogram::new(HDR_DIGITS).expect("HDR_DIGITS is between 0 and 5");
    hdr.auto(true);
    hdr
}

/// Counts `n` samples of a latency in an HDR histogram within this module's limits.
pub fn record_hdr(hdr: &mut Histogram<u64>, latency: Nanos, n: u64) {
    let value = (latency.ns().max(0) as u64).min(HDR_MAX);
    hdr.record_n(value, n).expect("an auto-resizing histogram takes every value up to HDR_MAX");
}

impl SeriesData {
    pub fn new(shape: SeriesShape) -> SeriesData {
        SeriesData {
            period: shape.period,
            exact: LinearHistogram::new(shape.range, shape.resolution),
            whole: empty_hdr(),
            corrected: None,
            min: None,
            max: None,
            sum: 0,
            sum_squares: Some(0),
            worst: Vec::with_capacity(WORST_KEPT + 1),
            losses: Losses::default(),
            unfinished: None,
        }
    }

    /// The number of samples in the statistics.
    pub fn sample_count(&self) -> u64 {
        self.losses.recorded
    }

    /// Counts one sample; `missed` periods passed without one while it was late.
    pub fn record_sample(&mut self, sample: &Sample, missed: u64) {
        let latency = sample.latency();
        self.exact.record(latency);
        record_hdr(&mut self.whole, latency, 1);
        if let Some(corrected) = &mut self.corrected {
            record_hdr(corrected, latency, 1);
        }
        self.record_missed(latency, missed);
        self.min = Some(self.min.map_or(latency, |min| min.min(latency)));
        self.max = Some(self.max.map_or(latency, |max| max.max(latency)));
        self.sum += i128::from(latency.ns());
        let square = u128::from(latency.ns().unsigned_abs()).pow(2);
        self.sum_squares = self.sum_squares.map(|sum| sum.saturating_add(square));
        self.keep_if_bad(sample);
        self.losses.recorded += 1;
    }

    /// Counts periods without a sample during one of this latency, which is recorded separately.
    pub(crate) fn record_missed(&mut self, latency: Nanos, missed: u64) {
        if missed == 0 {
            return;
        }
        self.losses.skipped += missed;
        let period = self.period.map_or(0, Nanos::ns);
        let corrected = self.corrected.get_or_insert_with(|| self.whole.clone());
        for k in 1..=(missed as i64).min(CORRECTION_MAX) {
            let hidden = latency - Nanos(period) * k;
            if period == 0 || hidden.ns() <= 0 {
                break;
            }
            record_hdr(corrected, hidden, 1);
        }
    }

    /// Keeps the sample if it is among the worst. Of equal ones the earliest stays.
    pub(crate) fn keep_if_bad(&mut self, sample: &Sample) {
        if self.worst.len() == WORST_KEPT
            && self.worst.last().is_some_and(|w| w.latency() >= sample.latency())
        {
            return;
        }
        let place = self.worst.partition_point(|kept| kept.latency() >= sample.latency());
        self.worst.insert(place, *sample);
        self.worst.truncate(WORST_KEPT);
    }

    /// The unfinished sample, if it is significant: longer than every finished one, or a release
    /// passed meanwhile.
    pub fn hanging_sample(&self) -> Option<Unfinished> {
        let matters = |one: &Unfinished| {
            self.max.is_none_or(|max| one.lasted > max) || one.passed > 0 && !one.ended
        };
        self.unfinished.filter(matters)
    }

    /// The maximum including the lower bound of a hanging sample; `None` without samples.
    pub fn longest_latency(&self) -> Option<Nanos> {
        self.max.into_iter().chain(self.hanging_sample().map(|one| one.at_least)).max()
    }

    /// Adds the samples of another series of the same kind, as if one had recorded all.
    pub fn add(&mut self, other: &SeriesData) {
        let differs = self.corrected.is_some() || other.corrected.is_some();
        if differs {
            let mut corrected = self.corrected.take().unwrap_or_else(|| self.whole.clone());
            // Auto-resizing histograms of the same precision can always be added.
            let _ = corrected.add(other.corrected.as_ref().unwrap_or(&other.whole));
            self.corrected = Some(corrected);
        }
        let _ = self.whole.add(&other.whole);
        self.exact.add(&other.exact);
        self.min = self.min.into_iter().chain(other.min).min();
        self.max = self.max.into_iter().chain(other.max).max();
        self.sum += other.sum;
        self.sum_squares =
            self.sum_squares.zip(other.sum_squares).map(|(a, b)| a.saturating_add(b));
        other.worst.iter().for_each(|sample| self.keep_if_bad(sample));
        self.unfinished =
            self.unfinished.into_iter().chain(other.unfinished).max_by_key(|one| one.lasted);
        self.losses.recorded += other.losses.recorded;
        self.losses.skipped += other.losses.skipped;
        self.losses.dropped += other.losses.dropped;
        self.losses.lost_records += other.losses.lost_records;
        let overruns = [self.losses.overruns, other.losses.overruns];
        self.losses.overruns = overruns.into_iter().flatten().reduce(u64::saturating_add);
    }

    /// Mean latency in ns; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        (self.sample_count() > 0).then(|| self.sum as f64 / self.sample_count() as f64)
    }

    /// Standard deviation in ns of the samples as a population; `None` without samples or if the
    /// source does not report it.
    pub fn stddev(&self) -> Option<f64> {
        let n = self.sample_count();
        let squares = self.sum_squares.filter(|_| n > 0)?;
        // n·Σx² − (Σx)² in integers: no cancellation however small the spread.
        let spread = u128::from(n)
            .checked_mul(squares)?
            .checked_sub(self.sum.unsigned_abs().checked_pow(2)?)?;
        Some((spread as f64).sqrt() / n as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClockNs;
    use proptest::prelude::*;

    fn series(latencies: &[i64]) -> SeriesData {
        let shape = SeriesShape {
            range: Nanos::MILLI,
            resolution: Nanos::MICRO,
            period: Some(Nanos::MILLI),
        };
        let mut data = SeriesData::new(shape);
        for (seq, latency) in latencies.iter().enumerate() {
            let due = seq as i64 * 1_000_000;
            let sample =
                Sample { seq: seq as u64, due: ClockNs(due), woke: ClockNs(due + latency), cpu: 0 };
            data.record_sample(&sample, (*latency / 1_000_000).max(0) as u64);
        }
        data
    }

    #[test]
    fn mean_and_standard_deviation_are_exact() {
        let data = series(&[2_000, 4_000, 4_000, 4_000, 5_000, 5_000, 7_000, 9_000]);
        assert_eq!(data.mean(), Some(5_000.0));
        assert_eq!(data.stddev(), Some(2_000.0));
        assert_eq!((data.min, data.max), (Some(Nanos(2_000)), Some(Nanos(9_000))));
    }

    #[test]
    fn a_late_sample_adds_its_missed_periods_to_the_corrected_figures() {
        let data = series(&[10_000, 3_500_000, 10_000]);
        assert_eq!(data.whole.len(), 3);
        let corrected = data.corrected.expect("an overrun makes a corrected view");
        assert_eq!(corrected.len(), 6, "3.5 ms late at a period of 1 ms hides 2.5, 1.5 and 0.5 ms");
        assert_eq!(data.losses.skipped, 3);
    }

    #[test]
    fn without_missed_periods_there_are_no_corrected_figures() {
        assert!(series(&[1_000, 2_000]).corrected.is_none());
    }

    proptest! {
        #[test]
        fn the_worst_samples_are_kept_sorted(
            latencies in proptest::collection::vec(0i64..5_000_000, 0..300),
        ) {
            let data = series(&latencies);
            let mut sorted = latencies.clone();
            sorted.sort_by(|a, b| b.cmp(a));
            sorted.truncate(WORST_KEPT);
            let kept: Vec<i64> = data.worst.iter().map(|s| s.latency().ns()).collect();
            prop_assert_eq!(kept, sorted);
            prop_assert_eq!(data.exact.total_count(), data.sample_count());
            prop_assert_eq!(data.whole.len(), data.sample_count());
        }

        #[test]
        fn a_merged_series_equals_one_with_all_samples(
            first in proptest::collection::vec(0i64..5_000_000, 0..100),
            second in proptest::collection::vec(0i64..5_000_000, 0..100),
        ) {
            let mut both = series(&first);
            both.add(&series(&second));
            let one = series(&[first, second].concat());
            prop_assert_eq!(
                (both.sample_count(), both.min, both.max, both.sum, both.sum_squares),
                (one.sample_count(), one.min, one.max, one.sum, one.sum_squares)
            );
            prop_assert_eq!(
                (&both.whole, &both.corrected, both.losses),
                (&one.whole, &one.corrected, one.losses)
            );
            prop_assert_eq!(
                both.exact.occupied_bins().collect::<Vec<_>>(),
                one.exact.occupied_bins().collect::<Vec<_>>()
            );
            prop_assert_eq!(
                both.worst.iter().map(Sample::latency).collect::<Vec<_>>(),
                one.worst.iter().map(Sample::latency).collect::<Vec<_>>()
            );
        }
    }
}
