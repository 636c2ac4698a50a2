//! The table of figures, and the one of their details.

use super::gather::{Content, Line};
use super::table::{Cell, Column, Table};
use super::text::{clip, name, short_count, span};
use crate::format::{count, micros_f64};
use punctual_bundle::summary::{CorrectedSummary, RequirementSummary, SeriesSummary, VerdictWord};
use punctual_core::{Fact, Nanos, Requirement};
use std::collections::BTreeSet;

/// Requirements beyond this are only counted.
const MAX_REQUIREMENTS: usize = 300;

/// The figures, a row for each series.
pub fn summary(content: &Content<'_>, cut_off: impl Fn(usize) -> bool) -> Table {
    let (rare, lacking) = rare_percentiles(content);
    let stated = content.lines.iter().any(|line| !line.summary.requirements.is_empty());
    let mut columns = vec![Column::text("Series")];
    if stated {
        columns.push(Column::text("Verdict"));
    }
    columns.extend([
        Column::figures("Samples").meaning("number of samples"),
        Column::figures("Min"),
        Column::figures("Mean"),
        Column::figures("Median"),
    ]);
    columns.extend(rare.iter().map(|p| {
        Column::figures(&format!("p{p}"))
            .meaning(&format!("{p} % of the samples are at or below this"))
    }));
    columns.push(Column::figures("Max").meaning("the worst of all samples, exact"));
    columns.push(Column::figures("Std dev"));
    columns.push(
        Column::figures("Overruns")
            .meaning("missed periods (coordinated omission): the corrected figures include them"),
    );
    columns
        .push(Column::figures("Lost").meaning("samples lost after the measurement: in no figure"));
    let row = |line: &Line<'_>| {
        let s = line.summary;
        let corrected = s.corrected.as_ref();
        let mut cells = vec![header(line, cut_off(content.groups[line.group].bundle))];
        if stated {
            cells.push(verdicts(s));
        }
        cells.extend([
            Cell::count(s.count),
            time(s.min.map(|v| v as f64)),
            beside(time(s.mean), corrected.map(|c| c.mean)),
            beside(time(s.median.map(|v| v as f64)), corrected.map(|c| c.median as f64)),
        ]);
        cells.extend(rare.iter().map(|p| percentile(s, p)));
        cells.extend([
            time(s.max.map(|v| v as f64)),
            if s.count > 0 && s.stddev.is_none() {
                Cell::missing("unknown")
            } else {
                time(s.stddev)
            },
            losses(s.overruns),
            losses(s.lost),
        ]);
        cells
    };
    let has_corrected = content.lines.iter().any(|line| line.summary.corrected.is_some());
    let remark = if has_corrected {
        " The smaller figures (corr.) are corrected for coordinated omission."
    } else {
        ""
    };
    Table {
        caption: format!("Latency in µs.{remark}{lacking}"),
        columns,
        rows: content.lines.iter().map(row).collect(),
        sortable: content.lines.len() > 1,
    }
}

/// The percentiles from p99 on that any series supports, and a sentence on those that none does.
fn rare_percentiles(content: &Content<'_>) -> (Vec<String>, String) {
    let has =
        |key: &String| content.lines.iter().any(|line| line.summary.percentiles.contains_key(key));
    let (supported, lacking): (Vec<String>, Vec<String>) =
        percentiles_of(content, |p| p >= 99.0).into_iter().partition(has);
    let needed = |key: &String| {
        content.lines.iter().find_map(|line| line.summary.unsupported_percentiles.get(key))
    };
    let needs = lacking
        .iter()
        .filter_map(|key| Some(format!("p{key} needs {} samples", short_count(*needed(key)?))));
    let needs: Vec<String> = needs.collect();
    let sentence =
        if needs.is_empty() { String::new() } else { format!(" Not shown: {}.", needs.join(", ")) };
    (supported, sentence)
}

/// The percentiles that any series has or lacks, ascending.
fn percentiles_of(content: &Content<'_>, requested: impl Fn(f64) -> bool) -> Vec<String> {
    let keys = content.lines.iter().flat_map(|line| {
        let s = line.summary;
        let corrected = s.corrected.iter().flat_map(|c| c.percentiles.keys());
        s.percentiles.keys().chain(s.unsupported_percentiles.keys()).chain(corrected)
    });
    let unique: BTreeSet<&String> = keys.collect();
    let number = |key: &&String| {
        key.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p) && requested(*p))
    };
    let mut sorted: Vec<(f64, String)> =
        unique.iter().filter_map(|key| Some((number(key)?, (*key).clone()))).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    sorted.into_iter().map(|(_, key)| key).take(12).collect()
}

