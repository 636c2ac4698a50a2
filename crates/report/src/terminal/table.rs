//! Tables in a terminal: aligned columns; the least important ones are hidden if it is too narrow.

use super::paint::{TextPage, Tone};
use crate::format::{self, clip_to_width, width_of};
use crate::tables::{Cell, Column, Face, Table, Value};
use punctual_core::Nanos;

const INDENT: usize = 2;
const BETWEEN: usize = 2;
/// The minimum width of a column that shrinks.
const SHRUNK: usize = 12;

/// A formatted cell.
struct Drawn(String, Tone);

/// The heading, with the unit of its times, and [`write_body`].
pub fn write_section(out: &mut TextPage, table: &Table) {
    let title = format_title(out, table);
    out.push_heading(&title);
    write_body(out, table);
}

/// Its title, with the unit of its times.
pub fn format_title(out: &TextPage, table: &Table) -> String {
    let unit = match (table.has_times(), table.title.contains(": ")) {
        (false, _) => String::new(),
        (true, false) => format!(" ({})", out.unit_name()),
        (true, true) => format!(", times in {}", out.unit_name()),
    };
    format!("{}{unit}", format::escape_unsafe(&table.title))
}

/// The table; below it what was omitted and the remarks.
pub(crate) fn write_body(out: &mut TextPage, table: &Table) {
    let (mut columns, rows, more) = table.contents_for(Face::Terminal);
    let mut drawn: Vec<Vec<Drawn>> = Vec::new();
    for row in &rows {
        drawn.push(
            row.iter().zip(&columns).map(|(cell, column)| draw_cell(out, column, cell)).collect(),
        );
        drawn.extend(draw_second_row(out, table, row));
    }
    let kept = identity_and_results(&rows);
    let hidden = hide_columns(out, kept, &mut columns, &mut drawn);
    let widths = shrink_columns(out, &columns, &mut drawn);
    write_rows(out, &columns, &drawn, &widths);
    let faint = |out: &mut TextPage, text: &str| out.push_paragraph("  ", "  ", Tone::Faint, text);
    if more > 0 {
        faint(out, &format!("and {more} more: see --json"));
    }
    if !hidden.is_empty() {
        faint(out, &format!("hidden: terminal too narrow: {}", hidden.join(", ")));
    }
    let explained = columns.iter().filter(|column| column.explained);
    let explained: Vec<String> = explained
        .filter_map(|column| Some(format!("{}: {}", column.heading, column.meaning.as_ref()?)))
        .collect();
    if !explained.is_empty() {
        faint(out, &explained.join("; "));
    }
    for remark in table.remarks_of(Face::Terminal) {
        out.push_paragraph("  ", "    ", remark.tone, &format::escape_unsafe(&remark.text));
    }
    list_hidden(out, table, &rows, &hidden);
}

/// The texts of hidden columns that are listed instead, each behind the name of its row.
fn list_hidden(out: &mut TextPage, table: &Table, rows: &[Vec<&Cell>], hidden: &[String]) {
    let (columns, ..) = table.contents_for(Face::Terminal);
    for (k, _) in
        columns.iter().enumerate().filter(|(_, of)| of.listed && hidden.contains(&of.heading))
    {
        for row in rows.iter().filter(|row| row[k].value != Value::Text(String::new())) {
            let [name, text] =
                [row[0], row[k]].map(|cell| format_value(out, &cell.value, Tone::Plain));
            out.push_paragraph("  ", "    ", Tone::Faint, &format!("{name}: {text}"));
        }
    }
}

/// A cell in its colour, outside of a table, and its width.
pub(crate) fn paint_cell(out: &TextPage, cell: &Cell) -> (String, usize) {
    let text = format_value(out, &cell.value, cell.tone);
    (out.paint(cell.tone, &text), width_of(&text))
}

/// A row of second views below its own row.
fn draw_second_row(out: &TextPage, table: &Table, row: &[&Cell]) -> Option<Vec<Drawn>> {
    row.iter().find(|cell| cell.beside.is_some())?;
    let second = |cell: &&Cell| {
        cell.beside.as_ref().map_or(String::new(), |value| format_value(out, value, Tone::Plain))
    };
    let mut drawn: Vec<Drawn> = row.iter().map(|cell| Drawn(second(cell), Tone::Faint)).collect();
    drawn[0].0 = format!("{} {}", out.choose_spelling("  └", "  -"), table.beside);
    Some(drawn)
}

fn draw_cell(out: &TextPage, column: &Column, cell: &Cell) -> Drawn {
    let text = format_value(out, &cell.value, cell.tone);
    let tone = match (&cell.value, cell.tone) {
        (Value::Absent(_) | Value::Unknown, Tone::Plain) => Tone::Faint,
        (_, tone) => tone,
    };
    match column.width.filter(|_| !out.options.whole) {
        Some(width) => Drawn(clip_to_width(&text, width, out.options.ascii), tone),
        None => Drawn(text, tone),
    }
}

