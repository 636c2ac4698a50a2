//! Requirements violated by punctual itself: if only samples exceed a bound on latencies that are
//! within it without the part of punctual's threads, the result says nothing about the system.

use punctual_bundle::observed::{ObservedSample, ObservedSamples, ObservedSeries};
use punctual_bundle::summary::{RequirementSummary, VerdictWord};
use punctual_core::{CauseKind, Finding, Metric, Nanos, Requirement, Severity};

/// Whether a sample exceeds the bound only due to the part of punctual.
fn is_excused(sample: &ObservedSample, requirement: &Requirement) -> bool {
    let holds = |ns: i64| requirement.comparison.is_satisfied(ns as f64, requirement.bound as f64);
    !holds(sample.latency) && holds(sample.latency - sample.observer)
}

/// Makes a requirement on a series of `count` samples undecided if it held without those samples.
pub(crate) fn excuse_observer_delays(
    held: &mut RequirementSummary,
    observed: &ObservedSamples,
    count: u64,
) {
    let Ok(requirement) = held.requirement.parse::<Requirement>() else { return };
    let (VerdictWord::NotMet, Some(beyond)) = (held.verdict, held.beyond) else { return };
    let excused = observed.iter().filter(|one| is_excused(one, &requirement)).count() as u64;
    let allowed = match requirement.metric {
        Metric::Percentile(p) => (count as f64 * (1.0 - p / 100.0) + 1e-9).floor() as u64,
        _ => 0,
    };
    if excused > 0 && beyond.saturating_sub(excused) <= allowed {
        held.verdict = VerdictWord::Undecided;
        held.reason = Some(format!(
            "delayed by punctual itself: without its part {excused} of the {beyond} samples beyond \
             the bound are within it"
        ));
    }
}

/// Reports that punctual delayed samples.
pub(crate) fn report_observer_delays(of: &ObservedSeries) -> Option<Finding> {
    let longest = of.samples.iter().map(|sample| sample.observer).max()?;
    let count = of.samples.iter().count();
    let samples = if count == 1 { "1 sample".to_owned() } else { format!("{count} samples") };
    let message = format!(
        "punctual itself delayed {samples} of the longest, by up to {}",
        Nanos(longest).to_readable()
    );
    let subject = format!("{}/{}", of.phase, of.series);
    let finding = Finding::new("delayed-by-punctual", Severity::Warning, subject, message);
    Some(finding.with_remedy(CauseKind::Observer.advice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(text: &str, beyond: u64, samples: &[(i64, i64)], count: u64) -> VerdictWord {
        let mut observed = ObservedSamples::default();
        let all = samples.iter().map(|&(latency, observer)| ObservedSample { latency, observer });
        all.for_each(|sample| observed.add(sample));
        let mut held = RequirementSummary {
            requirement: text.to_owned(),
            verdict: VerdictWord::NotMet,
            figure: Some(200_000.0),
            beyond: Some(beyond),
            reason: None,
        };
        excuse_observer_delays(&mut held, &observed, count);
        assert_eq!(held.reason.is_some(), held.verdict == VerdictWord::Undecided);
        held.verdict
    }

    #[test]
    fn a_violation_caused_by_punctual_alone_is_undecided() {
        let (own, both, other) = ((200_000, 150_000), (300_000, 90_000), (90_000, 80_000));
        let (not_met, undecided) = (VerdictWord::NotMet, VerdictWord::Undecided);
        assert_eq!(held("max < 100us", 1, &[own, other], 1_000), undecided);
        assert_eq!(held("max < 100us", 2, &[own, other], 1_000), not_met, "another one is longer");
        assert_eq!(held("max < 100us", 1, &[both], 1_000), not_met, "it is long without that, too");
        assert_eq!(held("max < 100us", 1, &[], 1_000), not_met);
        assert_eq!(held("p99 < 100us", 11, &[own], 1_000), undecided);
        assert_eq!(held("p99 < 100us", 12, &[own], 1_000), not_met);
        assert_eq!(held("p99 < 100us", 9, &[other], 1_000), not_met, "nothing is excused");
    }
}
