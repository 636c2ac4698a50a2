//! Which rate of long latencies a measurement excludes.
//!
//! The latencies above a threshold that belong together are one episode ([`crate::cluster`]). k
//! independent episodes in a time T exclude, with confidence c, every mean rate above m/T, where a
//! Poisson count of mean m is k or less with probability 1 − c (Garwood, "Fiducial limits for the
//! Poisson distribution", Biometrika 28, 1936); without any episode m is −ln(1 − c), the rule of
//! three (Hanley and Lippman-Hand, 1983). It is a mean over what was measured: an episode whose
//! cause did not occur meanwhile is not excluded.

use crate::Distribution;
use crate::cluster::decluster_exceedances;
use crate::compare::run::{ComparedRun, ComparedView};
use crate::probability::chi_squared_beyond;
use punctual_bundle::{Bundle, BundleError};
use punctual_core::Nanos;

/// The claim: no more than this mean rate of latencies above the threshold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Exclusion {
    pub threshold: Nanos,
    /// The mean time from one to the next.
    pub every: Nanos,
    /// As 0.95.
    pub confidence: f64,
}

/// Whether the claim can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExclusionWord {
    Excluded,
    /// The rate is higher, with the same confidence.
    Contradicted,
    Open,
}

/// What the time of one series excludes.
#[derive(Clone, PartialEq, Debug)]
pub struct SeriesExclusion {
    /// `phase/series`.
    pub series: String,
    pub time: Nanos,
    /// Samples above the threshold, at the resolution of what was kept.
    pub samples: u64,
    /// Independent episodes; their samples if their order is not known.
    pub episodes: u64,
    /// Lost samples: any of them may have been above it.
    pub lost: u64,
    pub word: ExclusionWord,
    /// The mean time from one episode to the next that is excluded: no shorter one fits.
    pub every: Nanos,
    /// The time that a new measurement needs, if it has as many episodes.
    pub needed: Nanos,
}

impl Exclusion {
    /// The time of a measurement with this number of episodes that allows the claim.
    pub fn needed_time(&self, episodes: u64) -> Nanos {
        Nanos((poisson_upper(episodes, self.confidence) * self.every.ns() as f64).ceil() as i64)
    }

    /// What these numbers allow.
    pub fn judge_episodes(&self, time: Nanos, episodes: u64, lost: u64) -> (ExclusionWord, Nanos) {
        let every =
            time.ns() as f64 / poisson_upper(episodes.saturating_add(lost), self.confidence);
        let word = match episodes {
            _ if every >= self.every.ns() as f64 => ExclusionWord::Excluded,
            0 => ExclusionWord::Open,
            // At least this mean number was expected in the time.
            k if poisson_lower(k, self.confidence) * self.every.ns() as f64 > time.ns() as f64 => {
                ExclusionWord::Contradicted
            }
            _ => ExclusionWord::Open,
        };
        (word, Nanos(every as i64))
    }
}

/// What each series of a bundle excludes.
///
/// # Errors
/// Samples cannot be read.
pub fn of_bundle(bundle: &Bundle, asked: &Exclusion) -> Result<Vec<SeriesExclusion>, BundleError> {
    let mut exclusions = Vec::new();
    for phase in &bundle.phases {
        for series in &phase.series {
            let Some(time) = phase.meta.duration.filter(|time| *time > Nanos::ZERO) else {
                continue;
            };
            let run = ComparedRun::of_series(series, Some(time), ComparedView::Measured)?;
            let above =
                || Distribution::from_series(&series.state.data).count_above(asked.threshold);
            let mut found = of_run(time, &run, above, asked);
            found.series = format!("{}/{}", phase.meta.name, series.meta.name);
            exclusions.push(found);
        }
    }
    Ok(exclusions)
}

/// What a run excludes; `above` counts the samples above the threshold if not all
/// are kept.
fn of_run(
    time: Nanos,
    run: &ComparedRun,
    above: impl FnOnce() -> u64,
    asked: &Exclusion,
) -> SeriesExclusion {
    let threshold = asked.threshold.ns();
    let (samples, episodes) = if run.max.is_none_or(|max| max <= threshold) {
        (0, 0)
    } else if run.samples.len() as u64 == run.count {
        let above = run.samples.iter().enumerate().filter(|(_, latency)| **latency > threshold);
        let above: Vec<(u64, i64)> =
            above.map(|(place, latency)| (place as u64, *latency)).collect();
        (above.len() as u64, decluster_exceedances(&above).peaks.len() as u64)
    } else {
        let samples = above().max(1);
        (samples, samples)
    };
    let (word, every) = asked.judge_episodes(time, episodes, run.lost);
    let (series, needed, lost) = (String::new(), asked.needed_time(episodes), run.lost);
    SeriesExclusion { series, time, samples, episodes, lost, word, every, needed }
}

/// The mean of a Poisson count that is this or less with probability 1 − c.
fn poisson_upper(count: u64, confidence: f64) -> f64 {
    let count = count as f64;
    find_root(count, |mean| chi_squared_beyond(2.0 * (count + 1.0), 2.0 * mean) > 1.0 - confidence)
}

