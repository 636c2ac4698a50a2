//! Intervals between points: their figures, their shapes, the verdicts on limits, and the worst
//! with the threads that ran meanwhile.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::shape::{self, DistributionShape};
use super::table;
use crate::format;
use crate::tables::{Table, coincidence, intervals as tables};
use punctual_bundle::intervals::{LimitSummary, PairsDocument, RanTask, StateShare, WorstInterval};
use punctual_core::Nanos;

const NAME_WIDTH: usize = 40;
/// Pairs and functions shown; the rest are counted.
const ROWS: usize = 40;
const SHAPES: usize = 20;
/// The number of threads named that ran during one of the worst.
const RAN: usize = 5;

/// The whole page; shows `worst` of each.
pub fn show_pairs(document: &PairsDocument, worst: usize, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    if document.pairs.is_empty() && document.functions.is_empty() {
        out.push_line(
            "the recording has no test points and no probed functions: name a pair, like \
             sched_waking->sched_switch",
        );
    }
    for table in [
        tables::pair_table(document),
        tables::scope_table(document),
        tables::function_table(document),
    ] {
        write_section(&mut out, table);
    }
    let named = document.pairs.iter().map(|p| (&p.name, &p.histogram));
    let named = named.chain(document.functions.iter().map(|f| (&f.name, &f.histogram)));
    shape::write_all(
        &mut out,
        named.take(SHAPES).map(|(name, histogram)| shape_of(name, histogram)).collect(),
    );
    write_worst(&mut out, document, worst);
    for table in coincidence::coincidence_tables(document.coincidences.as_deref()) {
        write_section(&mut out, table);
    }
    write_section(&mut out, tables::value_table(document));
    write_limits(&mut out, document);
    write_losses(&mut out, document);
    if !document.findings.is_empty() {
        super::findings::write(&mut out, &document.findings);
    }
    out.finish()
}

fn clip_name(out: &TextPage, name: &str) -> String {
    format::clip_name(name, NAME_WIDTH, out.options.ascii)
}

fn write_section(out: &mut TextPage, table: Table) {
    if let Some(table) = table.unless_empty() {
        table::write_section(out, &table);
    }
}

fn shape_of(name: &str, histogram: &[(i64, u64)]) -> DistributionShape {
    let mut cumulative = 0;
    let step = |(edge, count): &(i64, u64)| {
        cumulative += count;
        (Nanos(*edge), cumulative)
    };
    DistributionShape { name: name.to_owned(), curve: histogram.iter().map(step).collect() }
}

fn write_worst(out: &mut TextPage, document: &PairsDocument, worst: usize) {
    let pairs = document.pairs.iter().map(|pair| (&pair.name, &pair.worst));
    let named_intervals =
        pairs.chain(document.functions.iter().map(|function| (&function.name, &function.worst)));
    let mut worst_intervals: Vec<(&String, &WorstInterval)> = named_intervals
        .flat_map(|(name, intervals)| intervals.iter().take(worst).map(move |one| (name, one)))
        .collect();
    if worst_intervals.is_empty() {
        return;
    }
    let count = worst_intervals.len();
    worst_intervals.truncate(ROWS);
    let heading = format!("the worst ({})", out.unit_name());
    out.push_heading(&heading);
    for (pair, one) in &worst_intervals {
        let latency =
            out.paint(Tone::Strong, &format!("{:>10}", out.format_latency(one.latency as f64)));
        let at = format_seconds(one.from.saturating_sub(document.covered.began));
        let value = one.value.map(|value| format!(", value {value}")).unwrap_or_default();
        let name = clip_name(out, pair);
        let text = format!(
            "{name}  {} (tid {}) at {at} s{value}",
            format::clip_name(&one.task, 20, out.options.ascii),
            one.tid
        );
        out.push_paragraph(&format!("{latency}  "), "            ", Tone::Plain, &text);
        let states: Vec<String> = one.states.iter().map(|share| format_state(out, share)).collect();
        if !states.is_empty() {
            out.push_paragraph(
                "            ",
                "              ",
                Tone::Faint,
                &format!("it was {}", states.join(", ")),
            );
        }
        let ran: Vec<String> =
            one.ran.iter().take(RAN).map(|ran| format_ran_task(out, ran)).collect();
        if !ran.is_empty() {
            out.push_paragraph(
                "            ",
                "              ",
                Tone::Faint,
                &format!("ran: {}", ran.join("; ")),
            );
        }
    }
    if count > ROWS {
        out.push_paragraph(
            "  ",
            "  ",
            Tone::Faint,
            &format!("and {} more: see --json", count - ROWS),
        );
    }
}