fn header(line: &Line<'_>, cut_off: bool) -> Cell {
    let s = line.summary;
    let cpus =
        if s.cpus.is_empty() { String::new() } else { format!("CPU {} · ", clip(&s.cpus, 40)) };
    let mut cell = Cell::text(&line.full).sub(format!("{cpus}{}", name(&s.scheduling)));
    if !s.real_time {
        cell = cell.badge("not real-time", "warn");
    }
    if cut_off {
        cell = cell.badge("cut off", "warn");
    }
    cell
}

/// A latency in µs; the exact one in ns behind it.
pub fn time(ns: Option<f64>) -> Cell {
    match ns {
        Some(ns) => Cell { exact: Some(format!("{ns} ns")), ..Cell::figure(micros_f64(ns), ns) },
        None => Cell::missing("none"),
    }
}

/// The corrected figure below the plain one, where one can see that it differs.
fn beside(cell: Cell, corrected: Option<f64>) -> Cell {
    match corrected.map(micros_f64).filter(|text| *text != cell.text) {
        Some(text) => cell.sub(format!("corr. {text}")),
        None => cell,
    }
}

fn percentile(s: &SeriesSummary, key: &str) -> Cell {
    let corrected = |c: &CorrectedSummary| c.percentiles.get(key).map(|ns| *ns as f64);
    match (s.percentiles.get(key), s.unsupported_percentiles.get(key)) {
        (Some(ns), _) => beside(time(Some(*ns as f64)), s.corrected.as_ref().and_then(corrected)),
        (None, Some(needed)) => Cell {
            exact: Some(format!("needs {} samples; there are {}", count(*needed), count(s.count))),
            ..Cell::missing(format!("needs {}", short_count(*needed)))
        },
        (None, None) => Cell::missing("unknown"),
    }
}

fn losses(n: Option<u64>) -> Cell {
    let Some(n) = n else { return Cell::missing("unknown") };
    let class = if n > 0 { "alert" } else { "" };
    Cell { class, ..Cell::count(n) }
}

/// The verdicts of a series in a few words.
fn verdicts(s: &SeriesSummary) -> Cell {
    let number = |word: VerdictWord| s.requirements.iter().filter(|r| r.verdict == word).count();
    let of = s.requirements.len();
    let worst = VerdictWord::gravest(s.requirements.iter().map(|r| r.verdict));
    let Some(worst) = worst else { return Cell::missing("none") };
    let (word, class) = verdict(worst);
    let many =
        if number(worst) == of { of.to_string() } else { format!("{} of {of}", number(worst)) };
    let cell = Cell { sort: Some(number(worst) as f64), ..Cell::default() };
    cell.badge(format!("{} {many} {word}", mark(worst)), class)
}

/// Each requirement on each series, the open ones first; `None` where none was stated.
pub fn requirements(content: &Content<'_>) -> Option<Table> {
    let all = content
        .lines
        .iter()
        .flat_map(|line| line.summary.requirements.iter().map(move |r| (line, r)));
    let mut all: Vec<(&Line<'_>, &RequirementSummary)> = all.collect();
    all.sort_by_key(|(_, r)| std::cmp::Reverse(r.verdict.gravity()));
    let more = all.len().saturating_sub(MAX_REQUIREMENTS);
    let more = if more > 0 {
        format!(" {} more are not shown.", count(more as u64))
    } else {
        String::new()
    };
    let row = |(line, r): &(&Line<'_>, &RequirementSummary)| {
        let (word, class) = verdict(r.verdict);
        let verdict = Cell::default().badge(format!("{} {word}", mark(r.verdict)), class);
        let reason = r.reason.as_ref().map(|why| clip(why, 300));
        let figure = figure_of(r)
            .map_or(Cell::missing("none"), |text| Cell { sort: r.figure, ..Cell::text(text) });
        vec![
            Cell { code: true, ..Cell::text(name(&r.requirement)) },
            Cell::text(&line.full),
            figure,
            Cell { sub: reason, ..verdict },
        ]
    };
    let columns = vec![
        Column::text("Requirement"),
        Column::text("Series"),
        Column::figures("Measured"),
        Column::text("Verdict"),
    ];
    let rows: Vec<Vec<Cell>> = all.iter().take(MAX_REQUIREMENTS).map(row).collect();
    (!rows.is_empty()).then(|| Table {
        caption: format!("Stated requirements.{more}"),
        columns,
        rows,
        sortable: true,
    })
}

/// A verdict in words, and its class.
pub fn verdict(verdict: VerdictWord) -> (&'static str, &'static str) {
    match verdict {
        VerdictWord::Met => ("met", "good"),
        VerdictWord::NotMet => ("not met", "bad"),
        VerdictWord::Undecided => ("undecided", "warn"),
        VerdictWord::Invalid => ("invalid", "bad"),
    }
}

/// A verdict as a sign that needs no colour.
pub fn mark(verdict: VerdictWord) -> &'static str {
    match verdict {
        VerdictWord::Met => "✓",
        VerdictWord::NotMet => "✗",
        VerdictWord::Undecided => "?",
        VerdictWord::Invalid => "!",
    }
}

