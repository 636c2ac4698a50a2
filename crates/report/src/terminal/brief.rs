//! The output at the end of an attachment: the answer, the relevant threads, the most important
//! findings, and what is omitted with the option that shows it.

use super::paint::{TextPage, Tone};
use super::{ShowOptions, table, title};
use crate::format::{clip_name, count_with_noun, escape_unsafe};
use crate::sentence::join_words;
use crate::tables::figures::{self, named_series};
use crate::tables::{Cell, Column, Table};
use punctual_bundle::Timebase;
use punctual_bundle::meta::{ENTRIES_WORKLOAD, is_latency};
use punctual_bundle::summary::{SeriesSummary, Summary};
use punctual_core::Finding;
use punctual_explain::answer::thread_relevance;
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
pub fn show_brief(summary: &Summary, whole: &str, options: &ShowOptions) -> String {
    let options = &options.in_time(Timebase::from_target(summary.target.as_ref()));
    let mut text = String::new();
    for (rows, findings) in ROOM {
        let mut out = TextPage::new(options);
        title::write(&mut out, summary);
        write_series(&mut out, summary, rows);
        write_entries(&mut out, summary, rows);
        write_findings(&mut out, &summary.findings, findings);
        out.push_gap();
        let left_out = format!("not shown: {} ({whole})", join_words(&left_out(summary)));
        out.push_paragraph("", "  ", Tone::Faint, &left_out);
        let scope_note = if is_of_entries(summary) { COST } else { CYCLES };
        out.push_paragraph("  ", "  ", Tone::Faint, scope_note);
        text = out.finish();
        if text.lines().count() <= LINES {
            break;
        }
    }
    text
}

/// The latencies of the most relevant threads, the longest first.
fn write_series(out: &mut TextPage, summary: &Summary, rows: usize) {
    let mut shown_series: Vec<(String, &SeriesSummary)> = named_series(summary)
        .filter(|(_, series)| series.count > 0 && is_latency(&series.workload, &series.name))
        .collect();
    shown_series.sort_by_key(|(_, series)| Reverse((thread_relevance(series), series.max)));
    shown_series.truncate(rows);
    if shown_series.is_empty() {
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
            figures::max_cell(series),
            Cell::loss_count(series.overruns),
            Cell::loss_count(series.skipped),
            Cell::loss_count(series.lost),
        ]
    };
    let table = Table::new("latencies", columns).with_rows(shown_series.iter().map(row));
    table::write_section(out, &table);
}

fn is_of_entries(summary: &Summary) -> bool {
    named_series(summary).any(|(_, series)| series.workload == ENTRIES_WORKLOAD)
}

/// Kernel entries on a CPU, the longest first: the purpose of attaching to CPUs.
fn write_entries(out: &mut TextPage, summary: &Summary, rows: usize) {
    if rows == 0 || !is_of_entries(summary) {
        return;
    }
    let measures = summary.phases.iter().flat_map(|phase| &phase.measures);
    for table in measures.filter_map(|measure| measure.notes.tables.first()) {
        let rows = table.rows.iter().take(rows).cloned().collect();
        super::notes::write_table(out, &punctual_core::Table { rows, ..table.clone() });
    }
}

/// One line each, the most important first.
fn write_findings(out: &mut TextPage, findings: &[Finding], rows: usize) {
    let own_findings = findings.iter().filter(|found| !found.is_readiness());
    let shown_findings: Vec<&Finding> = own_findings.take(rows).collect();
    if shown_findings.is_empty() {
        return;
    }
    out.push_heading("findings");
    for found in shown_findings {
        let word = format!("{:<8}", found.severity.to_string());
        let begin = format!("  {} ", out.paint(Tone::from(found.severity), &word));
        let text = format!("{} ({})", found.message, found.subject);
        let width = out.options.width.saturating_sub(11).max(20);
        out.push_line(&format!(
            "{begin}{}",
            clip_name(&escape_unsafe(&text), width, out.options.ascii)
        ));
    }
}

/// Each table of the full output that is missing here.
fn left_out(summary: &Summary) -> Vec<String> {
    let series = named_series(summary).count() as u64;
    let mut omitted_tables = vec![format!("all figures of {series} series")];
    omitted_tables.push("distributions".to_owned());
    let has_account =
        named_series(summary).any(|(_, series)| series.account.known_value().is_some());
    omitted_tables.extend(has_account.then(|| "time by cause".to_owned()));
    for phase in &summary.phases {
        for measure in &phase.measures {
            for table in measure.notes.shown_tables() {
                let title = escape_unsafe(&table.title);
                if !omitted_tables.contains(&title) {
                    omitted_tables.push(title);
                }
            }
        }
    }
    omitted_tables.push("worst samples".to_owned());
    let has_requirements = named_series(summary).any(|(_, series)| !series.requirements.is_empty());
    omitted_tables.extend(has_requirements.then(|| "requirements".to_owned()));
    let findings = summary.findings.len() as u64;
    omitted_tables.extend(
        (findings > 0).then(|| format!("{} with remedies", count_with_noun(findings, "finding"))),
    );
    omitted_tables
}
