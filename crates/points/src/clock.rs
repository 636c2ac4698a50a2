//! Converts the processor's counter to CLOCK_MONOTONIC.
//!
//! The kernel steers CLOCK_MONOTONIC: from time to time its rate relative to the counter changes by
//! parts per million. So both are read together continuously ([`pair`]), and an instant is
//! converted by the two pairs around it. Between two exact pairs, the line through them is off by
//! at most the deviation of the rate from its mean times the distance to the nearer pair. The
//! deviation is estimated from the difference of rates between neighbouring segments: this bounds
//! it if the rate changes at most once in three segments, and any NTP client waits longer than 300
//! ms between two corrections. Without a neighbour, it is the kernel's maximum.

use punctual_core::{MonotonicNs, Nanos};
use punctual_testpoint::counter::{self, Pair};

/// The minimum distance of pairs; closer ones replace one another: 100 ms.
const SPACING: i64 = 100_000_000;
/// Pairs kept. Points are converted within seconds; only those of a writer that was stopped
/// meanwhile need old ones.
const KEPT_PAIRS: usize = 8_192;
/// The maximum that adjtimex(2) allows: 500 ppm.
const MOST_STEERED: f64 = 500e-6;
/// The kernel dithers the rate by one unit of its multiplier (timekeeping_adjust() in
/// kernel/time/timekeeping.c): well below this.
const DITHER: f64 = 0.25e-6;

/// Pairs of readings, in time order.
#[derive(Clone, Debug)]
pub struct ClockPairs {
    pairs: Vec<Pair>,
}

/// The time between two pairs.
#[derive(Clone, Copy, Debug)]
pub struct ClockSegment {
    from: u64,
    to: u64,
    began: i64,
    /// ns per tick.
    rate: f64,
    /// The maximum error of an instant in this segment.
    pub error: Nanos,
}

impl ClockSegment {
    /// The instant, if the counter's value lies within this segment.
    #[inline]
    pub(crate) fn convert_ticks(&self, ticks: u64) -> Option<MonotonicNs> {
        (self.from <= ticks && ticks <= self.to)
            .then(|| MonotonicNs(self.began + ((ticks - self.from) as f64 * self.rate) as i64))
    }
}

impl ClockPairs {
    pub(crate) fn read_first() -> ClockPairs {
        ClockPairs::from_pair(counter::pair())
    }

    pub fn from_pair(pair: Pair) -> ClockPairs {
        ClockPairs { pairs: vec![pair] }
    }

    /// Reads both clocks again: the new value of the counter is the end of the convertible range.
    pub fn read(&mut self) {
        self.add(counter::pair());
    }

    /// Adds a pair that is later than all earlier ones.
    pub fn add(&mut self, pair: Pair) {
        let last = self.pairs[self.pairs.len() - 1];
        if pair.ticks <= last.ticks {
            return;
        }
        // The newest pair represents the present; it is kept only if it is far enough from the
        // previous one.
        if self.pairs.len() > 1
            && last.monotonic - self.pairs[self.pairs.len() - 2].monotonic < SPACING
        {
            self.pairs.pop();
        }
        if self.pairs.len() == KEPT_PAIRS {
            self.pairs.drain(1..KEPT_PAIRS / 2);
        }
        self.pairs.push(pair);
    }

    /// The first and the last reading of the counter.
    pub(crate) fn tick_range(&self) -> (u64, u64) {
        (self.pairs[0].ticks, self.pairs[self.pairs.len() - 1].ticks)
    }

    pub(crate) fn first_pair(&self) -> Pair {
        self.pairs[0]
    }

    pub(crate) fn last_pair(&self) -> Pair {
        self.pairs[self.pairs.len() - 1]
    }

    /// The segment that holds this reading of the counter; `None` outside of the range of the
    /// pairs.
    pub(crate) fn segment_at(&self, ticks: u64) -> Option<ClockSegment> {
        let (first, last) = self.tick_range();
        if ticks < first || ticks > last || self.pairs.len() < 2 {
            return None;
        }
        let place =
            self.pairs.partition_point(|pair| pair.ticks <= ticks).clamp(1, self.pairs.len() - 1)
                - 1;
        let rate = |place: usize| self.rate_at(place);
        let mine = rate(place)?;
        let differs = |other: f64| (other / mine - 1.0).abs();
        let deviation = match (
            place.checked_sub(1).and_then(rate).map(differs),
            rate(place + 1).map(differs),
        ) {
            (Some(before), Some(after)) => before.max(after),
            // If the rate changes near the end that has a neighbour, the difference is nearly the
            // whole change; if it changes near the other end, the difference is a small part of it.
            (Some(one), None) | (None, Some(one)) => 2.0 * one,
            (None, None) => MOST_STEERED,
        };
        let (a, b) = (self.pairs[place], self.pairs[place + 1]);
        let half = (b.ticks - a.ticks) as f64 * mine / 2.0;
        let reading = a.error.max(b.error) as f64 * mine;
        let error = reading + half * (deviation + DITHER) + 1.0;
        Some(ClockSegment {
            from: a.ticks,
            to: b.ticks,
            began: a.monotonic,
            rate: mine,
            error: Nanos(error.ceil() as i64),
        })
    }

