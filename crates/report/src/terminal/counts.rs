//! What was counted while a command ran.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table;
use crate::format;
use crate::tables::{Cell, Column, Table};
use punctual_bundle::{Count, CountSource, Counts};
use punctual_core::{Fact, Nanos};

/// The counts as a table, times below it, and why counts are missing.
pub fn counts(counts: &Counts, options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    let command = counts.command.join(" ");
    out.heading(&format!("counts of {}", format::clipped(&command, 70, options.ascii)));
    let columns = vec![
        Column::text("event", 0),
        Column::figures("count", 0),
        Column::figures("per CPU second", 1),
        Column::text("share", 2),
        Column::text("note", 3),
    ];
    let rows = counts.counts.iter().map(row);
    table::body(&mut out, &Table::new("counts", columns).rows(rows).shown(usize::MAX, usize::MAX));
    out.gap();
    out.paragraph("  ", "  ", Tone::Plain, &times(counts));
    for (names, why) in reasons(&counts.counts) {
        out.paragraph(
            "  ",
            "  ",
            Tone::Uncertain,
            &format!("unavailable: {}: {why}", names.join(", ")),
        );
    }
    out.finish()
}

fn row(one: &Count) -> Vec<Cell> {
    let count = match &one.count {
        Fact::Known(ns) if one.is_time => {
            Cell::figure(*ns as f64, time(Nanos(i64::try_from(*ns).unwrap_or(i64::MAX))))
        }
        Fact::Known(count) => Cell::count(*count),
        _ => Cell::text("unavailable").tone(Tone::Uncertain),
    };
    let rate = one.per_cpu_second;
    vec![
        Cell::text(&one.name),
        count,
        rate.map_or_else(Cell::default, |per_second| {
            Cell::figure(per_second, self::rate(per_second))
        }),
        Cell::text(count_share(one)),
        Cell::text(count_note(one)),
    ]
}

/// Its relation to another count; empty where there is none.
pub fn count_share(one: &Count) -> String {
    one.share.as_ref().map_or(String::new(), |share| match share.of.as_str() {
        // Instructions are no part of cycles.
        "cycles" => format!("{:.2} per cycle", share.share),
        of => format!("{} of {of}", format::percent(share.share)),
    })
}

/// How it was counted, where that is not as usual.
pub fn count_note(one: &Count) -> String {
    let mut notes = Vec::new();
    if let (true, Some(enabled), Some(running)) = (one.scaled, one.enabled, one.running) {
        let share = running.0 as f64 / (enabled.0.max(1)) as f64;
        notes.push(format!("scaled: counted {} of the time", format::percent(share)));
    }
    if one.user_only {
        notes.push("user mode only".to_owned());
    }
    if one.source == CountSource::Wait4 && one.count.known().is_some() {
        notes.push("from wait4(2)".to_owned());
    }
    notes.join(", ")
}

fn rate(rate: f64) -> String {
    if rate < 100.0 { format!("{rate:.1}") } else { format::count(rate.round() as u64) }
}

fn times(counts: &Counts) -> String {
    let cpu = counts.cpu;
    let share = cpu.total.0 as f64 / counts.wall.0.max(1) as f64;
    format!(
        "wall time {}; CPU time {} ({} of one CPU): user {}, system {}; exit code {}",
        time(counts.wall),
        time(cpu.total),
        format::percent(share),
        time(cpu.user),
        time(cpu.system),
        counts.exit_code
    )
}

/// With as many digits as a comparison needs.
fn time(span: Nanos) -> String {
    let ns = span.0 as f64;
    if ns < 1e9 { format!("{:.3} ms", ns / 1e6) } else { format!("{:.3} s", ns / 1e9) }
}

/// Each reason once, with the counts that it concerns.
fn reasons(counts: &[Count]) -> Vec<(Vec<String>, String)> {
    let mut reasons: Vec<(Vec<String>, String)> = Vec::new();
    for one in counts {
        let Fact::Unavailable(why) = &one.count else { continue };
        let name = format::plain(&one.name);
        match reasons.iter_mut().find(|(_, other)| other == why) {
            Some((names, _)) => names.push(name),
            None => reasons.push((vec![name], why.clone())),
        }
    }
    reasons
}
