//! The scores as text.

use super::document::{TruthDocument, TruthScore, TruthSystem};
use punctual_core::format::{count_text, count_with_noun, escape_unsafe, percent_text};
use std::fmt::Write;

const COLUMNS: [&str; 7] =
    ["case", "injected", "affected", "right", "false", "time error", "unknown"];
const LEGEND: &str = "  affected: samples that were due while the injected cause was active and \
                      ended after it,\n  with at least 20 µs and half of their latency within it. \
                      right: affected samples whose\n  largest part was attributed to that cause \
                      and culprit. false: samples without this\n  injection that were attributed \
                      to it. time error: sum of the absolute differences\n  between injected and \
                      attributed time.\n";

/// The scores of each kernel, case by case.
pub fn format_scores(document: &TruthDocument) -> String {
    let mut text = String::new();
    for system in &document.systems {
        let time = if system.virtual_time { ", virtual time" } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "causes injected on {}{time}", escape_unsafe(&system.kernel));
        write_score_table(&mut text, system);
        let skipped = system.cases.iter().filter(|case| case.skipped.is_some()).count() as u64;
        if let Some(why) = system.cases.iter().find_map(|case| case.skipped.as_deref()) {
            let _ = writeln!(
                text,
                "  {} not run: {}",
                count_with_noun(skipped, "case"),
                escape_unsafe(why)
            );
        }
        for case in system.cases.iter().filter(|case| !case.score.confused.is_empty()) {
            let confused_causes = case.score.confused.iter();
            let cause_texts: Vec<String> =
                confused_causes.map(|(cause, count)| format!("{cause} {count} ×")).collect();
            let _ = writeln!(
                text,
                "  {}: shown as {}",
                escape_unsafe(&case.name),
                cause_texts.join(", ")
            );
        }
    }
    text + LEGEND
}

fn write_score_table(text: &mut String, system: &TruthSystem) {
    let (mut sum, mut unrecorded) = (TruthScore::default(), TruthScore::default());
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    for case in system.cases.iter().filter(|case| case.skipped.is_none()) {
        match (&case.cause, &case.unrecorded) {
            (Some(_), Some(_)) => unrecorded.add(&case.score),
            (Some(_), None) => sum.add(&case.score),
            (None, _) => {}
        }
        rows.push(score_row(&case.name, &case.score));
    }
    rows.push(score_row("all", &sum));
    if system.cases.iter().any(|case| case.unrecorded.is_some()) {
        rows.push(score_row("not recorded", &unrecorded));
    }
    let first = rows.iter().map(|row| row[0].len()).max().unwrap_or_default();
    for [name, figures @ ..] in rows {
        let _ = write!(text, "  {name:first$}");
        for (figure, title) in figures.iter().zip(&COLUMNS[1..]) {
            let _ = write!(text, "  {figure:>width$}", width = title.len());
        }
        text.push('\n');
    }
}

fn score_row(name: &str, score: &TruthScore) -> [String; 7] {
    let share = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), percent_text);
    let [injected, affected, right, falsely] =
        [score.injected, score.affected, score.right, score.falsely_named].map(count_text);
    let [error, unknown] = [share(score.time_error()), share(score.unknown_share())];
    [escape_unsafe(name), injected, affected, right, falsely, error, unknown]
}
