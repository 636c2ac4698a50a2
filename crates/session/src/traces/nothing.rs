//! Why no cycles are found in a trace: the events that it has, those that are missing for which
//! question, and how to record them.

use super::PHASE;
use punctual_core::event::{Group, Recorded};
use punctual_core::{Finding, Severity};
use std::collections::BTreeMap;
use std::fmt;

/// Tracepoints that are listed, those with the most records.
const LISTED_TRACEPOINTS: usize = 12;

/// The groups of which a question needs all, and the word of `punctual recipe --for`.
const QUESTIONS: [(&[Group], &str, &str); 2] = [
    (&[Group::Sched], "how long threads waited for a CPU", "wakeup"),
    (
        &[Group::Sched, Group::Hrtimer, Group::Irq, Group::Softirq, Group::Syscall],
        "when cycles were due and what delayed them",
        "cause",
    ),
];

/// Why nothing was found.
pub(super) struct Nothing {
    has: String,
    missing: Vec<String>,
    seen: Vec<String>,
    remedy: String,
}

pub(super) fn explain_nothing(
    recorded: &Recorded,
    counts: &BTreeMap<String, u64>,
    seen: &[String],
    remedy: Option<&str>,
) -> Nothing {
    let mut counts: Vec<(&String, &u64)> = counts.iter().filter(|(_, count)| **count > 0).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let unlisted_kinds = counts.len().saturating_sub(LISTED_TRACEPOINTS);
    let listed_counts =
        counts.iter().take(LISTED_TRACEPOINTS).map(|(name, count)| format!("{count} {name}"));
    let groups = recorded.groups.iter().map(|group| format!("the group {}", group.word()));
    let has: Vec<String> =
        if counts.is_empty() { groups.collect() } else { listed_counts.collect() };
    let has = match (has.is_empty(), unlisted_kinds) {
        (true, _) => "no events that are known".to_owned(),
        (false, 0) => has.join(", "),
        (false, more) => format!("{} and {more} other kinds", has.join(", ")),
    };
    let question = |(groups, question, word): &(&[Group], &str, &'static str)| {
        let absent = groups.iter().filter(|group| !recorded.has_group(**group));
        let absent: Vec<&str> = absent.map(|group| group.word()).collect();
        let lacks = format!("{question}: no {} events", absent.join(", "));
        (!absent.is_empty()).then_some((lacks, *word))
    };
    let missing: Vec<(String, &str)> = QUESTIONS.iter().filter_map(question).collect();
    let record = |(_, word): &(String, &str)| format!("`punctual recipe trace-cmd --for {word}`");
    let remedy = remedy.map(str::to_owned).unwrap_or_else(|| match missing.as_slice() {
        [] => "name a thread with --thread, or an interval with --at FROM..TO".to_owned(),
        missing => {
            let lines: Vec<String> = missing.iter().map(record).collect();
            format!("{} prints the line that records them", lines.join(" or "))
        }
    });
    let missing = missing.into_iter().map(|(lacks, _)| lacks).collect();
    Nothing { has, missing, seen: seen.to_vec(), remedy }
}

impl Nothing {
    /// The same in one line.
    pub(super) fn to_finding(&self) -> Finding {
        let message = format!("no thread with cycles was found; the trace has {}", self.has);
        let evidence: Vec<&String> = self.missing.iter().chain(&self.seen).collect();
        let evidence = evidence.iter().map(|line| line.replace('\n', " ")).collect::<Vec<_>>();
        let finding = Finding::new("no-cycles-found", Severity::Note, PHASE, message);
        let finding = finding.with_remedy(self.remedy.clone());
        if evidence.is_empty() { finding } else { finding.with_evidence(evidence.join("; ")) }
    }
}

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no thread with cycles was found\nit has: {}", self.has)?;
        for missing in &self.missing {
            write!(f, "\nnot known: {missing}")?;
        }
        if !self.seen.is_empty() {
            write!(f, "\nwhat was seen:\n       {}", self.seen.join("\n       "))?;
        }
        write!(f, "\nhelp: {}", self.remedy)
    }
}
