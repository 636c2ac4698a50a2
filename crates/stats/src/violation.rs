//! Whether a series violates a requirement while it is measured, before its verdict is due.

use crate::requirements::{self, RequirementEvidence};
use crate::{Distribution, SeriesView};
use punctual_bundle::summary::VerdictWord;
use punctual_core::{Metric, Requirement};

/// A requirement that is not met.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Violation {
    pub requirement: Requirement,
    /// The figure: in ns for a time, else a count.
    pub figure: f64,
}

/// The first requirement of the series that the samples so far violate.
///
/// A maximum, a minimum or a count violates it only if further samples cannot change that. A mean,
/// a standard deviation or a percentile with enough samples is judged as if the series ended now.
/// `ended`: no sample follows, and every figure is judged so.
pub fn first_violation(view: &SeriesView, ended: bool) -> Option<Violation> {
    if view.meta.requirements.is_empty() {
        return None;
    }
    let data = &view.state.data;
    let (plain, corrected) = (Distribution::from_series(data), Distribution::from_corrected(data));
    view.meta.requirements.iter().find_map(|text| {
        let requirement: Requirement = text.parse().ok()?;
        let is_whole = ended || can_vary(requirement.metric);
        let missing = (!is_whole).then_some(requirements::CUT_OFF);
        let (meta, state, corrected) = (view.meta, view.state, corrected.as_ref());
        let evidence = RequirementEvidence { meta, state, plain: &plain, corrected, missing };
        let evaluated = requirements::evaluate_requirement(text, &evidence);
        let figure = evaluated.figure.filter(|_| evaluated.verdict == VerdictWord::NotMet)?;
        Some(Violation { requirement, figure })
    })
}

/// Whether further samples can change the figure in both directions.
fn can_vary(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::Mean | Metric::Stddev | Metric::Percentile(_) | Metric::CorrectedPercentile(_)
    )
}
