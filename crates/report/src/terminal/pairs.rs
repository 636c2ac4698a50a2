//! Intervals between points: their figures, their shapes, what became of limits, and the worst with
//! what ran then.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::shape::{self, Shape};
use super::table::{self, Cell, Column};
use crate::format;
use punctual_bundle::intervals::{
    FunctionSummary, IntervalFigures, LimitSummary, PairSummary, PairsDocument, Ran, ScopeSummary,
    Share, WorstInterval,
};
use punctual_bundle::summary::VerdictWord;
use punctual_core::Nanos;
use std::collections::BTreeSet;

const NAME_WIDTH: usize = 40;
/// Pairs and functions that are shown; the rest is counted.
const ROWS: usize = 40;
/// Shapes that are drawn.
const SHAPES: usize = 20;
/// Of what ran in one of the worst, this many are named.
const RAN: usize = 5;

/// The whole page; `worst` of each are shown.
pub fn pairs(document: &PairsDocument, worst: usize, options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    if document.pairs.is_empty() && document.functions.is_empty() {
        out.line(
            "no test points, no probed functions and no pair: name a pair, like \
             sched_waking->sched_switch",
        );
    }
    write_pairs(&mut out, &document.pairs);
    write_scopes(&mut out, &document.scopes);
    write_functions(&mut out, &document.functions);
    let named = document.pairs.iter().map(|p| (&p.name, &p.histogram));
    let named = named.chain(document.functions.iter().map(|f| (&f.name, &f.histogram)));
    shape::write_all(
        &mut out,
        named.take(SHAPES).map(|(name, histogram)| shape_of(name, histogram)).collect(),
    );
    write_worst(&mut out, document, worst);
    write_values(&mut out, document);
    write_limits(&mut out, document);
    write_losses(&mut out, document);
    if !document.findings.is_empty() {
        super::findings::write(&mut out, &document.findings);
    }
    out.finish()
}

fn name(out: &Page, name: &str) -> String {
    format::clipped(name, NAME_WIDTH, out.options.ascii)
}

fn dash(out: &Page) -> String {
    out.either("–", "-").to_owned()
}

/// The percentiles that any of these supports, ascending.
fn percentile_columns<'a>(all: impl Iterator<Item = &'a IntervalFigures>) -> Vec<String> {
    let all: BTreeSet<&String> = all.flat_map(|figures| figures.percentiles.keys()).collect();
    let mut all: Vec<String> = all.into_iter().cloned().collect();
    all.sort_by(|a, b| a.parse().unwrap_or(f64::NAN).total_cmp(&b.parse().unwrap_or(f64::NAN)));
    all
}

fn figure_columns(percentiles: &[String]) -> Vec<Column> {
    let mut columns =
        vec![Column::right("count", 0), Column::right("min", 0), Column::right("mean", 1)];
    columns.extend(percentiles.iter().map(|p| {
        let dispensable = match p.as_str() {
            "75" | "95" => 9,
            "90" => 7,
            "50" => 3,
            "99.99" => 5,
            _ => 2,
        };
        Column::right(&format!("p{p}"), dispensable)
    }));
    columns.push(Column::right("max", 0));
    columns
}

fn figure_cells(out: &Page, figures: &IntervalFigures, percentiles: &[String]) -> Vec<Cell> {
    let figure = |ns: Option<f64>| Cell::plain(ns.map_or_else(|| dash(out), |ns| out.latency(ns)));
    let whole = |ns: Option<i64>| figure(ns.map(|ns| ns as f64));
    let mut cells =
        vec![Cell::plain(format::count(figures.count)), whole(figures.min), figure(figures.mean)];
    cells.extend(percentiles.iter().map(|p| whole(figures.percentiles.get(p).copied())));
    let Cell(max, _) = whole(figures.max);
    cells.push(Cell(max, Tone::Strong));
    cells
}

fn uncertain(n: u64) -> Cell {
    Cell(format::count(n), if n > 0 { Tone::Uncertain } else { Tone::Plain })
}

