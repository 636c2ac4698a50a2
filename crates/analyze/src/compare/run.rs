//! One side of a series: its runs, each with what was kept of it.

use super::ladder::Ladder;
use crate::Distribution;
use crate::stats::cluster::decluster;
use crate::stats::dispersion::block_length;
use punctual_bundle::{BundleError, Series};
use punctual_core::Nanos;

/// Peaks are searched among this many of the longest samples, and at most a hundredth of all.
const PEAKS_AMONG: usize = 1_000;

/// One run of a series.
#[derive(Clone, Debug)]
pub struct Run {
    /// All its samples by rank.
    pub ladder: Ladder,
    /// Latencies in order of time, as far as they were kept; empty where none were.
    pub samples: Vec<i64>,
    /// The longest of each burst, the longest first; every long sample by itself where bursts
    /// cannot be known.
    pub peaks: Vec<i64>,
    /// The longest latency, exact.
    pub max: Option<i64>,
    /// The step of the clock, where it is coarse.
    pub step: i64,
    /// Samples lost.
    pub lost: u64,
    /// Missed periods.
    pub overruns: u64,
    /// How long it lasted, in ns.
    pub duration: Option<i64>,
}

impl Run {
    /// A run of these latencies (ns) in order of time.
    pub fn of_samples(samples: Vec<i64>) -> Run {
        let ladder = Ladder::of_samples(&samples);
        Run {
            peaks: peaks(&samples, &ladder),
            max: samples.iter().copied().max(),
            step: 0,
            lost: 0,
            overruns: 0,
            duration: None,
            ladder,
            samples,
        }
    }

    /// A series of a bundle; reads its log.
    pub fn of_series(series: &Series, duration: Option<Nanos>) -> Result<Run, BundleError> {
        let data = &series.state.data;
        let kept = if series.state.samples_kept == 0 { Vec::new() } else { series.log()?.samples };
        let samples: Vec<i64> = kept.iter().map(|sample| sample.latency().ns()).collect();
        let distribution = Distribution::of(data);
        let whole = samples.len() as u64 == data.count();
        let ladder = if whole {
            Ladder::of_samples(&samples)
        } else {
            Ladder::of_distribution(&distribution)
        };
        let peaks = if whole {
            peaks(&samples, &ladder)
        } else if data.worst.is_empty() {
            (1..=data.count().min(PEAKS_AMONG as u64))
                .map_while(|rank| ladder.from_top(rank))
                .collect()
        } else {
            peaks_of(data.worst.iter().map(|worst| (worst.seq, worst.latency().ns())).collect())
        };
        let by_period =
            data.period.map(|period| (period * data.count().min(i64::MAX as u64) as i64).ns());
        Ok(Run {
            ladder,
            samples,
            peaks,
            max: data.max.map(Nanos::ns),
            step: distribution.step().map_or(0, Nanos::ns),
            lost: data.losses.dropped,
            overruns: data.losses.skipped,
            duration: duration.map(Nanos::ns).or(by_period),
        })
    }

    /// Whether how its samples depend on each other can be seen.
    pub fn shows_order(&self) -> bool {
        block_length(self.samples.len()).is_some()
    }
}

/// The peaks of the longest hundredth.
fn peaks(samples: &[i64], ladder: &Ladder) -> Vec<i64> {
    let requested = (samples.len() / 100).clamp(samples.len().min(20), PEAKS_AMONG);
    let (Some(bound), Some(max)) = (ladder.from_top(requested as u64), ladder.from_top(1)) else {
        return Vec::new();
    };
    // Many may equal the bound: they are left out unless there is nothing above.
    let least = if max > bound { bound.saturating_add(1) } else { bound };
    let above =
        samples.iter().enumerate().filter(|(_, s)| **s >= least).map(|(k, s)| (k as u64, *s));
    peaks_of(above.take(PEAKS_AMONG).collect())
}

fn peaks_of(mut exceedances: Vec<(u64, i64)>) -> Vec<i64> {
    exceedances.sort_unstable();
    let mut peaks: Vec<i64> =
        decluster(&exceedances).peaks.into_iter().map(|k| exceedances[k].1).collect();
    peaks.sort_unstable_by(|a, b| b.cmp(a));
    peaks
}

/// All runs of one side.
#[derive(Clone, Debug)]
pub struct Side {
    /// The runs; at least one.
    pub runs: Vec<Run>,
    /// All of them by rank.
    pub ladder: Ladder,
}

impl Side {
    /// Of these runs.
    pub fn new(runs: Vec<Run>) -> Side {
        let ladder = match runs.as_slice() {
            [one] => one.ladder.clone(),
            several => Ladder::merged(&several.iter().map(|run| &run.ladder).collect::<Vec<_>>()),
        };
        Side { runs, ladder }
    }
    /// Samples of all runs.
    pub fn count(&self) -> u64 {
        self.ladder.count()
    }
    /// The longest latency of all runs.
    pub fn max(&self) -> Option<i64> {
        self.runs.iter().filter_map(|run| run.max).max()
    }
    /// The measured time in ns, if known for every run.
    pub fn duration(&self) -> Option<i64> {
        self.runs
            .iter()
            .map(|run| run.duration)
            .try_fold(0i64, |sum, d| Some(sum.saturating_add(d?)))
    }
    /// The step of the coarsest of its clocks.
    pub fn step(&self) -> i64 {
        self.runs.iter().map(|run| run.step).max().unwrap_or(0)
    }
}
