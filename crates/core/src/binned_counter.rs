//! Counts samples in the measuring thread: for loops so fast that a ring would be most of their
//! work.
//!
//! A [`BinnedCounter`] is allocated before the first sample; recording takes a few additions. The
//! owner of the series merges it with [`SeriesData::absorb_counter`], with the same statistics as
//! from [`SeriesData::record_sample`] of each sample.

use crate::series::{HDR_DIGITS, HDR_MAX, WORST_KEPT, record_hdr};
use crate::{ClockNs, Nanos, Sample, SeriesData, SeriesShape};

/// The values below this have a bucket each: `2 · 10^HDR_DIGITS` rounded up to a power of two
/// (HdrHistogram's sub-bucket count).
const UNIT_BUCKETS: u64 = 2_048;
const HALF: usize = UNIT_BUCKETS as usize / 2;
const _: () = assert!(HDR_DIGITS == 3);
/// Above [`UNIT_BUCKETS`], each power of two up to [`HDR_MAX`] takes half as many buckets.
const BUCKETS: usize = bucket_of_value(HDR_MAX) + 1;

/// The bucket of a value: HdrHistogram's layout.
#[inline(always)]
const fn bucket_of_value(value: u64) -> usize {
    let shift = (u64::BITS - 11).saturating_sub((value | (UNIT_BUCKETS - 1)).leading_zeros());
    (shift as usize) * HALF + (value >> shift) as usize
}

/// The smallest value of a bucket.
const fn bucket_edge(bucket: usize) -> u64 {
    if bucket < UNIT_BUCKETS as usize {
        return bucket as u64;
    }
    let shift = bucket / HALF - 1;
    ((bucket - shift * HALF) as u64) << shift
}

/// Counted samples of one series. Single-threaded; sharing is up to the caller.
///
/// Latencies below 2,048 ns are only counted: all their statistics follow exactly from those
/// counts.
#[derive(Debug)]
pub struct BinnedCounter {
    /// The numbers of samples of 0, 1, 2, … ns.
    units: [u64; UNIT_BUCKETS as usize],
    /// The other samples, in HdrHistogram's layout.
    whole: Box<[u64]>,
    /// The other samples in the requested range.
    exact: Box<[u64]>,
    resolution: u64,
    /// The following fields cover only the other samples.
    above: u64,
    below: u64,
    count: u64,
    min: i64,
    max: i64,
    sum: i64,
    sum_squares: u128,
    /// The upper bounds of non-empty buckets.
    whole_used: usize,
    exact_used: usize,
    /// The worst samples, unordered, and the smallest latency among them once they are
    /// [`WORST_KEPT`].
    worst: Vec<Sample>,
    bar: i64,
    /// The start of the first sample; `i64::MIN` before it.
    first: i64,
    /// Periods without a sample, and the first samples during which they passed.
    missed: u64,
    late: Vec<(Nanos, u64)>,
}

/// The maximum number of samples with missed periods kept until the counter is emptied. The missed
/// periods of further ones are counted, but not in the corrected view.
const LATE_KEPT: usize = 1_024;

impl BinnedCounter {
    /// An empty counter, with all of its memory touched.
    pub fn new(shape: SeriesShape) -> BinnedCounter {
        let resolution = shape.resolution.ns().max(1) as u64;
        let bins = (shape.range.ns().max(0) as u64 / resolution) as usize + 1;
        let touched = |n: usize| {
            let mut memory: Box<[u64]> = (0..n).map(|_| u64::MAX).collect();
            memory.fill(0);
            memory
        };
        BinnedCounter {
            units: [0; UNIT_BUCKETS as usize],
            whole: touched(BUCKETS),
            exact: touched(bins),
            resolution,
            above: 0,
            below: 0,
            count: 0,
            min: i64::MAX,
            max: i64::MIN,
            sum: 0,
            sum_squares: 0,
            whole_used: 0,
            exact_used: 0,
            worst: Vec::with_capacity(WORST_KEPT),
            bar: i64::MIN,
            first: i64::MIN,
            missed: 0,
            late: Vec::with_capacity(LATE_KEPT),
        }
    }

