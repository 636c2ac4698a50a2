//! Samples delayed by punctual itself, as far as events or cycles show it.

use serde::{Deserialize, Serialize};

/// The maximum number kept per series: the longest.
const MAX_OBSERVED: usize = 64;

/// The observed samples of a series.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ObservedSeries {
    pub phase: String,
    pub series: String,
    pub samples: ObservedSamples,
}

/// The longest, the first of them first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObservedSamples(Vec<ObservedSample>);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ObservedSample {
    /// In ns.
    pub latency: i64,
    /// The part taken by threads of punctual, in ns.
    pub observer: i64,
}

impl ObservedSamples {
    /// Adds a sample if punctual took a part of it.
    pub fn add(&mut self, sample: ObservedSample) {
        if sample.observer <= 0 {
            return;
        }
        let place = self.0.partition_point(|one| one.latency >= sample.latency);
        self.0.insert(place, sample);
        self.0.truncate(MAX_OBSERVED);
    }

    pub fn iter(&self) -> impl Iterator<Item = &ObservedSample> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_observed_samples_are_kept() {
        let mut samples = ObservedSamples::default();
        (0..100)
            .for_each(|n| samples.add(ObservedSample { latency: n * 7 % 100, observer: n % 10 }));
        assert!(samples.0.is_sorted_by(|a, b| a.latency >= b.latency));
        assert!(samples.0.len() == MAX_OBSERVED && samples.iter().all(|one| one.observer > 0));
    }
}
