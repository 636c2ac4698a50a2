//! One side of a series: its runs with their data for the comparison.

use super::ladder::Ladder;
use crate::cluster::decluster_exceedances;
use crate::dispersion::block_length;
use crate::{Distribution, percentiles};
use punctual_bundle::{BundleError, Series};
use punctual_core::{Nanos, Sample, SeriesData};

/// The number of longest samples searched for peaks, besides at most a hundredth of all.
const PEAKS_AMONG: usize = 1_000;
/// The maximum number of missed periods of one sample that are followed one by one.
const HIDDEN_MAX: i64 = 1_000_000;

/// The distribution compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ComparedView {
    Measured,
    /// With the samples hidden by missed periods (coordinated omission).
    Corrected,
}

/// Whether the corrected view of a series holds samples that were not measured.
pub(crate) fn has_hidden(data: &SeriesData) -> bool {
    data.corrected.as_ref().is_some_and(|corrected| corrected.len() > data.whole.len())
}

/// One run of a series.
#[derive(Clone, Debug, Default)]
pub struct ComparedRun {
    /// All its samples by rank, of the compared view.
    pub ladder: Ladder,
    /// The same as measured, if the view differs.
    pub measured: Option<Ladder>,
    /// Latencies of the view in order of time, as far as kept.
    pub samples: Vec<i64>,
    /// The longest of each burst, the longest first; every long sample if bursts cannot be
    /// determined.
    pub peaks: Vec<i64>,
    pub max: Option<i64>,
    /// The number of samples measured, if their distribution is unknown.
    pub count: u64,
    /// The resolution of the clock, if it is coarse.
    pub step: i64,
    pub lost: u64,
    pub overruns: u64,
    /// Its duration in ns.
    pub duration: Option<i64>,
}

impl ComparedRun {
    /// A run with these latencies (ns) in order of time.
    pub fn of_samples(samples: Vec<i64>) -> ComparedRun {
        let ladder = Ladder::of_samples(&samples);
        ComparedRun {
            peaks: longest_peaks(&samples, &ladder),
            max: samples.iter().copied().max(),
            count: samples.len() as u64,
            ladder,
            samples,
            ..ComparedRun::default()
        }
    }

    /// A series of a bundle; reads its log.
    pub fn of_series(
        series: &Series,
        duration: Option<Nanos>,
        view: ComparedView,
    ) -> Result<ComparedRun, BundleError> {
        let data = &series.state.data;
        let kept =
            if series.state.samples_kept == 0 { Vec::new() } else { series.load_log()?.samples };
        let run = ComparedRun::as_measured(data, &kept, duration);
        Ok(if view == ComparedView::Corrected { run.add_hidden_samples(data, &kept) } else { run })
    }

    fn as_measured(data: &SeriesData, kept: &[Sample], duration: Option<Nanos>) -> ComparedRun {
        let samples: Vec<i64> = kept.iter().map(|sample| sample.latency().ns()).collect();
        let distribution = Distribution::from_series(data);
        let whole = samples.len() as u64 == data.sample_count();
        let ladder = if whole {
            Ladder::of_samples(&samples)
        } else {
            Ladder::of_distribution(&distribution)
        };
        let peaks = if whole {
            longest_peaks(&samples, &ladder)
        } else if data.worst.is_empty() {
            (1..=data.sample_count().min(PEAKS_AMONG as u64))
                .map_while(|rank| ladder.at_rank_from_top(rank))
                .collect()
        } else {
            peaks_of(data.worst.iter().map(|worst| (worst.seq, worst.latency().ns())).collect())
        };
        let by_period = data
            .period
            .map(|period| (period * data.sample_count().min(i64::MAX as u64) as i64).ns());
        ComparedRun {
            ladder,
            measured: None,
            samples,
            peaks,
            max: data.max.map(Nanos::ns),
            count: data.sample_count(),
            step: distribution.clock_step().map_or(0, Nanos::ns),
            lost: data.losses.dropped,
            overruns: data.losses.skipped,
            duration: duration.map(Nanos::ns).or(by_period),
        }
    }

    /// Adds the samples hidden by missed periods. If the log does not show each of them in order,
    /// only the histogram is known.
    fn add_hidden_samples(mut self, data: &SeriesData, kept: &[Sample]) -> ComparedRun {
        let Some(hidden) = Distribution::from_corrected(data).filter(|_| has_hidden(data)) else {
            return self;
        };
        let samples = with_hidden(kept, data.period.map_or(0, Nanos::ns));
        let ladder = if samples.len() as u64 == hidden.count() {
            self.samples = samples;
            Ladder::of_samples(&self.samples)
        } else {
            self.samples = Vec::new();
            Ladder::of_distribution(&hidden)
        };
        self.measured = Some(std::mem::replace(&mut self.ladder, ladder));
        self
    }

