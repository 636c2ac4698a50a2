//! The worst samples of a series so far: those that get a window.

use punctual_bundle::windows::SeriesWindows;
use punctual_core::{Nanos, Sample};

/// The windows kept of a series.
pub struct WorstSet {
    most: usize,
    above: Nanos,
    /// Kept windows, the worst first.
    kept: Vec<KeptWindow>,
    /// The counts of its samples by result.
    pub counts: SeriesWindows,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeptWindow {
    /// The latency of the sample.
    pub latency: Nanos,
    pub number: u64,
    /// The size of the window.
    pub bytes: u64,
    /// Whether events of its start are missing.
    pub partial: bool,
}

impl WorstSet {
    pub fn new(most: u32, above: Option<Nanos>, phase: &str, series: &str) -> WorstSet {
        let counts = SeriesWindows {
            phase: phase.to_owned(),
            series: series.to_owned(),
            ..SeriesWindows::default()
        };
        // A latency of zero needs no explanation.
        WorstSet { most: most as usize, above: above.unwrap_or(Nanos(1)), kept: Vec::new(), counts }
    }

    /// Whether a sample of this latency would be among the worst.
    fn is_among_worst(&self, latency: Nanos) -> bool {
        latency >= self.above
            && (self.kept.len() < self.most
                || self.kept.last().is_some_and(|least| latency > least.latency))
    }

    /// Adds a sample to those of one look that are worth a window, the worst first: at most as many
    /// as are kept.
    pub(crate) fn offer_sample(&mut self, sample: &Sample, found: &mut Vec<Sample>) {
        if !self.is_among_worst(sample.latency()) {
            return;
        }
        self.counts.selected += 1;
        let place = found.partition_point(|other| other.latency() >= sample.latency());
        found.insert(place, *sample);
        found.truncate(self.most);
    }

    /// The window that one of this latency would replace; `Err` if it is no longer among the worst.
    pub(crate) fn replaced_window(&self, latency: Nanos) -> Result<Option<KeptWindow>, ()> {
        match self.is_among_worst(latency) {
            true if self.kept.len() < self.most => Ok(None),
            true => Ok(self.kept.last().copied()),
            false => Err(()),
        }
    }

    /// Keeps a window in the place given by [`WorstSet::replaced_window`].
    pub(crate) fn keep_window(&mut self, window: KeptWindow) {
        if self.kept.len() >= self.most {
            let replaced = self.kept.pop();
            self.counts.replaced += 1;
            self.counts.partial -= u64::from(replaced.is_some_and(|window| window.partial));
        }
        let place = self.kept.partition_point(|other| other.latency >= window.latency);
        self.kept.insert(place, window);
        self.counts.partial += u64::from(window.partial);
        self.counts.kept = self.kept.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::ClockNs;

    fn sample(seq: usize, latency: i64) -> Sample {
        let due = ClockNs(seq as i64 * 1_000);
        Sample { seq: seq as u64, due, woke: ClockNs(due.ns() + latency), cpu: 0 }
    }

    proptest! {
        #[test]
        fn the_worst_samples_are_kept_in_any_order_of_arrival(
            polls in
                proptest::collection::vec(proptest::collection::vec(-5i64..1_000, 0..20), 0..20),
            most in 1u32..6,
            above in 0i64..900,
        ) {
            let above = (above > 100).then_some(Nanos(above));
            let mut worst_set = WorstSet::new(most, above, "main", "x");
            let (mut number, mut all) = (0, Vec::new());
            for poll in &polls {
                let mut found = Vec::new();
                for latency in poll {
                    all.push(*latency);
                    worst_set.offer_sample(&sample(all.len(), *latency), &mut found);
                }
                for sample in found {
                    if worst_set.replaced_window(sample.latency()).is_ok() {
                        number += 1;
                        worst_set.keep_window(KeptWindow {
                            latency: sample.latency(),
                            number,
                            bytes: 1,
                            partial: number % 2 == 0,
                        });
                    }
                }
            }
            all.retain(|latency| *latency >= above.map_or(1, Nanos::ns));
            all.sort_unstable_by_key(|latency| std::cmp::Reverse(*latency));
            all.truncate(most as usize);
            prop_assert_eq!(
                worst_set.kept.iter().map(|kept| kept.latency.ns()).collect::<Vec<_>>(),
                all
            );
            let partial = worst_set.kept.iter().filter(|kept| kept.partial).count();
            prop_assert_eq!(
                (worst_set.counts.kept, worst_set.counts.partial),
                (worst_set.kept.len() as u64, partial as u64)
            );
            prop_assert!(
                worst_set.counts.selected >= worst_set.counts.kept + worst_set.counts.replaced
            );
        }
    }
}
