//! The part of JUnit XML that verdicts need, as CI systems read it (the schema of Jenkins' xUnit
//! plugin, junit-10.xsd).

use crate::format::escape_unsafe;
use std::io::{self, Write};

pub struct JunitReport {
    name: String,
    suites: Vec<TestSuite>,
}

pub struct TestSuite {
    name: String,
    /// Further facts about it.
    pub properties: Vec<JunitProperty>,
    cases: Vec<TestCase>,
}

/// A name and its value.
pub struct JunitProperty {
    name: String,
    value: String,
}

pub struct TestCase {
    name: String,
    classname: Option<String>,
    status: TestCaseStatus,
}

#[derive(Default)]
pub struct TestCaseStatus {
    kind: Option<NonSuccessKind>,
    word: String,
    message: String,
}

/// The kind of a case that did not succeed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NonSuccessKind {
    /// The tested property does not hold.
    Failure,
    /// It could not be tested.
    Error,
    /// It was not tested, and need not be.
    Skipped,
}

impl JunitReport {
    pub fn new(name: &str) -> JunitReport {
        JunitReport { name: name.to_owned(), suites: Vec::new() }
    }

    pub(crate) fn add_test_suite(&mut self, suite: TestSuite) {
        self.suites.push(suite);
    }

    pub fn serialize(&self, out: &mut dyn Write) -> io::Result<()> {
        let counts = format_counts(self.suites.iter().flat_map(|suite| &suite.cases));
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(out, "<testsuites name=\"{}\" {counts}>", escape_attribute(&self.name))?;
        self.suites.iter().try_for_each(|suite| suite.serialize(out))?;
        writeln!(out, "</testsuites>")
    }
}

impl TestSuite {
    pub fn new(name: &str) -> TestSuite {
        TestSuite { name: name.to_owned(), properties: Vec::new(), cases: Vec::new() }
    }

    pub(crate) fn add_test_case(&mut self, case: TestCase) {
        self.cases.push(case);
    }

    pub(crate) fn add_test_cases(&mut self, cases: impl IntoIterator<Item = TestCase>) {
        self.cases.extend(cases);
    }

    fn serialize(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "    <testsuite name=\"{}\" {}>",
            escape_attribute(&self.name),
            format_counts(&self.cases)
        )?;
        if !self.properties.is_empty() {
            writeln!(out, "        <properties>")?;
            for JunitProperty { name, value } in &self.properties {
                let (name, value) = (escape_attribute(name), escape_attribute(value));
                writeln!(out, "            <property name=\"{name}\" value=\"{value}\"/>")?;
            }
            writeln!(out, "        </properties>")?;
        }
        self.cases.iter().try_for_each(|case| case.serialize(out))?;
        writeln!(out, "    </testsuite>")
    }
}

impl JunitProperty {
    pub fn new(name: &str, value: &str) -> JunitProperty {
        JunitProperty { name: name.to_owned(), value: value.to_owned() }
    }
}

impl TestCase {
    pub fn new(name: &str, status: TestCaseStatus) -> TestCase {
        TestCase { name: name.to_owned(), classname: None, status }
    }

    pub(crate) fn set_classname(&mut self, name: impl Into<String>) {
        self.classname = Some(name.into());
    }

    fn serialize(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "        <testcase name=\"{}\"", escape_attribute(&self.name))?;
        if let Some(name) = &self.classname {
            write!(out, " classname=\"{}\"", escape_attribute(name))?;
        }
        let TestCaseStatus { kind, word, message } = &self.status;
        let Some(kind) = kind else { return writeln!(out, "/>") };
        let (word, message) = (escape_attribute(word), escape_attribute(message));
        let tag = match kind {
            NonSuccessKind::Failure => "failure",
            NonSuccessKind::Error => "error",
            NonSuccessKind::Skipped => {
                let skipped = format!("<skipped message=\"{message}\"/>");
                return writeln!(out, ">\n            {skipped}\n        </testcase>");
            }
        };
        writeln!(
            out,
            ">\n            <{tag} message=\"{message}\" type=\"{word}\"/>\n        </testcase>"
        )
    }
}

impl TestCaseStatus {
    pub fn success() -> TestCaseStatus {
        TestCaseStatus::default()
    }

    /// A status with a word for programs and a sentence for people.
    pub(crate) fn non_success(kind: NonSuccessKind, word: &str, message: &str) -> TestCaseStatus {
        TestCaseStatus { kind: Some(kind), word: word.to_owned(), message: message.to_owned() }
    }
}

fn format_counts<'c>(cases: impl IntoIterator<Item = &'c TestCase>) -> String {
    let kinds: Vec<_> = cases.into_iter().map(|case| case.status.kind).collect();
    let count = |kind| kinds.iter().filter(|of| **of == Some(kind)).count();
    let [skipped, failures, errors] =
        [NonSuccessKind::Skipped, NonSuccessKind::Failure, NonSuccessKind::Error].map(count);
    let tests = kinds.len();
    format!("tests=\"{tests}\" skipped=\"{skipped}\" errors=\"{errors}\" failures=\"{failures}\"")
}

/// Text within double quotes. `plain` escapes control characters, most of which XML 1.0 cannot hold
/// in any way (section 2.2); the same is true of U+FFFE and U+FFFF.
fn escape_attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in escape_unsafe(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&apos;",
            '\u{fffe}' | '\u{ffff}' => escaped.extend(c.escape_unicode()),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_escaped_in_xml_attributes() {
        let hostile = "<a href=\"x\">&'\u{0}\u{1b}[2J\u{ffff}\n";
        assert_eq!(
            escape_attribute(hostile),
            "&lt;a href=&quot;x&quot;&gt;&amp;&apos;\\u{0}\\u{1b}[2J\\u{ffff}\\n"
        );
    }

    #[test]
    fn junit_counts_are_given_per_suite_and_in_total() {
        let case = |kind: Option<NonSuccessKind>| {
            let status = kind.map_or_else(TestCaseStatus::success, |kind| {
                TestCaseStatus::non_success(kind, "word", "why")
            });
            TestCase::new("case", status)
        };
        let mut report = JunitReport::new("all");
        for kinds in [[None, Some(NonSuccessKind::Failure)], [Some(NonSuccessKind::Error), None]] {
            let mut suite = TestSuite::new("some");
            suite.add_test_cases(kinds.map(case));
            report.add_test_suite(suite);
        }
        let mut xml = Vec::new();
        report.serialize(&mut xml).unwrap();
        let xml = String::from_utf8(xml).unwrap();
        assert!(
            xml.contains(
                "<testsuites name=\"all\" tests=\"4\" skipped=\"0\" errors=\"1\" failures=\"1\">"
            ),
            "{xml}"
        );
        assert!(
            xml.contains(
                "<testsuite name=\"some\" tests=\"2\" skipped=\"0\" errors=\"0\" failures=\"1\">"
            ),
            "{xml}"
        );
        assert!(xml.contains("<error message=\"why\" type=\"word\"/>"), "{xml}");
    }
}
