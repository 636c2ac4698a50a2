//! Counting samples in the thread that measures them: for loops so fast that a ring would be their main work.
//!
//! A [`Tally`] is memory that is there before the first sample; recording is some additions. Whoever owns the series merges it with
//! [`SeriesData::absorb`], which leaves the same statistics as [`SeriesData::record`] of each sample.

use crate::series::{HDR_DIGITS, HDR_MAX, WORST_KEPT, record_hdr};
use crate::{ClockNs, Nanos, Sample, SeriesData, SeriesShape};

/// Values below this have a bucket each: `2 · 10^HDR_DIGITS` rounded up to a power of two (HdrHistogram's sub-bucket count).
const UNIT_BUCKETS: u64 = 2_048;
const HALF: usize = UNIT_BUCKETS as usize / 2;
const _: () = assert!(HDR_DIGITS == 3);
/// Beyond values below [`UNIT_BUCKETS`], each power of two up to [`HDR_MAX`] takes half as many.
const BUCKETS: usize = bucket(HDR_MAX) + 1;

/// The bucket of a value: HdrHistogram's layout.
#[inline(always)]
const fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - 11).saturating_sub((value | (UNIT_BUCKETS - 1)).leading_zeros());
    (shift as usize) * HALF + (value >> shift) as usize
}

/// The least value of a bucket.
const fn edge(bucket: usize) -> u64 {
    if bucket < UNIT_BUCKETS as usize {
        return bucket as u64;
    }
    let shift = bucket / HALF - 1;
    ((bucket - shift * HALF) as u64) << shift
}

/// Samples of one series, counted. Single-threaded; handing it over is the caller's affair.
#[derive(Debug)]
pub struct Tally {
    whole: Box<[u64]>,
    exact: Box<[u64]>,
    /// The resolution, and 2^64 divided by it and rounded up; 0: divide.
    resolution: u64,
    reciprocal: u64,
    above: u64,
    below: u64,
    count: u64,
    min: i64,
    max: i64,
    sum: i64,
    sum_squares: u128,
    /// The worst, in no order, and the least latency among them once they are [`WORST_KEPT`].
    worst: Vec<Sample>,
    bar: i64,
    /// Buckets that are not empty lie in these ranges.
    whole_used: usize,
    exact_used: usize,
    /// When the first sample began.
    first: i64,
    /// Samples that came when nobody had room for them.
    dropped: u64,
}

impl Tally {
    /// An empty one, all of its memory touched.
    pub fn new(shape: SeriesShape) -> Tally {
        let resolution = shape.resolution.ns().max(1) as u64;
        let bins = (shape.range.ns().max(0) as u64 / resolution) as usize + 1;
        // n · ceil(2^64 / d) >> 64 is n / d for all n < d · bins as long as n · d < 2^64 (Granlund, Montgomery 1994).
        let sure = resolution > 1 && (resolution as u128).pow(2) * (bins as u128) < 1 << 64;
        let touched = |n: usize| {
            let mut memory: Box<[u64]> = (0..n).map(|_| u64::MAX).collect();
            memory.fill(0);
            memory
        };
        Tally {
            whole: touched(BUCKETS),
            exact: touched(bins),
            resolution,
            reciprocal: if sure { u64::MAX / resolution + 1 } else { 0 },
            above: 0,
            below: 0,
            count: 0,
            min: i64::MAX,
            max: i64::MIN,
            sum: 0,
            sum_squares: 0,
            worst: Vec::with_capacity(WORST_KEPT),
            bar: i64::MIN,
            whole_used: 0,
            exact_used: 0,
            first: 0,
            dropped: 0,
        }
    }

    /// Counts a sample. No allocation, no division, some nanoseconds.
    #[inline(always)]
    pub fn record(&mut self, seq: u64, begin: i64, end: i64, cpu: u32) {
        let latency = end.wrapping_sub(begin);
        let value = (latency.max(0) as u64).min(HDR_MAX);
        let place = bucket(value);
        self.whole[place] += 1;
        self.whole_used = self.whole_used.max(place + 1);
        if latency < 0 {
            self.below += 1;
        } else {
            let bin = match self.reciprocal {
                0 => value / self.resolution,
                reciprocal => ((u128::from(value) * u128::from(reciprocal)) >> 64) as u64,
            } as usize;
            match self.exact.get_mut(bin) {
                Some(count) => {
                    *count += 1;
                    self.exact_used = self.exact_used.max(bin + 1);
                }
                None => self.above += 1,
            }
        }
        if self.count == 0 {
            self.first = begin;
        }
        self.count += 1;
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
        self.sum = self.sum.wrapping_add(latency);
        let size = latency.unsigned_abs();
        self.sum_squares += u128::from(size) * u128::from(size);
        if latency > self.bar {
            self.keep(Sample { seq, due: ClockNs(begin), woke: ClockNs(end), cpu });
        }
    }