    /// Counts a sample without allocation; a latency below 2,048 ns takes an addition and two
    /// comparisons.
    #[inline(always)]
    pub fn record_sample(&mut self, seq: u64, begin: i64, end: i64, cpu: u32) {
        let latency = end.wrapping_sub(begin);
        if self.first == i64::MIN {
            self.first = begin;
        }
        if (latency as u64) < UNIT_BUCKETS {
            self.units[latency as usize] += 1;
        } else {
            self.record_other(latency);
        }
        if latency > self.bar {
            self.keep_worst(Sample { seq, due: ClockNs(begin), woke: ClockNs(end), cpu });
        }
    }

    /// Counts periods without a sample during a sample of this latency.
    #[cold]
    #[inline(never)]
    pub fn count_missed(&mut self, latency: i64, missed: u64) {
        self.missed = self.missed.saturating_add(missed);
        if self.late.len() < LATE_KEPT {
            self.late.push((Nanos(latency), missed));
        }
    }

    /// Counts a long or negative latency.
    #[inline(never)]
    fn record_other(&mut self, latency: i64) {
        let place = bucket_of_value((latency.max(0) as u64).min(HDR_MAX));
        self.whole[place] += 1;
        self.whole_used = self.whole_used.max(place + 1);
        self.count += 1;
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
        self.sum = self.sum.wrapping_add(latency);
        self.sum_squares = self.sum_squares.saturating_add(square_latency(latency));
        if latency < 0 {
            self.below += 1;
            return;
        }
        // Not by the HDR value: latencies above the largest bucket are beyond every range.
        let bin = usize::try_from(latency as u64 / self.resolution).unwrap_or(usize::MAX);
        match self.exact.get_mut(bin) {
            Some(count) => {
                *count += 1;
                self.exact_used = self.exact_used.max(bin + 1);
            }
            None => self.above += 1,
        }
    }

    /// Adds a sample to the worst. Rare, as the threshold rises with each.
    #[cold]
    #[inline(never)]
    fn keep_worst(&mut self, sample: Sample) {
        if self.worst.len() < WORST_KEPT {
            self.worst.push(sample);
        } else if let Some(least) =
            self.worst.iter_mut().min_by_key(|kept| (kept.latency(), std::cmp::Reverse(kept.seq)))
        {
            *least = sample;
        }
        if self.worst.len() == WORST_KEPT {
            self.bar = self.worst.iter().map(|kept| kept.latency().ns()).min().unwrap_or(i64::MIN);
        }
    }

    /// The latencies below 2,048 ns that occurred, ascending, with their counts.
    fn short_latencies(&self) -> impl DoubleEndedIterator<Item = (i64, u64)> + '_ {
        self.units
            .iter()
            .enumerate()
            .filter(|(_, n)| **n > 0)
            .map(|(latency, n)| (latency as i64, *n))
    }

    /// The number of samples.
    pub fn sample_count(&self) -> u64 {
        self.units.iter().sum::<u64>() + self.count
    }

    /// The start of the first sample, the smallest and largest latency, and the sum; `None` without
    /// samples.
    pub fn latency_extent(&self) -> Option<(ClockNs, Nanos, Nanos, Nanos)> {
        let min =
            self.short_latencies().next().map_or(self.min, |(latency, _)| latency.min(self.min));
        let max = self
            .short_latencies()
            .next_back()
            .map_or(self.max, |(latency, _)| latency.max(self.max));
        let sum = self
            .short_latencies()
            .fold(self.sum, |sum, (latency, n)| sum.wrapping_add(latency.wrapping_mul(n as i64)));
        (self.first != i64::MIN).then_some((
            ClockNs(self.first),
            Nanos(min),
            Nanos(max),
            Nanos(sum),
        ))
    }

    /// The worst samples since it was emptied, unordered.
    pub fn worst_samples(&self) -> &[Sample] {
        &self.worst
    }

    /// The memory of its counts, for locking.
    pub fn counts_memory(&self) -> [&[u64]; 3] {
        [&self.units[..], &self.whole, &self.exact]
    }

    /// Empties it, touching only used memory.
    pub fn clear(&mut self) {
        self.units.fill(0);
        self.whole[..self.whole_used].fill(0);
        self.exact[..self.exact_used].fill(0);
        self.worst.clear();
        self.late.clear();
        self.missed = 0;
        (self.above, self.below, self.count) = (0, 0, 0);
        (self.min, self.max, self.sum, self.sum_squares) = (i64::MAX, i64::MIN, 0, 0);
        (self.bar, self.whole_used, self.exact_used, self.first) = (i64::MIN, 0, 0, i64::MIN);
    }
}

