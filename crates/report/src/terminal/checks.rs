//! The results of the checks of a system: the number of each verdict, then what to do, the worst
//! first, and at the end the names of satisfied rules. Sentences wrap, so that each open rule is a
//! paragraph.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use crate::format;
use crate::tables::checks::{CheckRow, CheckVerdict};
use std::collections::BTreeSet;

/// All checks: the counts and open rules, then the others, folded by group.
pub fn show_checks(rules: &[CheckRow], options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    write_counts(&mut out, rules);
    let open = |rule: &&CheckRow| rule.verdict().is_open();
    let mut to_do: Vec<&CheckRow> = rules.iter().filter(open).collect();
    // The sort is stable: rules with one verdict stay in the order of their groups.
    to_do.sort_by_key(|rule| rule.verdict());
    if !to_do.is_empty() {
        out.push_heading("what to do");
        to_do.iter().for_each(|rule| write_open(&mut out, rule));
    }
    for verdict in CheckVerdict::ALL.into_iter().filter(|verdict| !verdict.is_open()) {
        write_folded(&mut out, rules, verdict);
    }
    if rules.iter().any(|rule| !rule.verdict().is_open()) {
        out.push_gap();
        out.push_paragraph("", "", Tone::Faint, "evidence of each rule: --json");
    }
    out.finish()
}

/// A rule that is not satisfied: the finding and its source, why it matters, and what to do.
fn write_open(out: &mut TextPage, rule: &CheckRow) {
    let (tone, mark, word) = rule.verdict().appearance();
    let mark = out.choose_spelling(mark.to_owned(), format!("{word}:"));
    let id = out.paint(Tone::Strong, &format::escape_unsafe(&rule.id));
    let begin = format!("  {} {id}  ", out.paint(tone, &mark));
    let hang = "      ";
    out.push_paragraph(&begin, hang, Tone::Plain, &format::escape_unsafe(rule.message()));
    if let Some(evidence) = rule.evidence() {
        out.push_paragraph(hang, hang, Tone::Faint, &format::escape_unsafe(evidence));
    }
    if let Some(why) = rule.rationale() {
        out.push_paragraph(hang, hang, Tone::Faint, &format::escape_unsafe(why));
    }
    if let Some(fix) = rule.fix() {
        let arrow = format!("{hang}{}", out.choose_spelling("→ ", "> "));
        out.push_paragraph(&arrow, &format!("{hang}  "), Tone::Good, &format::escape_unsafe(fix));
    }
}

/// Rules that need no action: their names, one paragraph per group.
fn write_folded(out: &mut TextPage, rules: &[CheckRow], verdict: CheckVerdict) {
    let those: Vec<&CheckRow> = rules.iter().filter(|rule| rule.verdict() == verdict).collect();
    if those.is_empty() {
        return;
    }
    let (_, mark, word) = verdict.appearance();
    let mark = out.choose_spelling(format!("{mark} "), String::new());
    let heading = format!("{mark}{} {word}", those.len());
    out.push_heading(&heading);
    let mut seen_groups = BTreeSet::new();
    for group in those.iter().map(|rule| &rule.group).filter(|group| seen_groups.insert(*group)) {
        let names = those.iter().filter(|rule| rule.group == *group).map(|rule| rule.id.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        let text = format!("{}: {}", format::escape_unsafe(group), format::escape_unsafe(&names));
        out.push_paragraph("  ", "    ", Tone::Faint, &text);
    }
}

/// The number of rules with each verdict, on as many lines as needed.
fn write_counts(out: &mut TextPage, rules: &[CheckRow]) {
    let (mut line, mut used) = (String::new(), 0);
    for verdict in CheckVerdict::ALL {
        let n = rules.iter().filter(|rule| rule.verdict() == verdict).count();
        let (tone, _, word) = verdict.appearance();
        let count = format!("{n} {word}");
        if n == 0 {
            continue;
        }
        // The width includes a comma.
        if used > 0 && used + count.len() + 2 > out.options.width {
            out.push_line(&std::mem::take(&mut line));
            used = 0;
        }
        used += count.len() + 2;
        line += &format!("{}, ", out.paint(tone, &count));
    }
    let end = line.trim_end_matches(", ").to_owned();
    out.push_line(&end);
}