    /// Puts one among the worst. Seldom: the bar rises with every one kept.
    #[cold]
    #[inline(never)]
    fn keep(&mut self, sample: Sample) {
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

    /// A sample that was measured and could not be counted.
    pub fn drop_one(&mut self) {
        self.dropped += 1;
    }

    /// How many samples it holds.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// When its first sample began, the least and largest latency and the sum of all; `None` without samples.
    pub fn extent(&self) -> Option<(ClockNs, Nanos, Nanos, Nanos)> {
        (self.count > 0).then_some((ClockNs(self.first), Nanos(self.min), Nanos(self.max), Nanos(self.sum)))
    }

    /// The memory of its counts, to be locked.
    pub fn memory(&self) -> [&[u64]; 2] {
        [&self.whole, &self.exact]
    }

    /// Empties it. Touches only what was used.
    pub fn clear(&mut self) {
        self.whole[..self.whole_used].fill(0);
        self.exact[..self.exact_used].fill(0);
        self.worst.clear();
        (self.above, self.below, self.count, self.dropped) = (0, 0, 0, 0);
        (self.min, self.max, self.sum, self.sum_squares) = (i64::MAX, i64::MIN, 0, 0);
        (self.bar, self.whole_used, self.exact_used) = (i64::MIN, 0, 0);
    }
}

impl SeriesData {
    /// Takes in everything that a tally of the same shape holds.
    pub fn absorb(&mut self, tally: &Tally) {
        let occupied = tally.whole[..tally.whole_used].iter().enumerate().filter(|(_, n)| **n > 0);
        for (place, n) in occupied {
            record_hdr(&mut self.whole, Nanos(edge(place) as i64), *n);
            if let Some(corrected) = &mut self.corrected {
                record_hdr(corrected, Nanos(edge(place) as i64), *n);
            }
        }
        for (mine, n) in self.exact.bins.iter_mut().zip(&tally.exact[..tally.exact_used]) {
            *mine += n;
        }
        self.exact.above += tally.above;
        self.exact.below += tally.below;
        self.losses.recorded += tally.count;
        self.losses.dropped += tally.dropped;
        if tally.count == 0 {
            return;
        }
        self.min = Some(self.min.map_or(Nanos(tally.min), |min| min.min(Nanos(tally.min))));
        self.max = Some(self.max.map_or(Nanos(tally.max), |max| max.max(Nanos(tally.max))));
        self.sum += i128::from(tally.sum);
        self.sum_squares = self.sum_squares.map(|sum| sum.saturating_add(tally.sum_squares));
        let mut worst: Vec<&Sample> = tally.worst.iter().collect();
        worst.sort_by_key(|sample| sample.seq);
        worst.into_iter().for_each(|sample| self.keep_if_bad(sample));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counted_in_the_thread_is_the_same_as_recorded(
            latencies in proptest::collection::vec(prop_oneof![-5i64..5_000, 0i64..50_000_000, 0i64..(1 << 52)], 0..300),
            resolution in 1i64..5_000,
            split in 0usize..300,
        ) {
            let shape = SeriesShape { range: Nanos::MILLI, resolution: Nanos(resolution), period: None };
            let (mut one, mut other, mut tally) = (SeriesData::new(shape), SeriesData::new(shape), Tally::new(shape));
            for (k, latency) in latencies.iter().enumerate() {
                let (begin, end) = (k as i64 * 1_000, k as i64 * 1_000 + latency);
                one.record(&Sample { seq: k as u64, due: ClockNs(begin), woke: ClockNs(end), cpu: 1 }, 0);
                tally.record(k as u64, begin, end, 1);
                if k == split {
                    other.absorb(&tally);
                    tally.clear();
                }
            }
            other.absorb(&tally);
            prop_assert_eq!(&one.exact, &other.exact);
            prop_assert_eq!(&one.whole, &other.whole);
            prop_assert_eq!(&one.worst, &other.worst);
            prop_assert_eq!((one.min, one.max, one.sum, one.sum_squares), (other.min, other.max, other.sum, other.sum_squares));
            prop_assert_eq!(one.losses, other.losses);
        }
        #[test]
        fn edges_are_the_least_of_their_buckets(value in 0u64..=HDR_MAX) {
            prop_assert!(edge(bucket(value)) <= value);
            prop_assert_eq!(bucket(edge(bucket(value))), bucket(value));
        }
    }
}