/// The figure that a requirement was held against: a time or a count, by what it is about.
pub fn figure_of(r: &RequirementSummary) -> Option<String> {
    let figure = r.figure?;
    let is_time =
        r.requirement.parse::<Requirement>().map_or(true, |parsed| parsed.metric.is_time());
    Some(if is_time {
        format!("{} µs", micros_f64(figure))
    } else {
        count(figure.max(0.0) as u64)
    })
}

/// What is needed to judge the figures, a row for each series, at most `rows`.
pub fn details(content: &Content<'_>, rows: usize) -> Table {
    let common = percentiles_of(content, |p| p < 99.0 && p != 50.0);
    let mut columns = vec![Column::text("Series"), Column::figures("Period")];
    columns.extend(common.iter().map(|p| Column::figures(&format!("p{p}"))));
    columns.extend([
        Column::figures("Mode").meaning("the fullest bin of the exact histogram, its lower edge"),
        Column::figures("Bin width"),
        Column::figures("Beyond range")
            .meaning("samples beyond the exact histogram; every other figure includes them"),
        Column::figures("Negative").meaning("events that came before they were due"),
        Column::figures("Expected").meaning("samples + overruns + lost"),
        Column::figures("Kept").meaning("samples in the log"),
        Column::figures("Page faults").meaning("of the measuring thread: without and with I/O"),
        Column::figures("Preempted")
            .meaning("involuntary context switches of the measuring thread"),
        Column::text("Workload"),
    ]);
    let row = |line: &Line<'_>| {
        let s = line.summary;
        let mut cells = vec![Cell::text(&line.full), period(s)];
        cells.extend(common.iter().map(|p| percentile(s, p)));
        let usage = |of: fn(&punctual_bundle::state::ThreadUsage) -> (u64, String)| match &s.usage {
            Fact::Known(usage) => {
                let (n, text) = of(usage);
                Cell { text, ..losses(Some(n)) }
            }
            Fact::Unavailable(why) => {
                Cell { exact: Some(name(why)), ..Cell::missing("unavailable") }
            }
            Fact::NotAsked => Cell::missing("not recorded"),
        };
        cells.extend([
            modes(s),
            Cell::figure(span(Nanos(s.resolution)), s.resolution as f64),
            losses(Some(s.above_range)),
            losses(Some(s.negative)),
            s.expected.map_or_else(|| Cell::missing("unknown"), Cell::count),
            Cell::count(line.series.state.samples_kept),
            usage(|u| {
                (
                    u.minor_faults.saturating_add(u.major_faults),
                    format!("{} + {}", count(u.minor_faults), count(u.major_faults)),
                )
            }),
            usage(|u| (u.involuntary_switches, count(u.involuntary_switches))),
            Cell { class: "wide", ..Cell::text(workload(line)) },
        ]);
        cells
    };
    let more = content.lines.len().saturating_sub(rows);
    let more = if more > 0 {
        format!(" {} more are not shown.", count(more as u64))
    } else {
        String::new()
    };
    Table {
        caption: format!("Details of the series; latencies in µs.{more}"),
        columns,
        rows: content.lines.iter().take(rows).map(row).collect(),
        sortable: content.lines.len() > 1,
    }
}

fn period(s: &SeriesSummary) -> Cell {
    s.period.map_or(Cell::missing("none"), |ns| Cell::figure(span(Nanos(ns)), ns as f64))
}

fn modes(s: &SeriesSummary) -> Cell {
    let Some(first) = s.modes.first() else { return Cell::missing("none") };
    let shown: Vec<String> = s.modes.iter().take(3).map(|ns| micros_f64(*ns as f64)).collect();
    let more = if s.modes.len() > 3 { ", …" } else { "" };
    Cell::figure(shown.join(", ") + more, *first as f64)
}

/// `timer: CLOCK_MONOTONIC, method absolute`.
fn workload(line: &Line<'_>) -> String {
    let meta = &line.series.meta;
    // The period has a column of its own.
    let details = meta
        .details
        .iter()
        .filter(|(key, _)| *key != "period")
        .take(8)
        .map(|(key, value)| format!(", {} {}", name(key), name(value)));
    clip(&format!("{}: {}{}", name(&meta.workload), meta.clock, details.collect::<String>()), 240)
}
