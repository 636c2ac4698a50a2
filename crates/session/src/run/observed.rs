//! The samples of a run that punctual itself delayed: known from the cycles of programs, and for
//! other series from the events around the worst samples.

use super::phase_run::PhaseRun;
use crate::explanation::{self, Wanted};
use punctual_bundle::Bundle;
use punctual_bundle::observed::{ObservedSample, ObservedSamples, ObservedSeries};
use std::collections::BTreeMap;

/// The delayed samples of all series that have some. Events are examined only with a requirement,
/// which they may decide.
pub(crate) fn observed_series(phases: &[PhaseRun], bundle: Option<&Bundle>) -> Vec<ObservedSeries> {
    let mut samples_by_series: BTreeMap<(String, String), ObservedSamples> = BTreeMap::new();
    let mut requires = false;
    for (phase, kept) in
        phases.iter().flat_map(|of| of.live_series().into_iter().map(move |one| (of, one)))
    {
        requires |= !kept.meta.requirements.is_empty();
        let place = (phase.meta.name.clone(), kept.meta.name.clone());
        samples_by_series.insert(place, kept.observed.clone());
    }
    let explained = bundle
        .filter(|_| requires)
        .and_then(|of| explanation::explain_samples(of, &Wanted::default()).ok());
    for one in explained.iter().flat_map(|all| &all.samples) {
        let latency = one.explanation.latency().ns();
        let sample = ObservedSample { latency, observer: one.explanation.observer_time().ns() };
        let place = (one.phase.clone(), one.series.clone());
        samples_by_series.entry(place).or_default().add(sample);
    }
    samples_by_series
        .into_iter()
        .filter(|(_, samples)| !samples.is_empty())
        .map(|((phase, series), samples)| ObservedSeries { phase, series, samples })
        .collect()
}
