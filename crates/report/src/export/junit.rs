//! Verdicts as JUnit XML: a suite a phase, a case a requirement. Not met is a failure; undecided is an error, as the test could not be
//! carried out.

use punctual_bundle::Bundle;
use punctual_bundle::summary::{RequirementSummary, SeriesSummary, VerdictWord};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::io::{self, Write};

/// The report. Without requirements it has no case, which is said where there are figures to require something of.
pub fn write(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    let summary = punctual_analyze::summarize(bundle);
    let mut report = Report::new(summary.experiment.as_str());
    for phase in &summary.phases {
        let mut suite = TestSuite::new(phase.name.as_str());
        for series in &phase.series {
            suite.add_test_cases(series.requirements.iter().map(|requirement| case(&phase.name, series, requirement)));
        }
        report.add_test_suite(suite);
    }
    report.serialize(&mut *out).map_err(io::Error::other)
}

fn case(phase: &str, series: &SeriesSummary, requirement: &RequirementSummary) -> TestCase {
    let figure = super::lava::figure(requirement).map_or(String::new(), |figure| format!("measured {figure}"));
    let reason = requirement.reason.clone().unwrap_or_default();
    let message = [figure, reason].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    let status = match requirement.verdict {
        VerdictWord::Met => TestCaseStatus::success(),
        VerdictWord::NotMet => status(NonSuccessKind::Failure, "not-met", &message),
        VerdictWord::Undecided => status(NonSuccessKind::Error, "undecided", &message),
    };
    let mut case = TestCase::new(requirement.requirement.as_str(), status);
    case.set_classname(format!("{phase}/{}", series.name));
    case
}

fn status(kind: NonSuccessKind, word: &str, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(word).set_message(message);
    status
}
