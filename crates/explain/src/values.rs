//! The values of test points as curves over time, in a bounded number of buckets.

use punctual_core::event::PointId;
use punctual_core::{Event, EventKind, MonotonicNs, Nanos};
use std::collections::BTreeMap;

/// The maximum number of curves; values of other points are counted.
const CURVES: usize = 512;
/// The default number of buckets per curve.
pub const BUCKETS: usize = 400;

/// The values of one point over time.
#[derive(Clone, PartialEq, Debug)]
pub struct PointCurve {
    pub point: PointId,
    /// Its first value (0) or its second (1).
    pub index: usize,
    /// The non-empty buckets, ascending.
    pub buckets: Vec<ValueBucket>,
    /// The width of a bucket.
    pub width: Nanos,
}

/// The values of one bucket of time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ValueBucket {
    pub start: MonotonicNs,
    /// The number of values; never 0.
    pub count: u64,
    pub min: i64,
    /// The mean of the values in this bucket.
    pub mean: f64,
    pub max: i64,
}

#[derive(Clone, Copy, Default)]
struct ValueSums {
    count: u64,
    min: i64,
    max: i64,
    sum: i128,
}

/// Reads the values of all points.
pub struct Curves {
    began: MonotonicNs,
    width: i64,
    buckets: usize,
    all: BTreeMap<(PointId, usize), Vec<ValueSums>>,
    untracked: u64,
}

impl Curves {
    /// Over this time, in at most `buckets` buckets (at least one).
    pub fn new(began: MonotonicNs, ended: MonotonicNs, buckets: usize) -> Curves {
        let buckets = buckets.max(1);
        let span = (ended - began).ns().max(0);
        let width = span / buckets as i64 + 1;
        Curves { began, width, buckets, all: BTreeMap::new(), untracked: 0 }
    }

    /// Takes the event if it is a point with values; `point` represents its name.
    pub fn push(&mut self, event: &Event, point: PointId) {
        let EventKind::Point { count, values, .. } = event.what else { return };
        let place = ((event.at - self.began).ns().max(0) / self.width) as usize;
        for (index, value) in values.iter().enumerate().take(count.into()) {
            let key = (point, index);
            if self.all.len() >= CURVES && !self.all.contains_key(&key) {
                self.untracked += 1;
                continue;
            }
            let curve =
                self.all.entry(key).or_insert_with(|| vec![ValueSums::default(); self.buckets]);
            curve[place.min(self.buckets - 1)].add(*value);
        }
    }

    /// The curves, and the number of values in none.
    pub fn finish(self) -> (Vec<PointCurve>, u64) {
        let Curves { began, width, all, untracked, .. } = self;
        let start = |place: usize| began + Nanos(width) * place as i64;
        let curve = |((point, index), sums): ((PointId, usize), Vec<ValueSums>)| PointCurve {
            point,
            index,
            buckets: sums
                .iter()
                .enumerate()
                .filter_map(|(place, sums)| sums.to_bucket(start(place)))
                .collect(),
            width: Nanos(width),
        };
        (all.into_iter().map(curve).collect(), untracked)
    }
}

impl ValueSums {
    fn add(&mut self, value: i64) {
        let first = self.count == 0;
        self.min = if first { value } else { self.min.min(value) };
        self.max = if first { value } else { self.max.max(value) };
        self.sum += i128::from(value);
        self.count += 1;
    }

    fn to_bucket(self, start: MonotonicNs) -> Option<ValueBucket> {
        let ValueSums { count, min, max, sum } = self;
        (count > 0).then(|| ValueBucket { start, count, min, mean: sum as f64 / count as f64, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::Tid;
    use punctual_core::event::PointKind;

    proptest! {
        #[test]
        fn no_value_is_lost(
            values in proptest::collection::vec((any::<i64>(), any::<i64>()), 0..100),
            buckets in 0usize..20,
        ) {
            let mut curves = Curves::new(MonotonicNs(0), MonotonicNs(1_000), buckets);
            for (at, value) in &values {
                let what = EventKind::Point {
                    point: PointId(3),
                    kind: PointKind::Point,
                    count: 1,
                    values: [*value, 9],
                };
                curves.push(&Event { at: MonotonicNs(*at), cpu: 0, tid: Tid(1), what }, PointId(3));
            }
            let (curves, untracked) = curves.finish();
            let buckets: Vec<&ValueBucket> =
                curves.iter().flat_map(|curve| &curve.buckets).collect();
            prop_assert_eq!(untracked, 0);
            prop_assert_eq!(buckets.iter().map(|b| b.count).sum::<u64>(), values.len() as u64);
            prop_assert_eq!(
                buckets.iter().map(|b| b.max).max(),
                values.iter().map(|(_, value)| *value).max()
            );
            prop_assert!(buckets.iter().all(|b| b.min as f64 <= b.mean && b.mean <= b.max as f64));
        }
    }
}