    /// ns per tick between this pair and the next.
    fn rate_at(&self, place: usize) -> Option<f64> {
        let (a, b) = (self.pairs.get(place)?, self.pairs.get(place + 1)?);
        Some((b.monotonic - a.monotonic) as f64 / (b.ticks - a.ticks) as f64)
    }

    /// This clock extended back to the pair that a process stored at its beginning. `None` if that
    /// pair is impossible on this machine since its start: the process lies, or its file is
    /// foreign.
    pub(crate) fn extended_to_birth(&self, birth: Pair) -> Option<ClockPairs> {
        let first = self.first_pair();
        if birth.ticks > self.tick_range().1 {
            return None;
        }
        let rate = self.rate_at(0)?;
        let expected = first.monotonic as f64 - (first.ticks as f64 - birth.ticks as f64) * rate;
        let distance = (first.monotonic as f64 - expected).abs();
        let slack = distance * 2.0 * MOST_STEERED + birth.error as f64 * rate + 1e6;
        if (birth.monotonic as f64 - expected).abs() > slack || birth.error as f64 * rate > 1e6 {
            return None;
        }
        let mut pairs = vec![birth];
        pairs.extend(
            self.pairs
                .iter()
                .filter(|pair| pair.ticks > birth.ticks && pair.monotonic > birth.monotonic),
        );
        Some(ClockPairs { pairs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A counter of 2.6 GHz and a clock that is steered by another `ppm` every 500 ms.
    fn steered(ppm: &[i64]) -> (ClockPairs, impl Fn(u64) -> f64) {
        let step = 1_300_000_000_u64;
        let mut pairs = vec![(1_000_u64, 5e9_f64)];
        for ppm in ppm {
            let (ticks, at) = pairs[pairs.len() - 1];
            pairs.push((ticks + step, at + step as f64 / 2.6 * (1.0 + *ppm as f64 * 1e-6)));
        }
        let mut clock = ClockPairs::from_pair(Pair {
            ticks: pairs[0].0,
            monotonic: pairs[0].1 as i64,
            error: 26,
        });
        // Three pairs between two changes of rate.
        let truth = move |ticks: u64| {
            let place = pairs.partition_point(|pair| pair.0 <= ticks).clamp(1, pairs.len() - 1);
            let ((t0, n0), (t1, n1)) = (pairs[place - 1], pairs[place]);
            n0 + (ticks as f64 - t0 as f64) * (n1 - n0) / (t1 - t0) as f64
        };
        for i in 0..3 * ppm.len() as u64 {
            let ticks = 1_000 + i * (step / 3) + step / 5;
            clock.add(Pair { ticks, monotonic: truth(ticks) as i64, error: 26 });
        }
        (clock, truth)
    }

    proptest! {
        #[test]
        fn the_error_of_a_converted_time_is_within_its_stated_bound(
            ppm in prop::collection::vec(-40_i64..40, 3..12),
            at in 0.0_f64..1.0,
        ) {
            let (clock, truth) = steered(&ppm);
            let (first, last) = clock.tick_range();
            let ticks = first + ((last - first) as f64 * at) as u64;
            let segment = clock.segment_at(ticks).unwrap();
            let off = segment.convert_ticks(ticks).unwrap().ns() as f64 - truth(ticks);
            prop_assert!(
                off.abs() <= segment.error.ns() as f64,
                "off by {off}, error {}",
                segment.error.ns()
            );
        }

        #[test]
        fn hostile_clock_pairs_never_panic(ticks: u64, monotonic: i64, error: u64, at: u64) {
            let (clock, _) = steered(&[1, 2, 3]);
            let segment =
                clock.extended_to_birth(Pair { ticks, monotonic, error }).and_then(|clock| clock
                    .segment_at(at));
            let _ = segment.and_then(|segment| segment.convert_ticks(at));
        }
    }

    #[test]
    fn times_outside_of_the_clock_pairs_are_not_converted() {
        let (clock, _) = steered(&[0, 0, 0]);
        let (first, last) = clock.tick_range();
        assert!(clock.segment_at(first - 1).is_none() && clock.segment_at(last + 1).is_none());
        assert!(clock.segment_at(first).is_some() && clock.segment_at(last).is_some());
    }

    #[test]
    fn a_pair_from_elsewhere_is_refused() {
        let (clock, truth) = steered(&[0, 0, 0]);
        let (_, last) = clock.tick_range();
        let pair =
            |ticks: u64, off: i64| Pair { ticks, monotonic: truth(ticks) as i64 + off, error: 26 };
        assert!(clock.extended_to_birth(pair(500, 0)).is_some());
        assert!(clock.extended_to_birth(pair(500, 3_000_000_000)).is_none());
        assert!(clock.extended_to_birth(pair(last + 10, 0)).is_none());
    }
}
