//! Findings: facts that affect a figure or make a system unsuitable, each with evidence and remedy.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fmt;

/// The severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information; the figures are unaffected.
    Note,
    Advice,
    Warning,
    /// The figures do mislead, or the system is unsuitable.
    Bad,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Note => "note",
            Severity::Advice => "advice",
            Severity::Warning => "warning",
            Severity::Bad => "bad",
        })
    }
}

/// A finding, created at the source of the fact. Terminal, report and JSON show the same one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// A stable word for the kind of finding, in kebab case: `bins-overflowed`.
    pub id: String,
    pub severity: Severity,
    /// The subject: a series (`phase/series`), `cpu 3`, or `system`.
    pub subject: String,
    /// The fact in one sentence.
    pub message: String,
    /// The source of the fact: file and value, or figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The recommended action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The order of findings ([`Finding::sort_rank`]); the first one is smallest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rank(bool, bool, Reverse<Severity>);

impl Finding {
    /// The subject of findings of `punctual check`: output with figures may shorten them, as that
    /// command shows them in full.
    pub const READINESS: &'static str = "readiness";

    /// A finding about `subject`; add evidence and remedy with the methods below.
    pub fn new(
        id: &str,
        severity: Severity,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding {
            id: id.to_owned(),
            severity,
            subject: subject.into(),
            message: message.into(),
            evidence: None,
            remedy: None,
        }
    }
    /// Whether it concerns the machine (a finding of `punctual check`), not the run.
    pub fn is_readiness(&self) -> bool {
        self.subject == Finding::READINESS
    }
    /// The rank among others: problems of the run, then of the machine, then notes on each; within
    /// these the most severe first.
    pub fn sort_rank(&self) -> Rank {
        Rank(self.severity < Severity::Warning, self.is_readiness(), Reverse(self.severity))
    }
    pub fn with_evidence(mut self, evidence: impl Into<String>) -> Finding {
        self.evidence = Some(evidence.into());
        self
    }
    /// Adds the recommended action.
    pub fn with_remedy(self, remedy: impl Into<String>) -> Finding {
        self.remedy_by(Some(remedy.into()))
    }
    /// With what to do about it, where that is known.
    pub fn remedy_by(self, remedy: Option<String>) -> Finding {
        Finding { remedy, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_about_the_run_precede_those_about_the_machine() {
        let of = |id: &str, severity, subject: &str| Finding::new(id, severity, subject, "");
        let mut all = [
            of("model", Severity::Bad, Finding::READINESS),
            of("note", Severity::Note, "system"),
            of("tick", Severity::Advice, Finding::READINESS),
            of("others", Severity::Warning, "main/timer"),
            of("lost", Severity::Bad, "main/timer"),
        ];
        all.sort_by_key(Finding::sort_rank);
        let ids = all.map(|found| found.id);
        assert_eq!(ids, ["lost", "others", "model", "note", "tick"]);
    }
}