fn write_pairs(out: &mut Page, pairs: &[PairSummary]) {
    if pairs.is_empty() {
        return;
    }
    let heading = format!("pairs ({})", out.unit());
    out.heading(&heading);
    let percentiles = percentile_columns(pairs.iter().map(|pair| &pair.figures));
    let mut columns = vec![Column::left("from->to", 0), Column::left("matched by", 6)];
    columns.extend(figure_columns(&percentiles));
    columns.extend([
        Column::right("no end", 0),
        Column::right("no begin", 0),
        Column::right("uncertain", 0),
    ]);
    let rows = pairs.iter().take(ROWS).map(|pair| {
        let mut row = vec![
            Cell::plain(name(out, &pair.name)),
            Cell::plain(format!("{}, {}", pair.by, pair.rule)),
        ];
        row.extend(figure_cells(out, &pair.figures, &percentiles));
        let [no_end, no_begin] =
            [pair.unmatched_from, pair.unmatched_to].map(|n| Cell::plain(format::count(n)));
        row.extend([no_end, no_begin, uncertain(pair.uncertain.count)]);
        row
    });
    let rows = rows.collect();
    let left_out = table::write(out, columns, rows);
    footnotes(out, pairs.len(), &left_out, pairs.iter().map(|pair| &pair.figures));
    if pairs.iter().any(|pair| pair.uncertain.count > 0) {
        let text = "uncertain: matches that span lost events, which may include the true partner; \
                    in no other figure";
        out.paragraph("  ", "  ", Tone::Faint, text);
    }
}

/// Most exclusive time first. Min, median and max of scopes with their inner ones are in the table
/// of pairs where there is no room for both.
fn write_scopes(out: &mut Page, scopes: &[ScopeSummary]) {
    if scopes.is_empty() {
        return;
    }
    let heading = format!("scopes, with and without those within them ({})", out.unit());
    out.heading(&heading);
    let columns = vec![
        Column::left("scope", 0),
        Column::right("calls", 0),
        Column::right("share", 0),
        Column::right("exclusive", 1),
        Column::right("min", 5),
        Column::right("median", 3),
        Column::right("max", 0),
        Column::right("inclusive", 2),
        Column::right("min", 7),
        Column::right("median", 6),
        Column::right("max", 4),
        Column::right("threads", 8),
    ];
    let rows = scopes.iter().take(ROWS).map(|scope| {
        let figure = |ns: Option<i64>| {
            Cell::plain(ns.map_or_else(|| dash(out), |ns| out.latency(ns as f64)))
        };
        let shortest = |of: &IntervalFigures| [of.min, of.median, of.max].map(figure);
        let share = scope.share.map_or_else(|| dash(out), format::percent);
        let mut row = vec![
            Cell::plain(name(out, &scope.name)),
            Cell::plain(format::count(scope.figures.count)),
        ];
        row.extend([Cell(share, Tone::Strong), figure(Some(scope.exclusive_total))]);
        row.extend(shortest(&scope.exclusive));
        row.push(figure(Some(scope.total)));
        row.extend(shortest(&scope.figures));
        row.push(Cell::plain(format::count(scope.threads)));
        row
    });
    let rows = rows.collect();
    let left_out = table::write(out, columns, rows);
    footnotes(out, scopes.len(), &left_out, std::iter::empty());
    let text = "exclusive: a thread's time while no scope that began later was open, all calls \
                together, then of one call; inclusive: from begin to end, recursion once; share: \
                of the exclusive time of all scopes";
    out.paragraph("  ", "  ", Tone::Faint, text);
    for (scope, count, what) in oddities(scopes) {
        let text = format!("{}: {} {what}", name(out, scope), format::count(count));
        out.paragraph("  ", "  ", Tone::Uncertain, &text);
    }
}

/// What makes a scope's figures other than they seem.
fn oddities(scopes: &[ScopeSummary]) -> impl Iterator<Item = (&String, u64, &'static str)> {
    let all = scopes.iter().take(ROWS).flat_map(|scope| {
        [
            (
                &scope.name,
                scope.recursive,
                "within another one of the same name: they are in `inclusive` once",
            ),
            (
                &scope.name,
                scope.overlapping,
                "ended while a scope that had begun later was open: from then on the time is that \
                 one's",
            ),
            (&scope.name, scope.open, "had no end: the time of these is in no figure"),
            (
                &scope.name,
                scope.uncertain,
                "uncertain: they reach over missing points and are in no figure",
            ),
        ]
    });
    all.filter(|(_, count, _)| *count > 0)
}

