//! Verdicts for LAVA: one line per requirement, `name pass|fail value unit`; `name unknown` if the
//! evidence does not decide, so that nothing undecided looks like a pass. An invalid requirement, a
//! failed proof and any other failure are `name fail` without a figure; a line that begins with `#`
//! gives the reason.

use super::cases::{CaseResult, ExportedCase, cases};
use super::{Exporter, Writer};
use crate::format::plain;
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
    write_summary(&punctual_stats::summarize(bundle), bundle.timebase(), out)
}

pub(crate) fn write_summary(
    summary: &Summary,
    timebase: Timebase,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut given: BTreeMap<String, u32> = BTreeMap::new();
    // LAVA's units are one word: `virtual-us`.
    let unit = timebase.unit("us").replace(' ', "-");
    for case in cases(summary) {
        // The name of a proof has its subject before the property.
        let name = match case.name.strip_prefix("valid: ") {
            Some(proof) => format!("valid-{}-{proof}", case.place),
            None => format!("{}-{}", case.place, case.name),
        };
        let name = once(&mut given, id(&name));
        match (case.requirement, case.result) {
            (Some(_), CaseResult::Verdict(VerdictWord::Invalid)) => {
                writeln!(out, "# {name}: invalid: {}", comment(&case.why))?;
            }
            (None, _) => writeln!(out, "# {name}: {}", comment(&case.why))?,
            _ => {}
        }
        writeln!(out, "{name} {}", result(&case, &unit))?;
    }
    Ok(())
}

/// A comment: one line of ASCII.
fn comment(why: &str) -> String {
    plain(why).replace('µ', "u").chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

/// Numbers equal names: LAVA shows only one of two results with one name.
fn once(given: &mut BTreeMap<String, u32>, name: String) -> String {
    let times = given.entry(name.clone()).and_modify(|times| *times += 1).or_insert(1);
    if *times > 1 { format!("{name}-{times}") } else { name }
}

fn result(case: &ExportedCase<'_>, unit: &str) -> String {
    let word = match case.result {
        CaseResult::Verdict(VerdictWord::Met) => "pass",
        CaseResult::Verdict(VerdictWord::NotMet) => "fail",
        CaseResult::Verdict(VerdictWord::Undecided) => return "unknown".to_owned(),
        CaseResult::Skipped => return "skip".to_owned(),
        // A series that was not measured as requested has no figure.
        CaseResult::Verdict(VerdictWord::Invalid) | CaseResult::Failed => return "fail".to_owned(),
    };
    let figure = case.requirement.and_then(|(_, stated)| figure(stated, unit));
    figure.map_or(word.to_owned(), |figure| format!("{word} {figure}"))
}

/// The compared figure with its unit: `28.543 us`, `10 count`. `unit` is the unit of times.
pub fn figure(requirement: &RequirementSummary, unit: &str) -> Option<String> {
    let is_time = requirement.requirement.parse::<Requirement>().is_ok_and(|r| r.metric.is_time());
    requirement.figure.map(|figure| {
        if is_time { format!("{:.3} {unit}", figure / 1e3) } else { format!("{figure:.0} count") }
    })
}

/// A valid LAVA test case name: letters, digits, `_`, `.` and `-`. Comparisons become words.
pub(super) fn id(name: &str) -> String {
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
    use super::id;

    #[test]
    fn lava_test_names_contain_only_valid_characters() {
        assert_eq!(id("idle-timer/cpu0-p99.9 <= 60us"), "idle-timer-cpu0-p99.9-le-60us");
        assert_eq!(id("a\n\u{202e} b"), "a-b");
    }
}