fn format_value(out: &TextPage, value: &Value, tone: Tone) -> String {
    let end = |ns: &Option<f64>| match ns {
        Some(ns) => out.format_latency(*ns),
        None => out.choose_spelling("∞", "inf").to_owned(),
    };
    match value {
        Value::Nothing => String::new(),
        Value::Name(text) | Value::Text(text) | Value::Command(text) => format::escape_unsafe(text),
        Value::Time(ns) => out.format_latency(*ns),
        Value::Latency(ns) => format!("{} {}", out.format_latency(*ns), out.unit_name()),
        Value::Interval(None, high) => format!("-{} to {}", end(&None), end(high)),
        Value::Interval(low, high) => format!("{} to {}", end(low), end(high)),
        Value::Span(ns) => format::span_text(Nanos(*ns)),
        Value::Count(n) => format::count_text(*n),
        Value::Share(share) => format::percent_text(*share),
        Value::Figure(_, words) => format::escape_unsafe(words),
        Value::Verdict(sign, word) => {
            let loud = tone == Tone::Bad && !sign.is_empty();
            let word =
                format::escape_unsafe(&if loud { word.to_uppercase() } else { word.clone() });
            match sign.is_empty() || out.options.ascii {
                true => word,
                false => format!("{sign} {word}"),
            }
        }
        Value::Absent(_) => out.choose_spelling("–", "-").to_owned(),
        Value::Unknown => "unknown".to_owned(),
    }
}

/// For each column, whether it identifies the row, as the first does, or holds a result: a verdict.
/// Without these a table is meaningless.
fn identity_and_results(rows: &[Vec<&Cell>]) -> Vec<bool> {
    let columns = rows.first().map_or(0, Vec::len);
    let verdict = |k: usize| {
        rows.iter()
            .any(|row| row.get(k).is_some_and(|cell| matches!(cell.value, Value::Verdict(..))))
    };
    (0..columns).map(|k| k == 0 || verdict(k)).collect()
}

/// Removes columns until the others fit, and returns their headings; keeps those marked in `kept`.
fn hide_columns(
    out: &TextPage,
    mut kept: Vec<bool>,
    columns: &mut Vec<&Column>,
    rows: &mut [Vec<Drawn>],
) -> Vec<String> {
    let mut hidden = Vec::new();
    while !out.options.whole && total_width(&column_widths(columns, rows)) > out.options.width {
        let is_kept = |k: usize| kept.get(k).copied().unwrap_or(k == 0);
        let of_those = (0..columns.len()).filter(|k| columns[*k].dispensable > 0 && !is_kept(*k));
        let Some(k) = of_those.max_by_key(|k| columns[*k].dispensable) else { break };
        if k < kept.len() {
            kept.remove(k);
        }
        hidden.push(format::escape_unsafe(&columns.remove(k).heading));
        rows.iter_mut().for_each(|row| drop(row.remove(k)));
    }
    hidden
}

/// Cuts shrinkable columns if the table is still too wide, and returns the remaining widths.
fn shrink_columns(out: &TextPage, columns: &[&Column], rows: &mut [Vec<Drawn>]) -> Vec<usize> {
    let mut widths = column_widths(columns, rows);
    let excess = total_width(&widths).saturating_sub(out.options.width);
    if let Some(k) = columns
        .iter()
        .position(|column| column.shrinks)
        .filter(|_| excess > 0 && !out.options.whole)
    {
        let kept = widths[k].saturating_sub(excess).max(SHRUNK.min(widths[k]));
        for row in rows.iter_mut() {
            row[k].0 = clip_to_width(&row[k].0, kept, out.options.ascii);
        }
        widths[k] = kept.max(width_of(&columns[k].heading));
    }
    widths
}

fn total_width(widths: &[usize]) -> usize {
    INDENT + widths.iter().sum::<usize>() + BETWEEN * widths.len().saturating_sub(1)
}

fn column_widths(columns: &[&Column], rows: &[Vec<Drawn>]) -> Vec<usize> {
    let cells = |k: usize| rows.iter().map(move |row| width_of(&row[k].0));
    let width = |(k, column): (usize, &&Column)| {
        cells(k).chain([width_of(&format::escape_unsafe(&column.heading))]).max().unwrap_or(0)
    };
    columns.iter().enumerate().map(width).collect()
}

fn write_rows(out: &mut TextPage, columns: &[&Column], rows: &[Vec<Drawn>], widths: &[usize]) {
    let heading = |column: &&Column| Drawn(format::escape_unsafe(&column.heading), Tone::Faint);
    let headings: Vec<Drawn> = columns.iter().map(heading).collect();
    for row in [&headings].into_iter().chain(rows) {
        let mut line = " ".repeat(INDENT);
        for (k, Drawn(text, tone)) in row.iter().enumerate() {
            let space = " ".repeat(widths[k].saturating_sub(width_of(text)));
            let text = out.paint(*tone, text);
            line += &if columns[k].numeric { space + &text } else { text + &space };
            line += &" ".repeat(BETWEEN);
        }
        out.push_line(&line);
    }
}
