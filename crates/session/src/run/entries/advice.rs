//! Remedies for each kind of entry: its advice, and the rules of `punctual check` that the system
//! violates.

use punctual_core::entry::EntryKind;
use punctual_core::format;
use punctual_core::{CpuSet, Finding, Nanos, Severity};
use punctual_explain::entries::EntryRow;
use punctual_host::check::{self, Context, RuleVerdict};
use std::collections::BTreeMap;

/// The entries of one kind, on all CPUs.
#[derive(Default)]
struct EntriesOfKind<'a> {
    entries: u64,
    total: Nanos,
    longest: Option<&'a EntryRow>,
    cpus: Vec<usize>,
}

/// A finding for each kind that occurred, the longest in total first, and punctual's own last.
pub(crate) fn entry_findings(
    subject: &str,
    rows: &BTreeMap<usize, Vec<EntryRow>>,
    context: &Context<'_>,
) -> Vec<Finding> {
    let mut kinds: BTreeMap<EntryKind, EntriesOfKind<'_>> = BTreeMap::new();
    for (cpu, row) in rows.iter().flat_map(|(cpu, rows)| rows.iter().map(move |row| (*cpu, row))) {
        let kind_entries = kinds.entry(row.kind).or_default();
        kind_entries.entries += row.entries + row.further;
        kind_entries.total += row.total;
        if kind_entries.longest.is_none_or(|longest| row.longest > longest.longest) {
            kind_entries.longest = Some(row);
        }
        if !kind_entries.cpus.contains(&cpu) {
            kind_entries.cpus.push(cpu);
        }
    }
    let mut sorted_kinds: Vec<(EntryKind, EntriesOfKind<'_>)> = kinds.into_iter().collect();
    sorted_kinds
        .sort_by_key(|(kind, seen)| (*kind == EntryKind::Observer, std::cmp::Reverse(seen.total)));
    sorted_kinds
        .iter()
        .filter_map(|(kind, seen)| kind_finding(subject, *kind, seen, context))
        .collect()
}

fn kind_finding(
    subject: &str,
    kind: EntryKind,
    seen: &EntriesOfKind<'_>,
    context: &Context<'_>,
) -> Option<Finding> {
    let longest = seen.longest?;
    let cpus: CpuSet = seen.cpus.iter().copied().collect();
    let entries = match seen.entries {
        1 => "1 entry".to_owned(),
        n => format!("{} entries", format::count_text(n)),
    };
    let (total, worst) = (seen.total.to_readable(), longest.longest.to_readable());
    let words = kind.words();
    let message = format!("{words}: {entries} on CPU {cpus}, {total} in all, the longest {worst}");
    let evidence = format!("longest: {}, by {}", longest.what, longest.originator);
    let id = format!("entries-{}", kind.id());
    let severity = if kind == EntryKind::Observer { Severity::Note } else { Severity::Advice };
    let finding = Finding::new(&id, severity, subject, message).with_evidence(evidence);
    Some(finding.with_remedy(remedy_for_kind(kind, context)))
}

/// The first violated rule of `check`, and the advice.
fn remedy_for_kind(kind: EntryKind, context: &Context<'_>) -> String {
    let violated = kind.rules().iter().find_map(|rule| {
        let result = check::evaluate_rule(rule, context)?;
        let violated =
            result.applies && !matches!(result.verdict, RuleVerdict::Ok | RuleVerdict::Unknown);
        violated.then(|| {
            let fix = result.fix.map_or_else(String::new, |fix| format!(": {fix}"));
            format!("; check rule {rule}: {}{fix}", result.message)
        })
    });
    let advice = kind.advice().trim_end_matches('.');
    match violated {
        Some(violated) => format!("{advice}{violated}"),
        None if kind.rules().is_empty() => advice.to_owned(),
        None => format!("{advice}; check rules {}: met", kind.rules().join(", ")),
    }
}
