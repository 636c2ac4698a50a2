//! A typical cycle of a thread beside its longest one: two bands on one scale, each part in the
//! colour of its cause.

use super::ReportInput;
use super::account::style_of_cause;
use super::notes::titled_measures;
use super::style::CurveStyle;
use crate::format;
use punctual_bundle::meta::MeasureMeta;
use punctual_core::{CauseKind, Cell, MAIN_PARTS, Nanos};
use serde::Serialize;

/// The name of the drawn table of a measure.
const TABLE: &str = "typical-and-longest";
/// Limits of drawn threads and parts; a hostile bundle may hold any number.
const THREADS: usize = 24;
const PARTS: usize = 64;
/// The longest valid time in ns: a year.
const LONGEST: f64 = 3.2e16;

/// The cycles of a thread.
#[derive(Debug, Serialize)]
pub(crate) struct CycleSection {
    thread: String,
    bands: Vec<Band>,
    key: Vec<LegendKey>,
}

/// A cycle.
#[derive(Debug, Serialize)]
struct Band {
    title: &'static str,
    time: String,
    description: String,
    segments: Vec<CycleSegment>,
}

/// A segment: position and length in per cent of the longer cycle.
#[derive(Debug, Serialize)]
struct CycleSegment {
    x: f64,
    width: f64,
    style: CurveStyle,
    label_text: String,
}

/// An entry of the legend.
#[derive(Debug, PartialEq, Serialize)]
struct LegendKey {
    title: &'static str,
    style: CurveStyle,
}

/// A part of both cycles: when, of which cause, and ns in each.
struct CyclePart {
    when: String,
    cause: CauseKind,
    ns: [f64; 2],
}

/// Sections of all threads that have such a table.
pub(crate) fn build_sections(inputs: &[ReportInput<'_>], labels: &[String]) -> Vec<CycleSection> {
    let all_measures = titled_measures(inputs, labels).into_iter();
    all_measures.filter_map(|(who, measure)| build_section(who, measure)).take(THREADS).collect()
}

fn build_section(thread: String, measure: &MeasureMeta) -> Option<CycleSection> {
    let table = measure.notes.tables.iter().find(|table| table.name == TABLE)?;
    let parts: Vec<CyclePart> =
        table.rows.iter().take(PARTS).filter_map(|row| parse_part(row)).collect();
    let whole = |cycle: usize| parts.iter().map(|part| part.ns[cycle]).sum::<f64>();
    let scale = whole(0).max(whole(1));
    if scale <= 0.0 {
        return None;
    }
    let band = |(cycle, title): (usize, &'static str)| draw_band(&parts, cycle, title, scale);
    let bands = ["a typical one", "the longest one"].into_iter().enumerate().map(band).collect();
    let mut key: Vec<LegendKey> = Vec::new();
    for part in &parts {
        let one = LegendKey { title: part.cause.words(), style: style_of_cause(part.cause) };
        if !key.contains(&one) {
            key.push(one);
        }
    }
    Some(CycleSection { thread, bands, key })
}

fn parse_part(row: &[Cell]) -> Option<CyclePart> {
    let [Cell::Text(when), Cell::Text(cause), Cell::Number(typical), Cell::Number(longest), ..] =
        row
    else {
        return None;
    };
    let cause = MAIN_PARTS.iter().find(|part| part.words() == cause)?;
    let ns =
        [*typical, *longest].map(|ns| if ns.is_finite() { ns.clamp(0.0, LONGEST) } else { 0.0 });
    Some(CyclePart { when: when.clone(), cause: *cause, ns })
}

fn draw_band(parts: &[CyclePart], cycle: usize, title: &'static str, scale: f64) -> Band {
    let (mut segments, mut at) = (Vec::new(), 0.0);
    let round = |ns: f64| (ns / scale * 100_000.0).round() / 1_000.0;
    let micros = |ns: f64| format!("{} µs", format::micros_text(Nanos(ns as i64)));
    for part in parts.iter().filter(|part| part.ns[cycle] > 0.0) {
        let ns = part.ns[cycle];
        segments.push(CycleSegment {
            x: round(at),
            width: round(ns),
            style: style_of_cause(part.cause),
            label_text: format!("{}, {}: {}", part.when, part.cause.words(), micros(ns)),
        });
        at += ns;
    }
    let label_texts: Vec<&str> =
        segments.iter().map(|segment| segment.label_text.as_str()).collect();
    Band { title, time: micros(at), description: label_texts.join("; "), segments }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::{Column, Notes, Table};

    fn drawn(rows: Vec<Vec<Cell>>) -> Option<CycleSection> {
        let columns = ["when", "cause", "typical", "longest"].map(|name| Column::new(name, ""));
        let (name, title) = (TABLE.to_owned(), String::new());
        let table = Table { name, title, columns: columns.to_vec(), rows };
        let measure = MeasureMeta {
            name: "servo".to_owned(),
            notes: Notes { tables: vec![table], ..Notes::default() },
            ..MeasureMeta::default()
        };
        build_section("attached/servo".to_owned(), &measure)
    }

    fn row(cause: &str, typical: f64, longest: f64) -> Vec<Cell> {
        vec![Cell::from("wake-up"), Cell::from(cause), Cell::Number(typical), Cell::Number(longest)]
    }

    #[test]
    fn worst_and_typical_cycle_share_a_scale() {
        let (own, lock) = (CauseKind::OwnExecution.words(), CauseKind::Lock.words());
        let section = drawn(vec![row(own, 50.0, 100.0), row(lock, 0.0, 300.0)]).unwrap();
        let places = |band: &Band| -> Vec<(f64, f64)> {
            band.segments.iter().map(|segment| (segment.x, segment.width)).collect()
        };
        assert_eq!(places(&section.bands[0]), [(0.0, 12.5)]);
        assert_eq!(places(&section.bands[1]), [(0.0, 25.0), (25.0, 75.0)]);
        assert_eq!(section.key.len(), 2);
    }

    #[test]
    fn rows_without_cause_or_valid_time_are_not_drawn() {
        let own = CauseKind::OwnExecution.words();
        assert!(drawn(vec![row("<script>", 1.0, 1.0), vec![Cell::Nothing]]).is_none());
        let strange = vec![row(own, f64::NAN, -5.0), row(own, f64::INFINITY, 1e300)];
        let section = drawn(strange).unwrap();
        assert_eq!(section.bands[1].segments.len(), 1);
        assert_eq!(section.bands[1].segments[0].width, 100.0);
    }
}
