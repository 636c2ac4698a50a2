//! The output at the end of an attachment: the answer, the relevant threads, the most important
//! findings, and what is omitted with the option that shows it.

use super::paint::{TextPage, Tone};
use super::{ShowOptions, table, title};
use crate::format::{clipped, counted, plain};
use crate::sentence::listed;
use crate::tables::figures::{self, named};
use crate::tables::{Cell, Column, Table};
use punctual_bundle::Timebase;
use punctual_bundle::meta::{ENTRIES_WORKLOAD, is_latency};
use punctual_bundle::summary::{SeriesSummary, Summary};
use punctual_core::Finding;
use punctual_explain::answer::standing;
use std::cmp::Reverse;

/// The maximum number of lines; with further output of the command it fits into forty.
pub const LINES: usize = 35;
/// Rows of series and findings, from the most to the fewest: the first pair that fits.
const ROOM: [(usize, usize); 5] = [(6, 4), (6, 2), (4, 1), (2, 0), (0, 0)];
/// Output that only the command adds at its end.
const CYCLES: &str = "and how cycles were recognised, and what that cost (--details)";
const COST: &str = "and what measuring cost (--details)";
/// Names are cut at this many columns.
const NAME: usize = 32;

/// The end of an attachment, in at most [`LINES`] lines. `whole`: the command-line words that show
/// everything.
pub fn brief(summary: &Summary, whole: &str, options: &ShowOptions) -> String {
    let options = &options.in_time(Timebase::of(summary.target.as_ref()));
    let mut text = String::new();
    for (rows, findings) in ROOM {
        let mut out = TextPage::new(options);
        title::write(&mut out, summary);
        series(&mut out, summary, rows);
        entries(&mut out, summary, rows);
        write_findings(&mut out, &summary.findings, findings);
        out.gap();
        let left_out = format!("not shown: {} ({whole})", listed(&left_out(summary)));
        out.paragraph("", "  ", Tone::Faint, &left_out);
        let only = if is_of_entries(summary) { COST } else { CYCLES };
        out.paragraph("  ", "  ", Tone::Faint, only);
        text = out.finish();
        if text.lines().count() <= LINES {
            break;
        }
    }
    text
}

/// The latencies of the most relevant threads, the longest first.
fn series(out: &mut TextPage, summary: &Summary, rows: usize) {
    let mut all: Vec<(String, &SeriesSummary)> = named(summary)
        .filter(|(_, series)| series.count > 0 && is_latency(&series.workload, &series.name))
        .collect();
    all.sort_by_key(|(_, series)| Reverse((standing(series), series.max)));
    all.truncate(rows);
    if all.is_empty() {
        return;
    }
    let columns = vec![
        Column::text("series", 0).at_most(NAME),
        Column::figures("samples", 1),
        Column::figures("median", 2),
        Column::figures("p99", 2),
        Column::figures("max", 0),
        Column::figures("overruns", 1),
        Column::figures("skipped", 3),
        Column::figures("lost", 1),
    ];
    let time = |ns: Option<i64>| Cell::time_or(ns.map(|ns| ns as f64), "none");
    let row = |(_, series): &(String, &SeriesSummary)| {
        vec![
            Cell::name(&series.name),
            Cell::count(series.count),
            time(series.median),
            time(series.percentiles.get("99").copied()),
            figures::max(series),
            Cell::losses(series.overruns),
            Cell::losses(series.skipped),
            Cell::losses(series.lost),
        ]
    };
    let table = Table::new("latencies", columns).rows(all.iter().map(row));
    table::section(out, &table);
}

fn is_of_entries(summary: &Summary) -> bool {
    named(summary).any(|(_, series)| series.workload == ENTRIES_WORKLOAD)
}

/// Kernel entries on a CPU, the longest first: the purpose of attaching to CPUs.
fn entries(out: &mut TextPage, summary: &Summary, rows: usize) {
    if rows == 0 || !is_of_entries(summary) {
        return;
    }
    let measures = summary.phases.iter().flat_map(|phase| &phase.measures);
    for table in measures.filter_map(|measure| measure.notes.tables.first()) {
        let rows = table.rows.iter().take(rows).cloned().collect();
        super::notes::rows(out, &punctual_core::Table { rows, ..table.clone() });
    }
}

/// One line each, the most important first.
fn write_findings(out: &mut TextPage, findings: &[Finding], rows: usize) {
    let own = findings.iter().filter(|found| !found.is_readiness());
    let own: Vec<&Finding> = own.take(rows).collect();
    if own.is_empty() {
        return;
    }
    out.heading("findings");
    for found in own {
        let word = format!("{:<8}", found.severity.to_string());
        let begin = format!("  {} ", out.paint(Tone::from(found.severity), &word));
        let text = format!("{} ({})", found.message, found.subject);
        let width = out.options.width.saturating_sub(11).max(20);
        out.line(&format!("{begin}{}", clipped(&plain(&text), width, out.options.ascii)));
    }
}

/// Each table of the full output that is missing here.
fn left_out(summary: &Summary) -> Vec<String> {
    let series = named(summary).count() as u64;
    let mut all = vec![format!("all figures of {series} series")];
    all.push("distributions".to_owned());
    let has_account = named(summary).any(|(_, series)| series.account.known().is_some());
    all.extend(has_account.then(|| "time by cause".to_owned()));
    for phase in &summary.phases {
        for measure in &phase.measures {
            for table in measure.notes.shown_tables() {
                let title = plain(&table.title);
                if !all.contains(&title) {
                    all.push(title);
                }
            }
        }
    }
    all.push("worst samples".to_owned());
    let asked = named(summary).any(|(_, series)| !series.requirements.is_empty());
    all.extend(asked.then(|| "requirements".to_owned()));
    let findings = summary.findings.len() as u64;
    all.extend((findings > 0).then(|| format!("{} with remedies", counted(findings, "finding"))));
    all
}
