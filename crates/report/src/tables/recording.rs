//! The content of a recording.

use super::{Cell, Column, Face, Table, Tone};
use crate::format::count_text;
use punctual_core::Nanos;
use punctual_core::event::Recorded;
use punctual_explain::EventCounts;

/// The number of events of each recorded group, also of empty groups; then of events that are not
/// the kernel's.
pub(crate) fn kind_table(recorded: &Recorded, counts: &EventCounts) -> Table {
    let span = recorded.ended - recorded.began;
    let row = |name: Cell, n: u64, of_these: String| {
        let rate = (span > Nanos::ZERO).then(|| n as f64 / span.as_secs_f64());
        let rate = rate.map(|rate| Cell::figure(rate, count_text(rate.round() as u64)));
        vec![name, Cell::count(n), rate.unwrap_or_else(|| Cell::absent("–")), Cell::text(of_these)]
    };
    let mut groups = recorded.groups.clone();
    groups.extend(counts.kernel.keys().filter(|group| !recorded.groups.contains(group)));
    let mut rows = Vec::new();
    for group in groups {
        let mut kinds: Vec<_> = counts.kernel.get(&group).into_iter().flatten().collect();
        kinds.sort_by(|(a, n), (b, m)| m.cmp(n).then(a.cmp(b)));
        let kinds = kinds.iter().map(|(name, n)| format!("{name} {}", count_text(**n)));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        rows.push(row(Cell::text(group.word()), counts.group_count(group), kinds));
    }
    let named = counts.counts_by_name(recorded);
    rows.extend(named.iter().map(|(name, n)| row(Cell::name(*name), *n, String::new())));
    let own_counts = [
        ("test points", counts.points),
        ("calls of functions", counts.calls),
        ("stacks", counts.stacks),
        ("samples", counts.samples),
    ];
    let nonzero_counts = own_counts.into_iter().filter(|(_, n)| *n > 0);
    rows.extend(nonzero_counts.map(|(title, n)| row(Cell::text(title), n, String::new())));
    let columns = vec![
        Column::text("events", 0),
        Column::figures("count", 0),
        Column::figures("per second", 1),
        Column::text("of these", 0).with_shrinking().with_wide_texts(),
    ];
    let mut table = Table::new("events by group", columns).with_rows(rows).with_sorting();
    let text = "groups that are not listed were not recorded";
    table.remark_in(Face::Page, Tone::Faint, text);
    table
}

/// The events and losses of each source, those with most losses first.
pub fn source_table(recorded: &Recorded) -> Table {
    let mut sources: Vec<_> = recorded.sources.iter().collect();
    sources.sort_by_key(|source| (std::cmp::Reverse(source.lost), std::cmp::Reverse(source.torn)));
    let rows = sources.iter().map(|source| {
        let all_events = source.recorded.saturating_add(source.lost);
        let lost = source.lost as f64 / all_events.max(1) as f64;
        vec![
            Cell::name(&source.name),
            Cell::count(source.recorded),
            Cell::loss_count(Some(source.lost)),
            Cell::share(lost).with_tone(if source.lost > 0 {
                Tone::Uncertain
            } else {
                Tone::Plain
            }),
            Cell::count(source.torn),
        ]
    });
    let columns = vec![
        Column::text("source", 0).at_most(40),
        Column::figures("recorded", 0),
        Column::figures("lost", 0),
        Column::figures("share lost", 0),
        Column::figures("torn", 0)
            .with_meaning("records without an end, because their writer died"),
    ];
    Table::new("sources of events, and their losses", columns)
        .with_rows(rows)
        .with_sorting()
        .with_row_limit(16, 200)
}
