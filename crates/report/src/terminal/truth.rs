//! How often explanations were right.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table;
use crate::format;
use crate::tables::{Cell, Column, Table};
use punctual_bundle::truth::{TruthDocument, TruthScore, TruthSystem};

pub fn truth(document: &TruthDocument, options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    for system in &document.systems {
        let time = if system.virtual_time { ", virtual time" } else { "" };
        out.heading(&format!("causes injected on {}{time}", format::plain(&system.kernel)));
        write_cases(&mut out, system);
        let skipped = system.cases.iter().filter(|case| case.skipped.is_some()).count() as u64;
        if let Some(why) = system.cases.iter().find_map(|case| case.skipped.as_deref()) {
            let text = format!("{} not run: {why}", format::counted(skipped, "case"));
            out.paragraph("  ", "  ", Tone::Uncertain, &text);
        }
        for case in system.cases.iter().filter(|case| !case.score.confused.is_empty()) {
            let others: Vec<String> = case
                .score
                .confused
                .iter()
                .map(|(cause, count)| format!("{cause} {count} ×"))
                .collect();
            let text = format!("{}: shown as {}", format::plain(&case.name), others.join(", "));
            out.paragraph("  ", "    ", Tone::Plain, &text);
        }
    }
    let text = "affected: samples that were due while the injected cause was active and ended \
                after it, with at least 20 µs and half of their latency within it. right: affected \
                samples whose largest part was attributed to that cause and culprit. false: \
                samples without this injection that were attributed to it. time error: sum of the \
                absolute differences between injected and attributed time.";
    out.paragraph("  ", "  ", Tone::Faint, text);
    out.finish()
}

fn write_cases(out: &mut Page, system: &TruthSystem) {
    let columns = vec![
        Column::text("case", 0),
        Column::figures("injected", 1),
        Column::figures("affected", 0),
        Column::figures("right", 0),
        Column::figures("false", 0),
        Column::figures("time error", 0),
        Column::figures("unknown", 1),
    ];
    let mut sum = TruthScore::default();
    let ran = system.cases.iter().filter(|case| case.skipped.is_none());
    let mut rows: Vec<Vec<Cell>> = ran
        .map(|case| {
            if case.cause.is_some() {
                sum.add(&case.score);
            }
            row(case.name.clone(), &case.score)
        })
        .collect();
    rows.push(row("all".to_owned(), &sum));
    table::body(out, &Table::new("cases", columns).rows(rows).shown(usize::MAX, usize::MAX));
}

fn row(name: String, score: &TruthScore) -> Vec<Cell> {
    let share = |share: Option<f64>| share.map_or_else(|| Cell::absent("–"), Cell::share);
    let counts = [score.injected, score.affected, score.right, score.falsely_named];
    let mut row = vec![Cell::name(name)];
    row.extend(counts.map(Cell::count));
    row.extend([share(score.time_error()), share(score.unknown())]);
    row
}
