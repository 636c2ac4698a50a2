//! Verdicts as JUnit XML: one suite per phase, and one for the run if there is something to report
//! on it; one case per requirement, and one for each other reason against the verdict. Not met is a
//! failure; undecided, invalid and failed are errors, as the test could not be carried out.

pub(super) mod document;

use super::cases::{CaseResult, ExportedCase, collect_cases};
use super::{Exporter, Writer};
use crate::sentence::of_gate;
use document::{JunitProperty, JunitReport, NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use punctual_bundle::comparison::Comparison;
use punctual_bundle::summary::{Summary, VerdictWord};
use punctual_bundle::{Bundle, Timebase};
use punctual_stats::validity::RUN;
use std::io::{self, Write};

pub(super) const EXPORTER: Exporter = Exporter {
    answers: true,
    ..Exporter::new(
        "junit",
        "the requirements' verdicts as JUnit XML",
        Writer::Bundle(|bundle, out| Ok(write(bundle, out)?)),
    )
};

/// The report. It has no case if nothing is required and nothing failed.
pub fn write(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    write_summary(&punctual_stats::summarize_bundle(bundle), bundle.timebase(), out)
}

/// The report of a summary.
pub(crate) fn write_summary(
    summary: &Summary,
    timebase: Timebase,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut report = JunitReport::new(summary.experiment.as_str());
    let (of_phases, of_run): (Vec<ExportedCase<'_>>, Vec<ExportedCase<'_>>) =
        collect_cases(summary).into_iter().partition(|case| case.phase.is_some());
    for phase in &summary.phases {
        let mut suite = build_suite(&phase.name, timebase);
        let is_own =
            |case: &&ExportedCase<'_>| case.phase.is_some_and(|of| std::ptr::eq(of, phase));
        suite.add_test_cases(of_phases.iter().filter(is_own).map(to_test_case));
        report.add_test_suite(suite);
    }
    if !of_run.is_empty() {
        let mut suite = build_suite(RUN, timebase);
        suite.add_test_cases(of_run.iter().map(to_test_case));
        report.add_test_suite(suite);
    }
    report.serialize(out)
}

/// The requirements of a comparison: a suite for each side that is compared with the first, a case
/// per requirement and series.
pub fn write_gates(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut report = JunitReport::new("punctual compare");
    for (number, side) in comparison.sides.iter().enumerate().skip(1) {
        let title = format!("{} against {}", side.label, comparison.sides[0].label);
        let mut suite = build_suite(&title, comparison.timebase());
        let side_gates = comparison.gates.iter().filter(|gate| gate.side == number);
        suite.add_test_cases(side_gates.map(|gate| {
            let mut case =
                TestCase::new(gate.gate.as_str(), of_verdict(gate.verdict, &of_gate(gate)));
            case.set_classname(gate.series.as_str());
            case
        }));
        report.add_test_suite(suite);
    }
    report.serialize(out)
}

/// A suite; its timebase is a property, unless it is the system's own.
pub(super) fn build_suite(name: &str, timebase: Timebase) -> TestSuite {
    let mut suite = TestSuite::new(name);
    suite
        .properties
        .extend(timebase.short_meaning().map(|mark| JunitProperty::new("timebase", mark)));
    suite
}

fn to_test_case(of: &ExportedCase<'_>) -> TestCase {
    let figure = of.requirement.and_then(|(_, stated)| super::lava::format_figure(stated, "us"));
    let figure = figure
        .map_or(String::new(), |figure| format!("measured {}", figure.trim_end_matches(" count")));
    let reason = match of.requirement {
        None if of.name.starts_with("valid: ") => format!("{}: {}", of.place, of.why),
        _ => of.why.clone(),
    };
    let parts = [figure.as_str(), &reason];
    let message = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    let status = match of.result {
        CaseResult::Verdict(verdict) => of_verdict(verdict, &message),
        CaseResult::Skipped => {
            non_success_status(NonSuccessKind::Skipped, of.result.word(), &message)
        }
        CaseResult::Failed => non_success_status(NonSuccessKind::Error, of.result.word(), &message),
    };
    let mut case = TestCase::new(&of.name, status);
    case.set_classname(of.place.as_str());
    case
}

pub(super) fn of_verdict(verdict: VerdictWord, message: &str) -> TestCaseStatus {
    match verdict {
        VerdictWord::Met => TestCaseStatus::success(),
        VerdictWord::NotMet => non_success_status(NonSuccessKind::Failure, "not-met", message),
        VerdictWord::Undecided => non_success_status(NonSuccessKind::Error, "undecided", message),
        VerdictWord::Invalid => non_success_status(NonSuccessKind::Error, "invalid", message),
    }
}

pub(super) fn non_success_status(
    kind: NonSuccessKind,
    word: &str,
    message: &str,
) -> TestCaseStatus {
    TestCaseStatus::non_success(kind, word, message)
}
