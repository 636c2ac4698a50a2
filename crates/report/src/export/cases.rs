//! The results of a run for test systems, the same for all of them: a case for each stated
//! requirement, and one for each other reason against the verdict.

use crate::verdict::baseline::one_line;
use crate::verdict::{beside_requirements, of_reason};
use punctual_bundle::Reason;
use punctual_bundle::summary::{
    PhaseSummary, RequirementSummary, SeriesSummary, Summary, VerdictWord,
};

/// A verdict on one thing.
pub(crate) struct ExportedCase<'a> {
    /// Its phase; `None` for the whole run.
    pub phase: Option<&'a PhaseSummary>,
    /// Its subject: `phase/series`, `phase/load`, a phase, `run`.
    pub place: String,
    pub name: String,
    pub result: CaseResult,
    /// The requirement and its series, if it has figures.
    pub requirement: Option<(&'a SeriesSummary, &'a RequirementSummary)>,
    pub why: String,
}

/// The outcome of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CaseResult {
    Verdict(VerdictWord),
    Failed,
    /// Nothing was judged, and no reason is against the run.
    Skipped,
}

impl CaseResult {
    /// The outcome as a word.
    pub fn word(self) -> &'static str {
        match self {
            CaseResult::Verdict(verdict) => verdict.json_word(),
            CaseResult::Failed => "failed",
            CaseResult::Skipped => "skipped",
        }
    }
}

/// The place of cases about the whole run.
const RUN: &str = "run";

/// All cases: failed proofs first, then phase by phase, then the rest. A case fails exactly if the
/// exit code of the run is not 0.
pub(crate) fn collect_cases(summary: &Summary) -> Vec<ExportedCase<'_>> {
    let reasons = || summary.verdict.adverse_reasons();
    let proofs = reasons().filter(|reason| matches!(reason, Reason::NotAsAsked { .. }));
    let mut exported_cases: Vec<ExportedCase<'_>> =
        proofs.map(|reason| case_of_reason(reason, summary)).collect();
    for phase in &summary.phases {
        for series in &phase.series {
            exported_cases.extend(series.requirements.iter().map(|stated| ExportedCase {
                phase: Some(phase),
                place: format!("{}/{}", phase.name, series.name),
                name: stated.requirement.clone(),
                result: CaseResult::Verdict(stated.verdict),
                requirement: Some((series, stated)),
                why: stated.reason.clone().unwrap_or_default(),
            }));
        }
    }
    let rest = beside_requirements(summary);
    let rest = rest.filter(|reason| !matches!(reason, Reason::NotAsAsked { .. }));
    exported_cases.extend(rest.map(|reason| case_of_reason(reason, summary)));
    exported_cases
}

fn case_of_reason<'a>(reason: &Reason, summary: &'a Summary) -> ExportedCase<'a> {
    let (place, name) = match reason {
        Reason::Requirement { place, requirement, .. } => (place.clone(), requirement.clone()),
        Reason::Limit { limit, .. } => ("recording".to_owned(), limit.clone()),
        Reason::Worse(worse) => (RUN.to_owned(), format!("baseline: {}", worse.figure)),
        Reason::FewRuns { .. } | Reason::NotHeld { .. } | Reason::Leap(_) => {
            (RUN.to_owned(), "baseline".to_owned())
        }
        Reason::StopAbove { series, .. } => (series.clone(), "stop_above".to_owned()),
        Reason::NotAsAsked { proof, place, .. } => {
            (place.clone(), format!("valid: {}", proof.json_word()))
        }
        Reason::LeftOut { place, .. } => (place.clone(), "left out".to_owned()),
        Reason::Failed { .. } | Reason::ProgramEnded(_) => {
            (RUN.to_owned(), "ended well".to_owned())
        }
        Reason::Unwritten { .. } => (RUN.to_owned(), "written".to_owned()),
        Reason::Unreadable { .. } => (RUN.to_owned(), "readable".to_owned()),
        Reason::EventsLost { .. } => ("recording".to_owned(), "events lost".to_owned()),
        Reason::Interrupted { .. } | Reason::CutOff { .. } => {
            (RUN.to_owned(), "complete".to_owned())
        }
    };
    let reason_text = match reason {
        Reason::Requirement { why, .. } => why.clone().unwrap_or_default(),
        Reason::NotAsAsked { why, .. } => why.clone(),
        Reason::Worse(_) | Reason::FewRuns { .. } | Reason::Leap(_) => {
            let line = summary.baseline.as_ref().and_then(one_line);
            let sentences = line.into_iter().chain([of_reason(reason)]);
            sentences.collect::<Vec<String>>().join("; ")
        }
        reason => of_reason(reason),
    };
    let result = match reason {
        Reason::Failed { .. } | Reason::Unwritten { .. } => CaseResult::Failed,
        Reason::ProgramEnded(end) if !end.is_early() => CaseResult::Failed,
        Reason::FewRuns { required: false, .. } => CaseResult::Skipped,
        reason => CaseResult::Verdict(reason.caused_verdict().unwrap_or(VerdictWord::Undecided)),
    };
    let is_in = |phase: &&PhaseSummary| {
        let rest = place.strip_prefix(&phase.name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let phase = summary.phases.iter().find(is_in);
    ExportedCase { phase, place, name, result, requirement: None, why: reason_text }
}
