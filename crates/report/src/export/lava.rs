//! Verdicts for LAVA: one line a requirement, `name pass|fail value unit`; `name unknown` where the
//! evidence does not decide, so that nothing undecided looks like a pass. What is invalid is `name
//! fail` without a figure, as is each proof that fails; a line that begins with `#` says why.

use crate::format::plain;
use punctual_bundle::Bundle;
use punctual_bundle::summary::{ProofOutcome, RequirementSummary, VerdictWord};
use punctual_core::Requirement;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Every requirement of every series.
pub fn write(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    let mut given: BTreeMap<String, u32> = BTreeMap::new();
    // LAVA's units are one word: `virtual-us`.
    let unit = bundle.timebase().unit("us").replace(' ', "-");
    let summary = punctual_analyze::summarize(bundle);
    let proofs = summary.validity.iter().flat_map(|validity| &validity.proofs);
    for proof in proofs.filter(|proof| proof.outcome == ProofOutcome::Fails) {
        let name = once(&mut given, id(&format!("valid-{}-{}", proof.subject, proof.proof.word())));
        writeln!(out, "# {name}: {}\n{name} fail", comment(&proof.why))?;
    }
    for phase in summary.phases {
        for series in &phase.series {
            for requirement in &series.requirements {
                let name = once(
                    &mut given,
                    id(&format!("{}-{}-{}", phase.name, series.name, requirement.requirement)),
                );
                if requirement.verdict == VerdictWord::Invalid {
                    let why = requirement.reason.as_deref().unwrap_or_default();
                    writeln!(out, "# {name}: invalid: {}", comment(why))?;
                }
                writeln!(out, "{name} {}", result(requirement, &unit))?;
            }
        }
    }
    Ok(())
}

/// A comment: one line, as simple as the others.
fn comment(why: &str) -> String {
    plain(why).replace('µ', "u").chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

/// Of two results with one name LAVA would show one.
fn once(given: &mut BTreeMap<String, u32>, name: String) -> String {
    let times = given.entry(name.clone()).and_modify(|times| *times += 1).or_insert(1);
    if *times > 1 { format!("{name}-{times}") } else { name }
}

fn result(requirement: &RequirementSummary, unit: &str) -> String {
    let word = match requirement.verdict {
        VerdictWord::Met => "pass",
        VerdictWord::NotMet => "fail",
        VerdictWord::Undecided => return "unknown".to_owned(),
        // What was not measured as requested has no figure.
        VerdictWord::Invalid => return "fail".to_owned(),
    };
    figure(requirement, unit).map_or(word.to_owned(), |figure| format!("{word} {figure}"))
}

/// The figure that was compared, with its unit: `28.543 us`, `10 count`. `unit` is that of times.
pub fn figure(requirement: &RequirementSummary, unit: &str) -> Option<String> {
    let is_time = requirement.requirement.parse::<Requirement>().is_ok_and(|r| r.metric.is_time());
    requirement.figure.map(|figure| {
        if is_time { format!("{:.3} {unit}", figure / 1e3) } else { format!("{figure:.0} count") }
    })
}

/// A test case's name as LAVA takes it: letters, digits, `_`, `.` and `-`. Comparisons become
/// words.
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
    fn names_are_what_lava_takes() {
        assert_eq!(id("idle-timer/cpu0-p99.9 <= 60us"), "idle-timer-cpu0-p99.9-le-60us");
        assert_eq!(id("a\n\u{202e} b"), "a-b");
    }
}
