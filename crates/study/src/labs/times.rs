//! The durations of lab runs on this machine, for estimates of the next ones.

use punctual_bundle::Member;
use punctual_core::Nanos;
use punctual_lab::PackageCache;
use punctual_stats::median_of_sorted;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file in the user's cache.
const FILE: &str = "lab-times.json";
/// The maximum number of newest runs kept per kind.
const KEPT_RUNS: usize = 32;

/// Runs by their kind ([`Planned::kind`]): each with the estimate before any was known, and its
/// duration, in ns of this machine's clock.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RunTimes {
    runs: BTreeMap<String, Vec<[i64; 2]>>,
}

impl RunTimes {
    /// The times of this machine; none if unknown, or if the cache is unusable.
    pub fn read() -> RunTimes {
        times_member().and_then(|place| place.read_json().ok()).unwrap_or_default()
    }

    /// The median ratio of duration to estimate of runs of a kind, and their number.
    pub(crate) fn duration_factor(&self, kind: &str) -> Option<(f64, usize)> {
        let runs = self.runs.get(kind)?.iter();
        let known_times = runs.filter(|[estimated, took]| *estimated > 0 && *took > 0);
        let mut ratios: Vec<f64> = known_times.map(|[e, took]| *took as f64 / *e as f64).collect();
        ratios.sort_by(f64::total_cmp);
        Some((median_of_sorted(&ratios)?, ratios.len()))
    }

    pub fn add(&mut self, kind: String, estimated: Nanos, took: Nanos) {
        let runs = self.runs.entry(kind).or_default();
        runs.push([estimated.ns(), took.ns()]);
        runs.drain(..runs.len().saturating_sub(KEPT_RUNS));
    }

    /// Stores the times. A failure is ignored.
    pub fn save(&self) {
        if let Some(place) = times_member() {
            let _ = place.replace_json(self);
        }
    }
}

fn times_member() -> Option<Member> {
    Some(Member::from_root(PackageCache::open().ok()?.dir()).join(FILE).to_private())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_estimates_use_the_median_of_the_newest_runs() {
        let mut times = RunTimes::default();
        assert_eq!(times.duration_factor("virtual"), None);
        // 324 s were estimated for a duration of 25.
        for took in [2, 25, 25, 26, 400] {
            times.add("virtual".into(), Nanos::from_secs(324), Nanos::from_secs(took));
        }
        assert_eq!(times.duration_factor("virtual"), Some((25.0 / 324.0, 5)));
        assert_eq!(times.duration_factor("machine"), None);
        for _ in 0..KEPT_RUNS {
            times.add("virtual".into(), Nanos::from_secs(10), Nanos::from_secs(20));
        }
        assert_eq!(times.duration_factor("virtual"), Some((2.0, KEPT_RUNS)));
        let hostile: RunTimes = serde_json::from_str(r#"{"runs":{"x":[[0,5],[-1,-1]]}}"#).unwrap();
        assert_eq!(hostile.duration_factor("x"), None);
    }
}