fn format_state(out: &TextPage, share: &StateShare) -> String {
    format!("{} {}", format::escape_unsafe(&share.state), out.format_latency(share.ns as f64))
}

fn format_ran_task(out: &TextPage, ran: &RanTask) -> String {
    let kind = if ran.kind == "task" || ran.kind == "idle" {
        String::new()
    } else {
        format!("{} ", ran.kind)
    };
    let tid = ran.tid.map(|tid| format!(" (tid {tid})")).unwrap_or_default();
    let who = format::clip_name(&ran.who, 24, out.options.ascii);
    let who = if ran.who == ran.kind { who } else { format!("{kind}{who}") };
    format!("{who}{tid} on CPU {} {}", ran.cpu, out.format_latency(ran.ns as f64))
}

/// Nanoseconds as seconds, to the microsecond.
fn format_seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let us = ns.unsigned_abs() / 1_000;
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

fn write_limits(out: &mut TextPage, document: &PairsDocument) {
    let pairs = document.pairs.iter().map(|pair| (&pair.name, &pair.limit, pair.figures.count));
    let functions = document.functions.iter().map(|f| (&f.name, &f.limit, f.figures.count));
    let all_limits: Vec<(&String, &LimitSummary, u64)> = pairs
        .chain(functions)
        .filter_map(|(name, limit, count)| Some((name, limit.as_ref()?, count)))
        .collect();
    if all_limits.is_empty() {
        return;
    }
    out.push_heading("limits");
    for (pair, limit, count) in all_limits {
        let (word, _) = table::paint_cell(out, &limit.verdict.into());
        let what = format!("{} {}", clip_name(out, pair), format::escape_unsafe(&limit.limit));
        let sentence = match &limit.reason {
            Some(reason) => format!(": {}", format::escape_unsafe(reason)),
            None => format!(
                ": {} of {} beyond it",
                format::count_text(limit.violations),
                format::count_text(count)
            ),
        };
        out.push_paragraph(
            &format!("  {word}  "),
            "    ",
            Tone::Plain,
            &format!("{what}{sentence}"),
        );
    }
}

fn write_losses(out: &mut TextPage, document: &PairsDocument) {
    let covered = &document.covered;
    if covered.lost > 0 || covered.untracked > 0 {
        out.push_gap();
    }
    if covered.lost > 0 {
        let text = format!(
            "{} missing from this recording",
            format::count_with_noun(covered.lost, "event")
        );
        out.push_paragraph("", "", Tone::Uncertain, &text);
    }
    if covered.untracked > 0 {
        let text = format!(
            "{} in no figure: too many pairs, functions or threads",
            format::count_with_noun(covered.untracked, "event")
        );
        out.push_paragraph("", "", Tone::Uncertain, &text);
    }
}

/// The heading of [`call_line`].
pub fn call_header() -> String {
    format!(
        "{:>16} {:>10} {:>10} {:>7} {:<16} from->to (at in s, latencies in us)",
        "at", "latency", "own", "tid", "task"
    )
}

/// One interval as one line: its start since the beginning of the recording, its length and, for
/// calls, the length without nested calls.
pub fn call_line(
    at: Nanos,
    latency: Nanos,
    own: Option<Nanos>,
    tid: u32,
    task: &str,
    pair: &str,
    left: bool,
) -> String {
    let own_time = own.map_or_else(|| "-".to_owned(), format::micros_text);
    let left = if left { " (left)" } else { "" };
    format!(
        "{:>16} {:>10} {own_time:>10} {tid:>7} {:<16} {}{left}",
        format_seconds(at.ns()),
        format::micros_text(latency),
        format::escape_unsafe(task),
        format::escape_unsafe(pair)
    )
}
