//! The verdicts of a search as JUnit XML: one suite, a case per requirement, and one for each
//! failure.

use super::junit::document::{JunitReport, NonSuccessKind, TestCase, TestSuite};
use super::junit::{of_verdict, status};
use crate::sentence::hunt as words;
use punctual_bundle::hunt::HuntDocument;
use std::io::{self, Write};

pub fn write(document: &HuntDocument, out: &mut dyn Write) -> io::Result<()> {
    let title = format!("search on kernel {}", document.kernel);
    let mut report = JunitReport::new(title.as_str());
    let mut suite = TestSuite::new(title.as_str());
    for required in &document.required {
        let status = of_verdict(required.verdict, &words::required(required));
        let mut case = TestCase::new(required.requirement.as_str(), status);
        case.set_classname(document.kernel.as_str());
        suite.add_test_case(case);
    }
    for failure in &document.failures {
        let console = failure.console.iter().map(|console| format!("; console: {console}"));
        let message = words::failure(failure) + &console.collect::<String>();
        let status = status(NonSuccessKind::Error, &failure.what, &message);
        let name = format!("{}: {}", words::what(&failure.what), failure.loads.join("; "));
        let mut case = TestCase::new(&name, status);
        case.set_classname(document.kernel.as_str());
        suite.add_test_case(case);
    }
    report.add_test_suite(suite);
    report.serialize(out)
}