fn write_functions(out: &mut Page, functions: &[FunctionSummary]) {
    if functions.is_empty() {
        return;
    }
    let heading = format!("functions ({})", out.unit());
    out.heading(&heading);
    let percentiles = percentile_columns(functions.iter().map(|function| &function.figures));
    let mut columns = vec![Column::left("function", 0)];
    columns.extend(figure_columns(&percentiles));
    columns.extend([
        Column::right("own mean", 1),
        Column::right("own max", 4),
        Column::right("period mean", 6),
        Column::right("left", 0),
    ]);
    let rows = functions.iter().take(ROWS).map(|function| {
        let mut row = vec![Cell::plain(name(out, &function.name))];
        row.extend(figure_cells(out, &function.figures, &percentiles));
        let own = &function.exclusive;
        let figures = [own.mean, own.max.map(|ns| ns as f64), function.period.mean];
        row.extend(
            figures.map(|ns| Cell::plain(ns.map_or_else(|| dash(out), |ns| out.latency(ns)))),
        );
        row.push(uncertain(function.left));
        row
    });
    let rows = rows.collect();
    let left_out = table::write(out, columns, rows);
    footnotes(out, functions.len(), &left_out, functions.iter().map(|function| &function.figures));
    let text = "own: without the probed functions that it called; period: from call to call in \
                one thread; left: by longjmp, an exception or the end of the thread, in no other \
                figure";
    out.paragraph("  ", "  ", Tone::Faint, text);
    let unknown: u64 = functions.iter().map(|function| function.exclusive_unknown).sum();
    if unknown > 0 {
        let text = format!(
            "the own time of {} is unknown: inner calls may be missing",
            format::counted(unknown, "call")
        );
        out.paragraph("  ", "  ", Tone::Uncertain, &text);
    }
}

fn footnotes<'a>(
    out: &mut Page,
    count: usize,
    left_out: &[String],
    figures: impl Iterator<Item = &'a IntervalFigures>,
) {
    if count > ROWS {
        out.paragraph("  ", "  ", Tone::Faint, &format!("and {} more: see --json", count - ROWS));
    }
    if !left_out.is_empty() {
        out.paragraph(
            "  ",
            "  ",
            Tone::Faint,
            &format!("hidden: terminal too narrow: {}", left_out.join(", ")),
        );
    }
    if figures.filter(|figures| figures.count > 0).any(|figures| figures.percentiles.is_empty()) {
        out.paragraph(
            "  ",
            "  ",
            Tone::Faint,
            "a percentile needs at least ten intervals beyond it (docs/json.md)",
        );
    }
}

fn shape_of(name: &str, histogram: &[(i64, u64)]) -> Shape {
    let mut cumulative = 0;
    let step = |(edge, count): &(i64, u64)| {
        cumulative += count;
        (Nanos(*edge), cumulative)
    };
    Shape { name: name.to_owned(), curve: histogram.iter().map(step).collect() }
}

fn write_worst(out: &mut Page, document: &PairsDocument, worst: usize) {
    let pairs = document.pairs.iter().map(|pair| (&pair.name, &pair.worst));
    let all =
        pairs.chain(document.functions.iter().map(|function| (&function.name, &function.worst)));
    let mut all: Vec<(&String, &WorstInterval)> = all
        .flat_map(|(name, intervals)| intervals.iter().take(worst).map(move |one| (name, one)))
        .collect();
    if all.is_empty() {
        return;
    }
    let count = all.len();
    all.truncate(ROWS);
    let heading = format!("the worst ({})", out.unit());
    out.heading(&heading);
    for (pair, one) in &all {
        let latency = out.paint(Tone::Strong, &format!("{:>10}", out.latency(one.latency as f64)));
        let at = seconds(one.from.saturating_sub(document.covered.began));
        let value = one.value.map(|value| format!(", value {value}")).unwrap_or_default();
        let name = name(out, pair);
        let text = format!(
            "{name}  {} (tid {}) at {at} s{value}",
            format::clipped(&one.task, 20, out.options.ascii),
            one.tid
        );
        out.paragraph(&format!("{latency}  "), "            ", Tone::Plain, &text);
        let states: Vec<String> = one.states.iter().map(|share| state(out, share)).collect();
        if !states.is_empty() {
            out.paragraph(
                "            ",
                "              ",
                Tone::Faint,
                &format!("it was {}", states.join(", ")),
            );
        }
        let ran: Vec<String> = one.ran.iter().take(RAN).map(|ran| who(out, ran)).collect();
        if !ran.is_empty() {
            out.paragraph(
                "            ",
                "              ",
                Tone::Faint,
                &format!("ran: {}", ran.join("; ")),
            );
        }
    }
    if count > ROWS {
        out.paragraph("  ", "  ", Tone::Faint, &format!("and {} more: see --json", count - ROWS));
    }
}

fn state(out: &Page, share: &Share) -> String {
    format!("{} {}", format::plain(&share.state), out.latency(share.ns as f64))
}