/// The mean of a Poisson count that is this or more with probability 1 − c.
fn poisson_lower(count: u64, confidence: f64) -> f64 {
    let count = count as f64;
    find_root(count, |mean| chi_squared_beyond(2.0 * count, 2.0 * mean) > confidence)
}

/// The mean from which `is_less` no longer holds.
fn find_root(count: f64, is_less: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 10.0 * (count + 10.0));
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if is_less(middle) { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    const HOUR: Nanos = Nanos::from_secs(3_600);

    fn asked(confidence: f64) -> Exclusion {
        Exclusion { threshold: Nanos(100_000), every: HOUR, confidence }
    }

    /// Garwood's table: 95 %, one-sided: 2.996, 4.744, 6.296; and the lower limits 0.0513, 0.355.
    #[test]
    fn the_limits_of_few_events_are_those_of_the_tables() {
        for (count, mean) in [(0, 2.995_732), (1, 4.743_865), (2, 6.295_794), (10, 16.962_22)] {
            assert!(
                (poisson_upper(count, 0.95) - mean).abs() < 1e-4,
                "{count}: {}",
                poisson_upper(count, 0.95)
            );
        }
        for (count, mean) in [(1, 0.051_293), (2, 0.355_362), (10, 5.425_41)] {
            assert!(
                (poisson_lower(count, 0.95) - mean).abs() < 1e-4,
                "{count}: {}",
                poisson_lower(count, 0.95)
            );
        }
        assert!((asked(0.95).needed_time(0).ns() as f64 / 3.6e12 - 2.995_7).abs() < 1e-3);
    }

    #[test]
    fn a_shorter_run_excludes_a_higher_rate() {
        let (word, every) = asked(0.95).judge_episodes(HOUR, 0, 0);
        assert_eq!(word, ExclusionWord::Open);
        // With 95 % confidence no more than one in 20 min.
        assert!((every.ns() as f64 / 60e9 - 20.03).abs() < 0.01, "{every:?}");
        assert_eq!(asked(0.95).judge_episodes(HOUR * 3, 0, 0).0, ExclusionWord::Excluded);
        assert_eq!(asked(0.95).judge_episodes(HOUR * 3, 1, 0).0, ExclusionWord::Open);
        assert_eq!(asked(0.95).judge_episodes(HOUR * 5, 1, 0).0, ExclusionWord::Excluded);
        assert_eq!(asked(0.95).judge_episodes(HOUR, 5, 0).0, ExclusionWord::Contradicted);
        // A lost sample may have been one.
        assert_eq!(asked(0.95).judge_episodes(HOUR * 3, 0, 1).0, ExclusionWord::Open);
    }

    #[test]
    fn samples_that_follow_one_another_are_one_episode() {
        // Three bursts of four in 20,000 samples of a millisecond.
        let samples: Vec<i64> =
            (0..20_000).map(|k| if k % 6_000 < 4 && k > 5_000 { 150_000 } else { 9_000 }).collect();
        let run = ComparedRun::of_samples(samples);
        let found = of_run(Nanos::from_secs(20), &run, || panic!("all are kept"), &asked(0.95));
        assert_eq!((found.samples, found.episodes), (12, 3), "{found:?}");
        assert_eq!(found.word, ExclusionWord::Contradicted);
    }

    /// Of simulated tails with bursts, whose rate of episodes is known: the stated limit is too low
    /// for no more than one in twenty, and a claim that is false is seldom made.
    #[test]
    fn the_claim_covers_the_true_rate_as_often_as_it_says() {
        let mut random = Random::from_seed(52);
        let (runs, samples) = (400, 20_000_usize);
        for mean_episodes in [0.5, 2.0, 6.0] {
            let (mut covered, mut claimed) = (0, 0);
            for _ in 0..runs {
                let mut latencies = vec![9_000; samples];
                let mut place = 0.0;
                loop {
                    place -= random.next_unit().ln() * samples as f64 / mean_episodes;
                    let begin = place as usize;
                    if begin >= samples {
                        break;
                    }
                    let length = 1 + (-2.0 * random.next_unit().ln()) as usize;
                    let end = (begin + length).min(samples);
                    latencies[begin..end].fill(150_000);
                }
                let run = ComparedRun::of_samples(latencies);
                // The true mean time from one to the next is a mean_episodes-th of the time.
                let time = Nanos::from_secs(20);
                let truth = time.ns() as f64 / mean_episodes;
                let asked = Exclusion {
                    threshold: Nanos(100_000),
                    every: Nanos((truth * 1.001) as i64),
                    confidence: 0.95,
                };
                let found = of_run(time, &run, || panic!("all are kept"), &asked);
                covered += usize::from(found.every.ns() as f64 <= truth);
                claimed += usize::from(found.word == ExclusionWord::Excluded);
            }
            // 95 % of 400 is known to 3 standard deviations as 91.7 %.
            assert!(covered * 1_000 >= runs * 917, "{mean_episodes}: {covered} of {runs}");
            assert!(claimed * 1_000 <= runs * 83, "{mean_episodes}: {claimed} of {runs}");
        }
    }
}
