//! The results of the checks of a system: what is right briefly, what is not with its reason and
//! its fix. Sentences wrap, so that each rule is a paragraph.

use super::ShowOptions;
use super::paint::{Page, Tone};
use crate::format;
use crate::tables::checks::{Rule, Verdict};
use std::collections::BTreeSet;

/// All checks by group, and at the end how many of each verdict.
pub fn checks(rules: &[Rule], options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    let widths = rules.iter().map(|rule| format::width_of(&format::plain(&rule.id)));
    let width = widths.max().unwrap_or(0).min(32);
    let mut seen = BTreeSet::new();
    for group in rules.iter().map(|rule| &rule.group).filter(|group| seen.insert(*group)) {
        out.heading(&format::plain(group));
        let of_group = rules.iter().filter(|rule| rule.group == *group);
        of_group.for_each(|rule| write_rule(&mut out, rule, width));
    }
    out.gap();
    let counts = Verdict::ALL.iter().filter_map(|verdict| count(&out, rules, *verdict));
    let line = counts.collect::<Vec<String>>().join(", ");
    out.line(&line);
    out.finish()
}

fn write_rule(out: &mut Page, rule: &Rule, width: usize) {
    let (tone, mark, word) = rule.verdict().look();
    let mark = out.either(mark.to_owned(), format!("{word:<14}"));
    let id = format::clipped(&rule.id, width, out.options.ascii);
    let space = " ".repeat(width.saturating_sub(format::width_of(&id)));
    let begin = format!("  {} {id}{space}  ", out.paint(tone, &mark));
    let hang = " ".repeat(2 + format::width_of(&mark) + 1 + width + 2);
    out.paragraph(&begin, &hang, Tone::Plain, &format::plain(&rule.result()));
    if let Some(why) = rule.why() {
        out.paragraph(&hang, &hang, Tone::Faint, &format::plain(why));
    }
    if let Some(fix) = rule.fix() {
        let arrow = format!("{hang}{}", out.either("→ ", "> "));
        out.paragraph(&arrow, &format!("{hang}  "), Tone::Good, &format::plain(fix));
    }
}

fn count(out: &Page, rules: &[Rule], verdict: Verdict) -> Option<String> {
    let n = rules.iter().filter(|rule| rule.verdict() == verdict).count();
    let (tone, _, word) = verdict.look();
    (n > 0).then(|| out.paint(tone, &format!("{n} {word}")))
}