fn square_latency(latency: i64) -> u128 {
    let size = u128::from(latency.unsigned_abs());
    size * size
}

impl SeriesData {
    /// Adds the samples of a counter of the same shape.
    pub fn absorb_counter(&mut self, counter: &BinnedCounter) {
        let Some((_, min, max, _)) = counter.latency_extent() else { return };
        self.min = Some(self.min.map_or(min, |so_far| so_far.min(min)));
        self.max = Some(self.max.map_or(max, |so_far| so_far.max(max)));
        let other_buckets =
            counter.whole[..counter.whole_used].iter().enumerate().filter(|(_, n)| **n > 0);
        let other_latencies = other_buckets.map(|(place, n)| (bucket_edge(place) as i64, *n));
        for (latency, n) in counter.short_latencies().chain(other_latencies) {
            record_hdr(&mut self.whole, Nanos(latency), n);
            if let Some(corrected) = &mut self.corrected {
                record_hdr(corrected, Nanos(latency), n);
            }
        }
        let (mut sum, mut squares) = (i128::from(counter.sum), counter.sum_squares);
        for (latency, n) in counter.short_latencies() {
            self.exact.record_n(Nanos(latency), n);
            sum += i128::from(latency) * i128::from(n);
            squares = squares.saturating_add(square_latency(latency) * u128::from(n));
        }
        for (mine, n) in self.exact.bins.iter_mut().zip(&counter.exact[..counter.exact_used]) {
            *mine += n;
        }
        self.exact.above += counter.above;
        self.exact.below += counter.below;
        self.losses.recorded += counter.sample_count();
        self.sum += sum;
        self.sum_squares = self.sum_squares.map(|so_far| so_far.saturating_add(squares));
        let mut worst: Vec<&Sample> = counter.worst.iter().collect();
        worst.sort_by_key(|sample| sample.seq);
        worst.into_iter().for_each(|sample| self.keep_if_bad(sample));
        let kept = counter.late.iter().map(|(_, missed)| missed).sum::<u64>();
        counter.late.iter().for_each(|(latency, missed)| self.record_missed(*latency, *missed));
        self.losses.skipped += counter.missed - kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counted_in_the_thread_is_the_same_as_recorded(
            latencies in proptest::collection::vec(
                prop_oneof![-5i64..5_000, 0i64..50_000_000, 0i64..(1 << 52)],
                0..300,
            ),
            resolution in 1i64..5_000,
            split in 0usize..300,
        ) {
            let period = Some(Nanos(1_000_000));
            let shape = SeriesShape { range: Nanos::MILLI, resolution: Nanos(resolution), period };
            let (mut one, mut other, mut counter) =
                (SeriesData::new(shape), SeriesData::new(shape), BinnedCounter::new(shape));
            for (k, latency) in latencies.iter().enumerate() {
                let (begin, end) = (k as i64 * 1_000, k as i64 * 1_000 + latency);
                let periods = (*latency / 1_000_000).max(0) as u64;
                let missed = if periods < 1_000 { periods } else { 0 };
                one.record_sample(
                    &Sample { seq: k as u64, due: ClockNs(begin), woke: ClockNs(end), cpu: 1 },
                    missed,
                );
                counter.record_sample(k as u64, begin, end, 1);
                if missed > 0 {
                    counter.count_missed(*latency, missed);
                }
                if k == split {
                    other.absorb_counter(&counter);
                    counter.clear();
                }
            }
            other.absorb_counter(&counter);
            prop_assert_eq!(&one.exact, &other.exact);
            prop_assert_eq!(&one.whole, &other.whole);
            prop_assert_eq!(&one.worst, &other.worst);
            prop_assert_eq!(
                (one.min, one.max, one.sum, one.sum_squares),
                (other.min, other.max, other.sum, other.sum_squares)
            );
            prop_assert_eq!(one.losses, other.losses);
            prop_assert_eq!(one.corrected, other.corrected);
        }
        #[test]
        fn edges_are_the_least_of_their_buckets(value in 0u64..=HDR_MAX) {
            prop_assert!(bucket_edge(bucket_of_value(value)) <= value);
            prop_assert_eq!(bucket_of_value(bucket_edge(bucket_of_value(value))),
                bucket_of_value(value));
        }
    }
}
