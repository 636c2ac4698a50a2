//! The samples of a series by the CPU on which they ended.

use super::curve::{Bin, Curve};
use punctual_core::{Nanos, Sample};
use std::collections::BTreeMap;

/// The samples of one CPU.
#[derive(Clone)]
pub struct OfCpu {
    pub cpu: u32,
    pub curve: Curve,
    pub count: u64,
    pub max: Nanos,
}

impl OfCpu {
    /// Samples by the CPU on which they ended, ascending; empty if all ended on one CPU. The bins
    /// are `resolution` ns wide.
    pub(crate) fn split_by_cpu(samples: &[Sample], resolution: i64) -> Vec<OfCpu> {
        let Some(first) = samples.first().map(|sample| sample.cpu) else { return Vec::new() };
        if samples.iter().all(|sample| sample.cpu == first) {
            return Vec::new();
        }
        let mut cpus: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        for sample in samples {
            cpus.entry(sample.cpu).or_default().push(sample.latency().ns());
        }
        cpus.into_iter()
            .map(|(cpu, latencies)| OfCpu::from_latencies(cpu, latencies, resolution))
            .collect()
    }

    /// Builds the samples of a CPU from latencies in ns.
    pub(crate) fn from_latencies(cpu: u32, mut latencies: Vec<i64>, resolution: i64) -> OfCpu {
        latencies.sort_unstable();
        let width = resolution.max(1);
        let negative = latencies.partition_point(|latency| *latency < 0);
        let (count, max) = (latencies.len() as u64, latencies.last().copied().unwrap_or_default());
        let same = |a: &i64, b: &i64| a / width == b / width;
        let bin = |of: &[i64]| Bin { low: of[0] / width * width, width, count: of.len() as u64 };
        let bins = latencies[negative..].chunk_by(same).map(bin).collect();
        let negative = negative as u64;
        let curve = Curve { resolution: width, body_width: width, bins, negative };
        OfCpu { cpu, curve, count, max: Nanos(max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::ClockNs;

    fn sample(cpu: u32, latency: i64) -> Sample {
        Sample { seq: 0, due: ClockNs(0), woke: ClockNs(latency), cpu }
    }

    #[test]
    fn samples_of_one_cpu_are_not_divided() {
        let one = [sample(3, 10), sample(3, 20)];
        assert!(OfCpu::split_by_cpu(&one, 1_000).is_empty());
        assert!(OfCpu::split_by_cpu(&[], 1_000).is_empty());
    }

    proptest! {
        #[test]
        fn no_sample_is_lost_and_each_is_with_its_cpu(
            samples in proptest::collection::vec((0u32..4, -5i64..100_000), 2..200),
            resolution in 1i64..5_000,
        ) {
            let samples: Vec<Sample> =
                samples.into_iter().map(|(cpu, latency)| sample(cpu, latency)).collect();
            for of in OfCpu::split_by_cpu(&samples, resolution) {
                let own: Vec<i64> = samples
                    .iter()
                    .filter(|sample| sample.cpu == of.cpu)
                    .map(|sample| sample.latency().ns())
                    .collect();
                prop_assert_eq!(of.count, own.len() as u64);
                prop_assert_eq!(Some(of.max.ns()), own.iter().copied().max());
                for bin in &of.curve.bins {
                    let within = |latency: &&i64| (bin.low..bin.low + bin.width).contains(*latency);
                    prop_assert_eq!(bin.count, own.iter().filter(within).count() as u64);
                }
                let binned: u64 = of.curve.bins.iter().map(|bin| bin.count).sum();
                prop_assert_eq!(binned + of.curve.negative, of.count);
            }
        }
    }
}
