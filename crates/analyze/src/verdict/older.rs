//! What older versions stored as findings alone.

use super::Evidence;
use punctual_bundle::Reason;
use punctual_bundle::summary::VerdictWord;
use punctual_core::Finding;

/// Reasons from findings, of a bundle that was written before they were stored typed.
pub fn reasons(evidence: &Evidence) -> Vec<Reason> {
    if evidence.manifest.limits.is_some() {
        return Vec::new();
    }
    evidence.found.iter().filter_map(|finding| reason(finding, evidence)).collect()
}

fn reason(finding: &Finding, evidence: &Evidence) -> Option<Reason> {
    let limit = |verdict| {
        let verdict = evidence.validity.gate_recording(verdict).verdict;
        let limit = finding.subject.clone();
        Some(Reason::Limit { limit, verdict, why: Some(finding.message.clone()) })
    };
    match finding.id.as_str() {
        "limit-violated" => limit(VerdictWord::NotMet),
        "limit-undecided" => limit(VerdictWord::Undecided),
        "requirement-without-thread" => Some(Reason::Requirement {
            place: finding.subject.clone(),
            requirement: finding.message.clone(),
            verdict: VerdictWord::Undecided,
            figure: None,
            why: None,
        }),
        "bundle-incomplete" => {
            let why = finding.evidence.clone().unwrap_or_else(|| finding.message.clone());
            Some(Reason::Unwritten { why })
        }
        _ => None,
    }
}
