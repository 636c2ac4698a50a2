//! The verdicts of a lab as JUnit XML: a suite per cell, a case per requirement and series. A
//! failed cell, and repetitions that differ, are cases with an error.

use super::junit::document::{JunitReport, NonSuccessKind, TestCase, TestCaseStatus};
use super::junit::{of_verdict, status, suite};
use crate::sentence::lab as words;
use punctual_bundle::lab::{CellDocument, CellState, LabDocument};
use std::io::{self, Write};

pub fn write(lab: &LabDocument, out: &mut dyn Write) -> io::Result<()> {
    let mut report = JunitReport::new(lab.name.as_str());
    for cell in &lab.cells {
        // CI systems group cases by class across suites: the class is the cell.
        let class = |name: &str| format!("{}.{name}", cell.name);
        let mut suite = suite(&cell.name, cell.timebase());
        suite.add_test_case(ran(cell));
        if let Some(equal) = cell.equal {
            let trouble = cell.trouble.join("; ");
            let status = match equal {
                true => TestCaseStatus::success(),
                false => status(NonSuccessKind::Error, "not-equal", &trouble),
            };
            suite.add_test_case(case(
                "repetitions are equal to the last sample",
                &class(&cell.target),
                status,
            ));
        }
        for series in &cell.series {
            let name = format!("{}/{}", series.figures.phase, series.figures.series);
            for requirement in &series.requirements {
                let message = words::requirement(cell, series, requirement);
                suite.add_test_case(case(
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

fn ran(cell: &CellDocument) -> TestCase {
    let status = match cell.state {
        CellState::Done => TestCaseStatus::success(),
        CellState::Waiting => {
            status(NonSuccessKind::Error, "not-run", "it was not run to completion")
        }
        CellState::Failed => status(NonSuccessKind::Error, "failed", &cell.trouble.join("; ")),
    };
    case("runs", &format!("{}.{}", cell.name, cell.target), status)
}

fn case(name: &str, class: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(class);
    case
}
