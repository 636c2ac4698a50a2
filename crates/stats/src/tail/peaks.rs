//! Peaks of bursts over a threshold, and their fit.

use super::TailLevel;
use super::fit::{self, GOOD};
use super::gpd::Gpd;
use crate::Random;
use crate::cluster::decluster;
use punctual_bundle::tail::Peaks;

/// The numbers of peaks tried, to find the lowest threshold with a fit (Bader, Yan, Zhang, Ann.
/// Appl. Statist. 12, 2018).
const PEAKS: [usize; 4] = [400, 200, 100, 60];

/// Peaks of bursts over a threshold.
pub(crate) struct Over {
    /// In ns.
    pub threshold: f64,
    /// The index of each among the samples, in order.
    pub places: Vec<usize>,
    /// The excess of each over it.
    pub excesses: Vec<f64>,
    pub fit: Gpd,
    pub fit_p: f64,
}

/// The lowest threshold over which the peaks of bursts fit; the last tried if none does.
pub(crate) fn over_threshold(samples: &[f64], random: &mut Random) -> Option<Over> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let mut last = None;
    for requested in PEAKS {
        let Some((threshold, places)) = peaks(samples, &sorted, requested) else { continue };
        let excesses: Vec<f64> = places.iter().map(|k| samples[*k] - threshold).collect();
        let Some(fit) = Gpd::by_likelihood(&excesses) else { continue };
        let fit_p = fit::of_excesses(&excesses, &fit, random);
        last = Some(Over { threshold, places, excesses, fit, fit_p });
        if fit_p > GOOD {
            break;
        }
    }
    last
}

/// A threshold exceeded by about this many bursts, and the indices of their peaks. `None` if bursts
/// are so long that it would be low in the distribution.
fn peaks(samples: &[f64], sorted: &[f64], requested: usize) -> Option<(f64, Vec<usize>)> {
    let mut exceedances = requested;
    loop {
        let threshold = *sorted.get(exceedances)?;
        let above: Vec<(u64, i64)> = samples
            .iter()
            .enumerate()
            .filter(|(_, sample)| **sample > threshold)
            .map(|(k, sample)| (k as u64, sample.round() as i64))
            .collect();
        let places: Vec<usize> =
            decluster(&above).peaks.into_iter().map(|k| above[k].0 as usize).collect();
        if places.len() * 10 >= requested * 8 {
            return (above.len() * 10 <= samples.len()).then_some((threshold, places));
        }
        exceedances = exceedances * 5 / 4 + 1;
    }
}

impl Over {
    /// The level that a burst exceeds once in `times` the measured time.
    pub fn level(&self, times: f64) -> TailLevel {
        let excess = self.fit.level(&self.excesses, self.excesses.len() as f64 * times);
        let up = |y: f64| self.threshold + y;
        TailLevel { level: up(excess.level), low: excess.low.map(up), high: excess.high.map(up) }
    }
    pub fn summary(&self) -> Peaks {
        let Gpd { scale, shape } = self.fit;
        Peaks {
            threshold: self.threshold,
            peaks: self.excesses.len() as u64,
            scale,
            shape,
            fit_p: self.fit_p,
        }
    }
}
