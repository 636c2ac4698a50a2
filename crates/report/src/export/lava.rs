//! Verdicts for LAVA: one line per requirement, `name pass|fail value unit`; `name unknown` if the
//! evidence does not decide, so that nothing undecided looks like a pass. An invalid requirement, a
//! failed proof and any other failure are `name fail` without a figure; a line that begins with `#`
//! gives the reason.

use super::cases::{CaseResult, ExportedCase, collect_cases};
use super::{Exporter, Writer};
use crate::format::escape_unsafe;
use punctual_bundle::summary::{RequirementSummary, Summary, VerdictWord};
use punctual_bundle::{Bundle, Timebase};
use punctual_core::Requirement;
use std::collections::BTreeMap;
use std::io::{self, Write};

pub(super) const EXPORTER: Exporter = Exporter {
    answers: true,
    ..Exporter::new(
        "lava",
        "the requirements' verdicts as lines for LAVA",
        Writer::Bundle(|bundle, out| Ok(write(bundle, out)?)),
    )
};

/// Writes every requirement of every series, and the other reasons against the verdict.
pub fn write(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    write_summary(&punctual_stats::summarize_bundle(bundle), bundle.timebase(), out)
}

pub(crate) fn write_summary(
    summary: &Summary,
    timebase: Timebase,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut name_counts: BTreeMap<String, u32> = BTreeMap::new();
    // LAVA's units are one word: `virtual-us`.
    let unit = timebase.format_unit("us").replace(' ', "-");
    for case in collect_cases(summary) {
        // The name of a proof has its subject before the property.
        let name = match case.name.strip_prefix("valid: ") {
            Some(proof) => format!("valid-{}-{proof}", case.place),
            None => format!("{}-{}", case.place, case.name),
        };
        let name = number_equal_names(&mut name_counts, to_test_name(&name));
        match (case.requirement, case.result) {
            (Some(_), CaseResult::Verdict(VerdictWord::Invalid)) => {
                writeln!(out, "# {name}: invalid: {}", to_comment(&case.why))?;
            }
            (None, _) => writeln!(out, "# {name}: {}", to_comment(&case.why))?,
            _ => {}
        }
        writeln!(out, "{name} {}", format_result(&case, &unit))?;
    }
    Ok(())
}

/// A comment: one line of ASCII.
fn to_comment(why: &str) -> String {
    escape_unsafe(why)
        .replace('µ', "u")
        .chars()
        .map(|c| if c.is_ascii() { c } else { '?' })
        .collect()
}

/// Numbers equal names: LAVA shows only one of two results with one name.
fn number_equal_names(given: &mut BTreeMap<String, u32>, name: String) -> String {
    let times = given.entry(name.clone()).and_modify(|times| *times += 1).or_insert(1);
    if *times > 1 { format!("{name}-{times}") } else { name }
}

fn format_result(case: &ExportedCase<'_>, unit: &str) -> String {
    let word = match case.result {
        CaseResult::Verdict(VerdictWord::Met) => "pass",
        CaseResult::Verdict(VerdictWord::NotMet) => "fail",
        CaseResult::Verdict(VerdictWord::Undecided) => return "unknown".to_owned(),
        CaseResult::Skipped => return "skip".to_owned(),
        // A series that was not measured as requested has no figure.
        CaseResult::Verdict(VerdictWord::Invalid) | CaseResult::Failed => return "fail".to_owned(),
    };
    let figure = case.requirement.and_then(|(_, stated)| format_figure(stated, unit));
    figure.map_or(word.to_owned(), |figure| format!("{word} {figure}"))
}

/// The compared figure with its unit: `28.543 us`, `10 count`. `unit` is the unit of times.
pub fn format_figure(requirement: &RequirementSummary, unit: &str) -> Option<String> {
    let is_time = requirement.requirement.parse::<Requirement>().is_ok_and(|r| r.metric.is_time());
    requirement.figure.map(|figure| {
        if is_time { format!("{:.3} {unit}", figure / 1e3) } else { format!("{figure:.0} count") }
    })
}

/// A valid LAVA test case name: letters, digits, `_`, `.` and `-`. Comparisons become words.
pub(super) fn to_test_name(name: &str) -> String {
    let words = name
        .replace("<=", "le")
        .replace(">=", "ge")
        .replace("==", "eq")
        .replace('<', "lt")
        .replace('>', "gt");
    let mut id = String::new();
    for c in words.chars().take(200) {
        let c = if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') { c } else { '-' };
        if c != '-' || !id.ends_with('-') {
            id.push(c);
        }
    }
    id.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::to_test_name;

    #[test]
    fn lava_test_names_contain_only_valid_characters() {
        assert_eq!(to_test_name("idle-timer/cpu0-p99.9 <= 60us"), "idle-timer-cpu0-p99.9-le-60us");
        assert_eq!(to_test_name("a\n\u{202e} b"), "a-b");
    }
}
