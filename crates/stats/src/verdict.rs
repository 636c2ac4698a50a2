//! What became of what was asked of a run: the one function that decides it, from what its bundle
//! holds. The end of a run calls it and stores the result; a bundle that is opened later, also one
//! that was cut off, gets the answer of the same function.

use crate::validity::{GatedVerdict, TOO_MUCH_LOST};
use crate::{PhaseView, Validity};
use punctual_bundle::baseline::HeldAgainst;
use punctual_bundle::intervals::LimitSummary;
use punctual_bundle::summary::{PhaseSummary, ProofOutcome, RequirementSummary, VerdictWord};
use punctual_bundle::verdict::{FailedPart, Unbegun};
use punctual_bundle::{Manifest, Outcome, PlannedRequests, Reason, Verdict};
use punctual_core::event::Recorded;

/// Everything that a verdict depends on.
#[derive(Clone, Copy)]
pub(crate) struct VerdictEvidence<'a> {
    /// The header with the ending, if any, and the stored verdict.
    pub manifest: &'a Manifest,
    /// The requests of the plan.
    pub planned: &'a PlannedRequests,
    pub phases: &'a [PhaseView<'a>],
    /// The figures, with the verdict on each requirement.
    pub figures: &'a [PhaseSummary],
    /// Unreadable parts of the bundle.
    pub damage: &'a [String],
    pub recorded: Option<&'a Recorded>,
    /// Whether it was measured as requested.
    pub validity: &'a Validity,
}

/// The verdict, and every reason for it.
pub(crate) fn decide_verdict(evidence: &VerdictEvidence) -> Verdict {
    let mut reasons = Vec::new();
    reasons.extend(requirement_reasons(evidence));
    reasons.extend(limit_reasons(evidence));
    reasons.extend(evidence.manifest.baseline.iter().flat_map(baseline_reasons));
    reasons.extend(ending_reasons(evidence));
    let failed = evidence.validity.proofs.iter();
    let failed = failed.filter(|proof| proof.outcome == ProofOutcome::Fails);
    reasons.extend(failed.map(|proof| Reason::NotAsAsked {
        proof: proof.proof,
        place: proof.subject.clone(),
        why: proof.why.clone(),
    }));
    reasons.extend(evidence.damage.iter().map(|what| Reason::Unreadable { what: what.clone() }));
    let unwritten = evidence.manifest.unwritten.iter();
    reasons.extend(unwritten.map(|why| Reason::Unwritten { why: why.clone() }));
    reasons.extend(left_out(evidence));
    let ended = evidence.phases.iter().flat_map(|phase| &phase.meta.ended);
    reasons.extend(ended.cloned().map(Reason::ProgramEnded));
    reasons.extend(events_lost(evidence));
    let is_requested = is_asked(evidence, &reasons);
    let now = Verdict::from_reasons(reasons, is_requested);
    match &evidence.manifest.verdict {
        Some(stored) => now.merge_stored(stored),
        None => now,
    }
}

/// Whether a satisfiable request exists.
fn is_asked(evidence: &VerdictEvidence, reasons: &[Reason]) -> bool {
    let mut series = evidence.figures.iter().flat_map(|phase| &phase.series);
    let is_of_question = |reason: &Reason| {
        matches!(
            reason,
            Reason::Requirement { .. } | Reason::Limit { .. } | Reason::StopAbove { .. }
        )
    };
    evidence.planned.has_requests()
        || evidence.manifest.limits.iter().flatten().next().is_some()
        || evidence
            .manifest
            .baseline
            .as_ref()
            .is_some_and(|held| held.missing == 0 || held.required)
        || series.any(|series| !series.requirements.is_empty())
        || reasons.iter().any(is_of_question)
}

/// Requirements that are not met, and those without a series.
fn requirement_reasons(evidence: &VerdictEvidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for phase in evidence.figures {
        for series in &phase.series {
            let open = series.requirements.iter().filter(|held| held.verdict != VerdictWord::Met);
            let place = format!("{}/{}", phase.name, series.name);
            reasons.extend(open.map(|held| requirement_reason(place.clone(), held)));
        }
    }
    for phase in evidence.phases {
        reasons.extend(phase.meta.without_series.iter().map(|text| Reason::Requirement {
            place: phase.meta.name.clone(),
            requirement: text.clone(),
            verdict: VerdictWord::Undecided,
            figure: None,
            why: Some("nothing was measured that it is about".to_owned()),
        }));
    }
    reasons
}

fn requirement_reason(place: String, held: &RequirementSummary) -> Reason {
    Reason::Requirement {
        place,
        requirement: held.requirement.clone(),
        verdict: held.verdict,
        figure: held.figure,
        why: held.reason.clone(),
    }
}

