//! The verdicts of a lab as JUnit XML: a suite per cell, a case per requirement and series. A
//! failed cell, and repetitions that differ, are cases with an error.

use super::junit::document::{JunitReport, NonSuccessKind, TestCase, TestCaseStatus};
use super::junit::{build_suite, non_success_status, of_verdict};
use crate::sentence::lab as words;
use punctual_bundle::lab::{CellDocument, CellState, LabDocument};
use std::io::{self, Write};

pub fn write(lab: &LabDocument, out: &mut dyn Write) -> io::Result<()> {
    let mut report = JunitReport::new(lab.name.as_str());
    for cell in &lab.cells {
        // CI systems group cases by class across suites: the class is the cell.
        let class = |name: &str| format!("{}.{name}", cell.name);
        let mut suite = build_suite(&cell.name, cell.timebase());
        suite.add_test_case(case_of_cell(cell));
        if let Some(equal) = cell.equal {
            let trouble = cell.trouble.join("; ");
            let status = match equal {
                true => TestCaseStatus::success(),
                false => non_success_status(NonSuccessKind::Error, "not-equal", &trouble),
            };
            suite.add_test_case(build_case(
                "repetitions are equal to the last sample",
                &class(&cell.target),
                status,
            ));
        }
        for series in &cell.series {
            let name = format!("{}/{}", series.figures.phase, series.figures.series);
            for requirement in &series.requirements {
                let message = words::format_requirement(cell, series, requirement);
                suite.add_test_case(build_case(
                    &requirement.requirement,
                    &class(&name),
                    of_verdict(requirement.verdict, &message),
                ));
            }
        }
        report.add_test_suite(suite);
    }
    report.serialize(out)
}

fn case_of_cell(cell: &CellDocument) -> TestCase {
    let status = match cell.state {
        CellState::Done => TestCaseStatus::success(),
        CellState::Waiting => {
            non_success_status(NonSuccessKind::Error, "not-run", "it was not run to completion")
        }
        CellState::Failed => {
            non_success_status(NonSuccessKind::Error, "failed", &cell.trouble.join("; "))
        }
    };
    build_case("runs", &format!("{}.{}", cell.name, cell.target), status)
}

fn build_case(name: &str, class: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(class);
    case
}