fn who(out: &Page, ran: &Ran) -> String {
    let kind = if ran.kind == "task" || ran.kind == "idle" {
        String::new()
    } else {
        format!("{} ", ran.kind)
    };
    let tid = ran.tid.map(|tid| format!(" (tid {tid})")).unwrap_or_default();
    let who = format::clipped(&ran.who, 24, out.options.ascii);
    let who = if ran.who == ran.kind { who } else { format!("{kind}{who}") };
    format!("{who}{tid} on CPU {} {}", ran.cpu, out.latency(ran.ns as f64))
}

/// Nanoseconds as seconds, to the microsecond.
fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let us = ns.unsigned_abs() / 1_000;
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

fn write_values(out: &mut Page, document: &PairsDocument) {
    if document.values.is_empty() {
        return;
    }
    out.heading("values of points");
    let columns = ["count", "min", "mean", "max"].map(|heading| Column::right(heading, 0));
    let columns = [Column::left("point", 0)].into_iter().chain(columns).collect();
    let rows = document.values.iter().take(ROWS).map(|curve| {
        let count: u64 = curve.buckets.iter().map(|bucket| bucket.count).sum();
        let sum: f64 = curve.buckets.iter().map(|bucket| bucket.mean * bucket.count as f64).sum();
        let min = curve.buckets.iter().map(|bucket| bucket.min).min().unwrap_or_default();
        let max = curve.buckets.iter().map(|bucket| bucket.max).max().unwrap_or_default();
        let which = if curve.index > 0 {
            format!("{} (second)", name(out, &curve.point))
        } else {
            name(out, &curve.point)
        };
        let mean = format!("{:.1}", sum / count.max(1) as f64);
        [which, format::count(count), min.to_string(), mean, max.to_string()]
            .map(Cell::plain)
            .into()
    });
    let rows = rows.collect();
    table::write(out, columns, rows);
}

fn write_limits(out: &mut Page, document: &PairsDocument) {
    let pairs = document.pairs.iter().map(|pair| (&pair.name, &pair.limit, pair.figures.count));
    let functions = document.functions.iter().map(|f| (&f.name, &f.limit, f.figures.count));
    let all: Vec<(&String, &LimitSummary, u64)> = pairs
        .chain(functions)
        .filter_map(|(name, limit, count)| Some((name, limit.as_ref()?, count)))
        .collect();
    if all.is_empty() {
        return;
    }
    out.heading("limits");
    for (pair, limit, count) in all {
        let (tone, word) = match limit.verdict {
            VerdictWord::Met => (Tone::Good, out.either("✓ met", "met")),
            VerdictWord::NotMet => (Tone::Bad, out.either("✗ NOT MET", "NOT MET")),
            VerdictWord::Undecided => (Tone::Uncertain, out.either("? undecided", "undecided")),
            VerdictWord::Invalid => (Tone::Bad, out.either("! INVALID", "INVALID")),
        };
        let word = out.paint(tone, word);
        let what = format!("{} {}", name(out, pair), format::plain(&limit.limit));
        let sentence = match &limit.reason {
            Some(reason) => format!(": {}", format::plain(reason)),
            None => format!(
                ": {} of {} beyond it",
                format::count(limit.violations),
                format::count(count)
            ),
        };
        out.paragraph(&format!("  {word}  "), "    ", Tone::Plain, &format!("{what}{sentence}"));
    }
}

fn write_losses(out: &mut Page, document: &PairsDocument) {
    let covered = &document.covered;
    if covered.lost > 0 || covered.untracked > 0 {
        out.gap();
    }
    if covered.lost > 0 {
        let text =
            format!("{} missing from this recording", format::counted(covered.lost, "event"));
        out.paragraph("", "", Tone::Uncertain, &text);
    }
    if covered.untracked > 0 {
        let text = format!(
            "{} in no figure: too many pairs, functions or threads",
            format::counted(covered.untracked, "event")
        );
        out.paragraph("", "", Tone::Uncertain, &text);
    }
}

/// The heading of [`call_line`].
pub fn call_header() -> String {
    format!(
        "{:>16} {:>10} {:>10} {:>7} {:<16} from->to (at in s, latencies in us)",
        "at", "latency", "own", "tid", "task"
    )
}

/// One interval as one line: when it began since the recording did, how long it took, and for calls
/// without those that it made.
pub fn call_line(
    at: Nanos,
    latency: Nanos,
    own: Option<Nanos>,
    tid: u32,
    task: &str,
    pair: &str,
    left: bool,
) -> String {
    let own = own.map_or_else(|| "-".to_owned(), format::micros);
    let left = if left { " (left)" } else { "" };
    format!(
        "{:>16} {:>10} {own:>10} {tid:>7} {:<16} {}{left}",
        seconds(at.ns()),
        format::micros(latency),
        format::plain(task),
        format::plain(pair)
    )
}