    /// Whether the dependence between its samples can be determined.
    pub(crate) fn shows_order(&self) -> bool {
        block_length(self.samples.len()).is_some()
    }
}

/// Each latency, followed by those of the missed periods before the next sample (counted as in
/// `core::SeriesData::record_missed`): `L - period`, `L - 2·period`, …
fn with_hidden(kept: &[Sample], period: i64) -> Vec<i64> {
    let mut latencies = Vec::with_capacity(kept.len());
    for (k, sample) in kept.iter().enumerate() {
        let latency = sample.latency().ns();
        latencies.push(latency);
        if period <= 0 || latency <= period {
            continue;
        }
        let next = kept.get(k + 1).map(|next| (next.due - sample.due).ns());
        let missed = next.map_or(i64::MAX, |distance| (distance / period).saturating_sub(1));
        let hidden = (1..=missed.clamp(0, HIDDEN_MAX)).map(|k| latency - k * period);
        latencies.extend(hidden.take_while(|hidden| *hidden > 0));
    }
    latencies
}

/// The peaks of the longest hundredth.
fn longest_peaks(samples: &[i64], ladder: &Ladder) -> Vec<i64> {
    let requested = (samples.len() / 100).clamp(samples.len().min(20), PEAKS_AMONG);
    let (Some(bound), Some(max)) =
        (ladder.at_rank_from_top(requested as u64), ladder.at_rank_from_top(1))
    else {
        return Vec::new();
    };
    // Many may equal the bound: they are dropped unless none is above.
    let lowest_peak = if max > bound { bound.saturating_add(1) } else { bound };
    let above =
        samples.iter().enumerate().filter(|(_, s)| **s >= lowest_peak).map(|(k, s)| (k as u64, *s));
    peaks_of(above.take(PEAKS_AMONG).collect())
}

fn peaks_of(mut exceedances: Vec<(u64, i64)>) -> Vec<i64> {
    exceedances.sort_unstable();
    let mut peaks: Vec<i64> =
        decluster_exceedances(&exceedances).peaks.into_iter().map(|k| exceedances[k].1).collect();
    peaks.sort_unstable_by(|a, b| b.cmp(a));
    peaks
}

/// All runs of one side.
#[derive(Clone, Debug)]
pub struct SideRuns {
    /// The runs; at least one.
    pub runs: Vec<ComparedRun>,
    /// The samples of all runs by rank, of the compared view.
    pub ladder: Ladder,
    /// The same as measured, if the view differs.
    pub measured: Option<Ladder>,
}

impl SideRuns {
    pub fn new(runs: Vec<ComparedRun>) -> SideRuns {
        let merged_ladder = |of: fn(&ComparedRun) -> &Ladder| match runs.as_slice() {
            [one] => of(one).clone(),
            several => Ladder::merge(&several.iter().map(of).collect::<Vec<_>>()),
        };
        let differs = runs.iter().any(|run| run.measured.is_some());
        let measured =
            differs.then(|| merged_ladder(|run| run.measured.as_ref().unwrap_or(&run.ladder)));
        SideRuns { ladder: merged_ladder(|run| &run.ladder), measured, runs }
    }
    /// The number of samples of all runs, of the compared view.
    pub fn count(&self) -> u64 {
        self.ladder.count()
    }
    /// The number of measured samples of all runs.
    pub(crate) fn measured_count(&self) -> u64 {
        self.measured.as_ref().unwrap_or(&self.ladder).count()
    }
    /// The percentile as measured, if the view differs.
    pub(crate) fn measured_at(&self, percentile: f64) -> Option<f64> {
        let ladder = self.measured.as_ref()?;
        let (_, value) =
            ladder.at_rank(percentiles::percentile_rank(percentile, ladder.count()).max(1))?;
        Some(value as f64)
    }
    /// The longest latency of all runs.
    pub fn max(&self) -> Option<i64> {
        self.runs.iter().filter_map(|run| run.max).max()
    }
    /// The measured time in ns, if known for every run.
    pub(crate) fn measured_duration(&self) -> Option<i64> {
        self.runs
            .iter()
            .map(|run| run.duration)
            .try_fold(0i64, |sum, d| Some(sum.saturating_add(d?)))
    }
    /// The coarsest resolution of its clocks.
    pub(crate) fn coarsest_step(&self) -> i64 {
        self.runs.iter().map(|run| run.step).max().unwrap_or(0)
    }
}
