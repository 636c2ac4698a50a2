//! The tables about a recording.

mod intervals;
mod occupancy;

pub use intervals::{functions, intervals, scopes, violated, worst};
pub use occupancy::{cpus, interrupts, threads};

use crate::format::{count, duration, percent};
use crate::html::table::{Cell, Column, Table};
use crate::html::text::{name, span};
use punctual_analyze::EventCounts;
use punctual_core::event::Recorded;

/// Sources in the table.
const MAX_SOURCES: usize = 200;

/// What was recorded, in a few lines.
pub fn about(recorded: &Recorded, counts: &EventCounts) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        (
            "Recorded",
            format!(
                "{}, {} events",
                duration(recorded.ended - recorded.began),
                count(counts.total())
            ),
        ),
        ("Kernel events by", name(&recorded.recorder)),
        (
            "On CPUs",
            if recorded.cpus.is_empty() { "none".to_owned() } else { recorded.cpus.to_string() },
        ),
    ];
    if !recorded.pids.is_empty() {
        let pids: Vec<String> = recorded.pids.iter().take(32).map(u32::to_string).collect();
        lines.push(("Only processes", pids.join(", ")));
    }
    if let Some(error) = recorded.point_clock_error {
        lines.push(("Clock error of test points", format!("at most {}", span(error))));
    }
    let torn = recorded.sources.iter().fold(0u64, |sum, source| sum.saturating_add(source.torn));
    let torn = if torn > 0 { format!("; {} torn records", count(torn)) } else { String::new() };
    let lost = match recorded.lost() {
        0 => "no event was lost".to_owned(),
        lost => format!("{} events lost", count(lost)),
    };
    lines.push(("Losses", lost + &torn));
    lines
}

/// How many events there are of each group that was recorded; a group without events is a row too.
pub fn kinds(recorded: &Recorded, counts: &EventCounts) -> Table {
    let mut groups = recorded.groups.clone();
    groups.extend(counts.kernel.keys().filter(|group| !recorded.groups.contains(group)));
    let of_group = |group: &punctual_core::event::Group| {
        let kinds = counts.kernel.get(group).into_iter().flatten();
        let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{kind} {}", count(*n))).collect();
        vec![
            Cell::text(group.word()),
            Cell::count(counts.group(*group)),
            Cell::text(kinds.join(", ")),
        ]
    };
    let mut rows: Vec<Vec<Cell>> = groups.iter().map(of_group).collect();
    let named = counts.named(recorded);
    rows.extend(
        named.iter().map(|(name, n)| vec![Cell::text(*name), Cell::count(*n), Cell::text("")]),
    );
    let own = [
        ("test points", counts.points),
        ("calls of functions", counts.calls),
        ("samples", counts.samples),
        ("stacks", counts.stacks),
    ];
    let own = own.into_iter().filter(|(_, n)| *n > 0);
    rows.extend(own.map(|(title, n)| vec![Cell::text(title), Cell::count(n), Cell::text("")]));
    Table {
        caption: "Events, by group. Groups that are not listed were not recorded.".to_owned(),
        columns: vec![Column::text("Events"), Column::figures("Count"), Column::text("Of these")],
        rows,
        sortable: true,
    }
}

/// What each source gave and lost; `None` where there is no source.
pub fn sources(recorded: &Recorded) -> Option<Table> {
    let mut sources: Vec<_> = recorded.sources.iter().collect();
    sources.sort_by_key(|source| (std::cmp::Reverse(source.lost), std::cmp::Reverse(source.torn)));
    let more = sources.len().saturating_sub(MAX_SOURCES);
    let row = |source: &&punctual_core::event::Source| {
        let all = source.recorded.saturating_add(source.lost);
        let share = source.lost as f64 / all.max(1) as f64;
        let lost =
            Cell { class: if source.lost > 0 { "alert" } else { "" }, ..Cell::count(source.lost) };
        vec![
            Cell::text(name(&source.name)),
            Cell::count(source.recorded),
            lost,
            Cell::figure(percent(share), share),
            Cell::count(source.torn),
        ]
    };
    let rows: Vec<Vec<Cell>> = sources.iter().take(MAX_SOURCES).map(row).collect();
    let more = if more > 0 {
        format!(" {more} more, with fewer losses, are not shown.")
    } else {
        String::new()
    };
    (!rows.is_empty()).then(|| Table {
        caption: format!("Sources of events, and their losses.{more}"),
        columns: vec![
            Column::text("Source"),
            Column::figures("Recorded"),
            Column::figures("Lost"),
            Column::figures("Share lost"),
            Column::figures("Torn").meaning("records without an end, because their writer died"),
        ],
        rows,
        sortable: true,
    })
}