/// Limits on the recording that do not hold. A limit of the plan that was not judged is undecided.
fn limit_reasons(evidence: &VerdictEvidence) -> Vec<Reason> {
    let Some(judged) = &evidence.manifest.limits else { return Vec::new() };
    let mut reasons: Vec<Reason> = judged
        .iter()
        .filter_map(|(name, limit)| of_limit(name, limit, evidence.validity))
        .collect();
    if judged.is_empty() && evidence.manifest.ending.is_some() {
        reasons.extend(evidence.planned.limits.iter().map(|limit| Reason::Limit {
            limit: limit.clone(),
            verdict: VerdictWord::Undecided,
            why: Some("the recording could not be read at the end of the run".to_owned()),
        }));
    }
    reasons
}

fn of_limit(name: &str, limit: &LimitSummary, validity: &Validity) -> Option<Reason> {
    let GatedVerdict { verdict, reason } = validity.gate_recording(limit.verdict);
    let violations = match verdict {
        VerdictWord::NotMet => Some(format!("exceeded {} times", limit.violations)),
        _ => None,
    };
    (verdict != VerdictWord::Met).then(|| Reason::Limit {
        limit: format!("{name} {}", limit.limit),
        verdict,
        why: reason.or_else(|| limit.reason.clone()).or(violations),
    })
}

/// The reasons from the comparison with earlier runs.
fn baseline_reasons(held: &HeldAgainst) -> Vec<Reason> {
    let HeldAgainst { runs, missing, required, .. } = *held;
    let few_runs = Reason::FewRuns { runs, missing, required };
    let not_held = held.not_held.clone().map(|why| Reason::NotHeld { why });
    let worse = held.worse.iter().cloned().map(Reason::Worse);
    let leaps = held.leaps.iter().cloned().map(Reason::Leap);
    worse.chain((missing > 0).then_some(few_runs)).chain(not_held).chain(leaps).collect()
}

fn ending_reasons(evidence: &VerdictEvidence) -> Vec<Reason> {
    let target = evidence.manifest.target.as_ref();
    let of_target = target.and_then(|target| {
        let part = FailedPart::Target(target.name.clone());
        Some(Reason::Failed { part, why: target.failed.clone()? })
    });
    let Some(ending) = &evidence.manifest.ending else {
        let cut_off = Reason::CutOff { unbegun: unbegun_phases(evidence), why: None };
        return of_target.into_iter().chain([cut_off]).collect();
    };
    let interrupted = |unbegun| Reason::Interrupted { unbegun };
    let of_ending = match &ending.outcome {
        Outcome::Completed => None,
        // The target's failure is the same.
        Outcome::Failed { .. } if of_target.is_some() => None,
        Outcome::Failed { why } if evidence.manifest.unwritten.contains(why) => None,
        Outcome::Failed { why } => Some(Reason::Failed { part: FailedPart::Run, why: why.clone() }),
        Outcome::StoppedByLoad { load, how, .. } if ending.outcome.is_failure() => {
            Some(Reason::Failed { part: FailedPart::Load(load.clone()), why: how.clone() })
        }
        Outcome::StoppedByLoad { .. } => {
            Some(unbegun_phases(evidence)).filter(|unbegun| !unbegun.is_empty()).map(interrupted)
        }
        Outcome::Interrupted => Some(interrupted(unbegun_phases(evidence))),
        Outcome::CutOff { why } => {
            Some(Reason::CutOff { unbegun: Vec::new(), why: Some(why.clone()) })
        }
        Outcome::StoppedAbove { series, latency, limit, seq } => Some(Reason::StopAbove {
            series: series.clone(),
            latency: *latency,
            limit: *limit,
            seq: *seq,
        }),
    };
    of_target.into_iter().chain(of_ending).collect()
}

/// The phases of the plan that never began.
fn unbegun_phases(evidence: &VerdictEvidence) -> Vec<Unbegun> {
    let began = |name: &str| evidence.phases.iter().any(|phase| phase.meta.name == name);
    evidence.planned.phases.iter().filter(|phase| !began(&phase.phase)).cloned().collect()
}

/// The omissions of bounds, with the requirements that may be affected: those of the phase.
fn left_out(evidence: &VerdictEvidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for phase in evidence.phases.iter().filter(|phase| !phase.meta.left_out.is_empty()) {
        let of_series = phase.series.iter().flat_map(|series| &series.meta.requirements);
        let mut requirements: Vec<String> =
            of_series.chain(&phase.meta.without_series).cloned().collect();
        requirements.sort_unstable();
        requirements.dedup();
        reasons.extend(phase.meta.left_out.iter().map(|left_out| Reason::LeftOut {
            place: phase.meta.name.clone(),
            left_out: left_out.clone(),
            requirements: requirements.clone(),
        }));
    }
    reasons
}

/// For a recording without a measurement: if more than this share of its events was lost, it is no
/// evidence.
fn events_lost(evidence: &VerdictEvidence) -> Option<Reason> {
    let recorded = evidence.recorded.filter(|_| evidence.phases.is_empty())?;
    let sources = recorded.sources.iter();
    let recorded_events = sources.fold(0u64, |sum, source| sum.saturating_add(source.recorded));
    let (lost, of) = (recorded.lost_count(), recorded_events.saturating_add(recorded.lost_count()));
    (lost as f64 > TOO_MUCH_LOST * of as f64).then_some(Reason::EventsLost { lost, of })
}

#[cfg(test)]
mod tests;
