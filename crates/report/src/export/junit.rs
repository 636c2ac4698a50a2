//! Verdicts as JUnit XML: a suite a phase, a case a requirement, and one for each proof of validity
//! that fails. Not met is a failure; undecided and invalid are errors, as the test could not be
//! carried out.

pub(super) mod document;

use crate::sentence::of_gate;
use document::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use punctual_analyze::validity::RUN;
use punctual_bundle::comparison::Comparison;
use punctual_bundle::summary::{
    Proof, ProofOutcome, RequirementSummary, SeriesSummary, VerdictWord,
};
use punctual_bundle::{Bundle, Timebase};
use std::io::{self, Write};

/// The report. Without requirements it has no case, with a note if there are figures.
pub fn write(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    let summary = punctual_analyze::summarize(bundle);
    let mut report = Report::new(summary.experiment.as_str());
    let proofs = summary.validity.iter().flat_map(|validity| &validity.proofs);
    let failed: Vec<&Proof> = proofs.filter(|proof| proof.outcome == ProofOutcome::Fails).collect();
    for (number, phase) in summary.phases.iter().enumerate() {
        let mut suite = suite(&phase.name, bundle.timebase());
        let own = |proof: &&Proof| {
            let rest = proof.subject.strip_prefix(&phase.name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                || number == 0 && proof.subject == RUN
        };
        suite.add_test_cases(failed.iter().copied().filter(own).map(invalid));
        for series in &phase.series {
            suite.add_test_cases(
                series
                    .requirements
                    .iter()
                    .map(|requirement| case(&phase.name, series, requirement)),
            );
        }
        report.add_test_suite(suite);
    }
    report.serialize(out)
}

/// The requirements of a comparison: a suite for each side that is compared with the first, a case
/// a requirement and series.
pub fn write_gates(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut report = Report::new("punctual compare");
    for (number, side) in comparison.sides.iter().enumerate().skip(1) {
        let title = format!("{} against {}", side.label, comparison.sides[0].label);
        let mut suite = suite(&title, comparison.timebase());
        let own = comparison.gates.iter().filter(|gate| gate.side == number);
        suite.add_test_cases(own.map(|gate| {
            let mut case =
                TestCase::new(gate.gate.as_str(), of_verdict(gate.verdict, &of_gate(gate)));
            case.set_classname(gate.series.as_str());
            case
        }));
        report.add_test_suite(suite);
    }
    report.serialize(out)
}

/// A suite; whose time its figures are in is a property of it, where it is not the system's own.
pub(super) fn suite(name: &str, timebase: Timebase) -> TestSuite {
    let mut suite = TestSuite::new(name);
    suite.properties.extend(timebase.mark().map(|mark| Property::new("timebase", mark)));
    suite
}

/// A proof that fails: the test could not be carried out as requested.
fn invalid(proof: &Proof) -> TestCase {
    let message = format!("{}: {}", proof.subject, proof.why);
    let mut case = TestCase::new(
        &format!("valid: {}", proof.proof.word()),
        of_verdict(VerdictWord::Invalid, &message),
    );
    case.set_classname(proof.subject.as_str());
    case
}

fn case(phase: &str, series: &SeriesSummary, requirement: &RequirementSummary) -> TestCase {
    let figure = super::lava::figure(requirement, "us")
        .map_or(String::new(), |figure| format!("measured {}", figure.trim_end_matches(" count")));
    let reason = requirement.reason.clone().unwrap_or_default();
    let message =
        [figure, reason].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    let mut case =
        TestCase::new(requirement.requirement.as_str(), of_verdict(requirement.verdict, &message));
    case.set_classname(format!("{phase}/{}", series.name));
    case
}

pub(super) fn of_verdict(verdict: VerdictWord, message: &str) -> TestCaseStatus {
    match verdict {
        VerdictWord::Met => TestCaseStatus::success(),
        VerdictWord::NotMet => status(NonSuccessKind::Failure, "not-met", message),
        VerdictWord::Undecided => status(NonSuccessKind::Error, "undecided", message),
        VerdictWord::Invalid => status(NonSuccessKind::Error, "invalid", message),
    }
}

pub(super) fn status(kind: NonSuccessKind, word: &str, message: &str) -> TestCaseStatus {
    TestCaseStatus::non_success(kind, word, message)
}
