//! The counts of a command or a process.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::table;
use crate::format;
use crate::tables::{Cell, Column, Table};
use punctual_bundle::{CommandCounts, EventCount};
use punctual_core::{Fact, Nanos};

/// The counts as a table, times below it, and why counts are missing.
pub fn show_counts(counts: &CommandCounts, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    let command = counts.command.join(" ");
    let process = counts.pid.map_or(String::new(), |pid| format!("process {pid}: "));
    out.push_heading(&format!(
        "counts of {process}{}",
        format::clip_name(&command, 70, options.ascii)
    ));
    let columns = vec![
        Column::text("event", 0),
        Column::figures("count", 0),
        Column::figures("per second", 0),
        Column::figures("per CPU second", 2),
        Column::text("share", 1),
        Column::text("note", 3),
    ];
    let rows = counts.counts.iter().map(count_row);
    table::write_body(
        &mut out,
        &Table::new("counts", columns).with_rows(rows).with_row_limit(usize::MAX, usize::MAX),
    );
    out.push_gap();
    out.push_paragraph("  ", "  ", Tone::Plain, &format_times(counts));
    for (names, why) in group_reasons(&counts.counts) {
        out.push_paragraph(
            "  ",
            "  ",
            Tone::Uncertain,
            &format!("unavailable: {}: {why}", names.join(", ")),
        );
    }
    out.finish()
}

fn count_row(one: &EventCount) -> Vec<Cell> {
    let count = match &one.count {
        Fact::Known(ns) if one.is_time => {
            Cell::figure(*ns as f64, format_time(Nanos(i64::try_from(*ns).unwrap_or(i64::MAX))))
        }
        Fact::Known(count) => Cell::count(*count),
        _ => Cell::text("unavailable").with_tone(Tone::Uncertain),
    };
    let rate_cell = |rate: Option<f64>| {
        rate.map_or_else(Cell::default, |rate| Cell::figure(rate, self::format_rate(rate)))
    };
    vec![
        Cell::text(&one.name),
        count,
        rate_cell(one.per_second),
        rate_cell(one.per_cpu_second),
        Cell::text(one.format_relation()),
        Cell::text(one.format_note()),
    ]
}

fn format_rate(rate: f64) -> String {
    if rate < 100.0 { format!("{rate:.1}") } else { format::count_text(rate.round() as u64) }
}

fn format_times(counts: &CommandCounts) -> String {
    let cpu = counts.cpu;
    let share = cpu.total.0 as f64 / counts.wall.0.max(1) as f64;
    format!(
        "wall time {}; CPU time {} ({} of one CPU): user {}, system {}{}",
        format_time(counts.wall),
        format_time(cpu.total),
        format::percent_text(share),
        format_time(cpu.user),
        format_time(cpu.system),
        counts.exit_code.map_or(String::new(), |code| format!("; exit code {code}"))
    )
}

/// A count of an interval.
#[derive(Clone, PartialEq, Debug)]
pub struct LiveCount {
    pub name: String,
    /// The count per second; for a time, ns per second. `None` if its counter could not be read.
    pub per_second: Option<f64>,
    /// Whether it is a time.
    pub is_time: bool,
}

/// The heading of [`live_counts_line`]s.
pub fn live_counts_header(counts: &[LiveCount], width: Option<usize>) -> String {
    let cells = fitting_counts(counts, width).iter().map(|one| {
        let room = name_width(one);
        format!("  {:>room$}", one.name)
    });
    format!("{:>9}{}  (a second)", "time", cells.collect::<String>())
}

/// One interval: its end, and the counts per second. Shows the first counts that fit into the
/// width; without a width, all.
pub fn live_counts_line(end: Nanos, counts: &[LiveCount], width: Option<usize>) -> String {
    let cells = fitting_counts(counts, width).iter().map(|one| {
        let room = name_width(one);
        let text = match one.per_second {
            Some(share) if one.is_time => format::percent_text(share / 1e9),
            Some(per_second) => format_rate(per_second),
            None => "-".to_owned(),
        };
        format!("  {text:>room$}")
    });
    format!("{:>7.1} s{}", end.0 as f64 / 1e9, cells.collect::<String>())
}

fn name_width(one: &LiveCount) -> usize {
    one.name.chars().count().max(11)
}

/// The first counts that fit beside the time and the unit; at least one.
fn fitting_counts(counts: &[LiveCount], width: Option<usize>) -> &[LiveCount] {
    let Some(width) = width else { return counts };
    let mut left = width.saturating_sub("1234567 s  (a second)".len());
    let fit = counts.iter().take_while(|one| match left.checked_sub(name_width(one) + 2) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    &counts[..fit.count().max(1).min(counts.len())]
}

/// A time with the digits that a comparison needs.
fn format_time(span: Nanos) -> String {
    let ns = span.0 as f64;
    if ns < 1e9 { format!("{:.3} ms", ns / 1e6) } else { format!("{:.3} s", ns / 1e9) }
}

/// Each reason once, with its counts.
fn group_reasons(counts: &[EventCount]) -> Vec<(Vec<String>, String)> {
    let mut reasons: Vec<(Vec<String>, String)> = Vec::new();
    for one in counts {
        let Fact::Unavailable(why) = &one.count else { continue };
        let name = format::escape_unsafe(&one.name);
        match reasons.iter_mut().find(|(_, other)| other == why) {
            Some((names, _)) => names.push(name),
            None => reasons.push((vec![name], why.clone())),
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_counts_are_one_line_truncated_only_on_a_terminal() {
        let one = |name: &str, per_second| LiveCount {
            name: name.to_owned(),
            per_second,
            is_time: name == "task-clock",
        };
        let counts = [
            one("context-switches", Some(12_345.6)),
            one("page-faults", Some(0.5)),
            one("task-clock", Some(5e8)),
            one("signals", None),
        ];
        let both = |width| {
            let header = live_counts_header(&counts, width);
            header + "\n" + &live_counts_line(Nanos(1_500_000_000), &counts, width)
        };
        let whole = [
            "     time  context-switches  page-faults   task-clock      signals  (a second)",
            "    1.5 s            12,346          0.5       50.0 %            -",
        ];
        assert_eq!(both(None), whole.join("\n"));
        assert!(both(Some(40)).lines().all(|line| line.len() <= 40), "{}", both(Some(40)));
        assert!(both(Some(40)).contains("12,346") && !both(Some(40)).contains("page-faults"));
        assert!(both(Some(1)).contains("12,346"), "the first is always there");
    }
}
