//! The results of the checks of a host as a table: what is right briefly, what is not with its
//! reason and its fix.

use super::ShowOptions;
use super::paint::{Page, Tone};
use crate::format;

/// One check and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckRow {
    /// What it belongs to: `kernel`, `scheduling`, …; rows of one group stand together.
    pub group: String,
    /// Its stable name.
    pub id: String,
    /// What became of it.
    pub verdict: CheckVerdict,
    /// What was seen, and where.
    pub evidence: String,
    /// Why it matters.
    pub why: String,
    /// What to do; empty where nothing is to be done.
    pub fix: String,
}

/// What became of a check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CheckVerdict {
    /// As it should be.
    Good,
    /// It does not concern this system.
    NotApplicable,
    /// It could not be found out.
    Unknown,
    /// It could be better.
    Advice,
    /// It may cause latency.
    Warning,
    /// It causes latency.
    Bad,
}

impl CheckVerdict {
    const ALL: [CheckVerdict; 6] = [
        CheckVerdict::Bad,
        CheckVerdict::Warning,
        CheckVerdict::Advice,
        CheckVerdict::Unknown,
        CheckVerdict::Good,
        CheckVerdict::NotApplicable,
    ];

    fn look(self) -> (Tone, &'static str, &'static str) {
        match self {
            CheckVerdict::Good => (Tone::Good, "✓", "good"),
            CheckVerdict::NotApplicable => (Tone::Faint, "·", "not applicable"),
            CheckVerdict::Unknown => (Tone::Uncertain, "?", "unknown"),
            CheckVerdict::Advice => (Tone::Strong, "~", "advice"),
            CheckVerdict::Warning => (Tone::Uncertain, "!", "warning"),
            CheckVerdict::Bad => (Tone::Bad, "✗", "bad"),
        }
    }

    fn needs_words(self) -> bool {
        !matches!(self, CheckVerdict::Good | CheckVerdict::NotApplicable)
    }
}

/// All checks by group, and at the end how many of each verdict.
pub fn check_table(rows: &[CheckRow], options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    let width =
        rows.iter().map(|row| format::width_of(&format::plain(&row.id))).max().unwrap_or(0).min(32);
    let mut groups: Vec<&str> = rows.iter().map(|row| row.group.as_str()).collect();
    let mut seen = std::collections::BTreeSet::new();
    groups.retain(|group| seen.insert(*group));
    for group in groups {
        out.heading(&format::plain(group));
        rows.iter()
            .filter(|row| row.group == group)
            .for_each(|row| write_row(&mut out, row, width));
    }
    out.gap();
    let counts = CheckVerdict::ALL.iter().filter_map(|verdict| count(&out, rows, *verdict));
    let line = counts.collect::<Vec<String>>().join(", ");
    out.line(&line);
    out.finish()
}

fn write_row(out: &mut Page, row: &CheckRow, width: usize) {
    let (tone, mark, word) = row.verdict.look();
    let mark = out.either(mark.to_owned(), format!("{word:<14}"));
    let id = format::clipped(&row.id, width, out.options.ascii);
    let space = " ".repeat(width.saturating_sub(format::width_of(&id)));
    let begin = format!("  {} {id}{space}  ", out.paint(tone, &mark));
    let indent = 2 + format::width_of(&mark) + 1 + width + 2;
    let hang = " ".repeat(indent);
    out.paragraph(&begin, &hang, Tone::Plain, &format::plain(&row.evidence));
    if row.verdict.needs_words() {
        let why = format::plain(&row.why);
        if !why.is_empty() {
            out.paragraph(&hang, &hang, Tone::Faint, &why);
        }
        if !row.fix.is_empty() {
            let arrow = out.either("→ ", "> ");
            out.paragraph(
                &format!("{hang}{arrow}"),
                &format!("{hang}  "),
                Tone::Good,
                &format::plain(&row.fix),
            );
        }
    }
}

fn count(out: &Page, rows: &[CheckRow], verdict: CheckVerdict) -> Option<String> {
    let n = rows.iter().filter(|row| row.verdict == verdict).count();
    let (tone, _, word) = verdict.look();
    (n > 0).then(|| out.paint(tone, &format!("{n} {word}")))
}
