//! Samples in virtual time by function: the parts of their path, and their nested calls drawn over
//! the instructions (an icicle graph).

use super::table::Table;
use super::text::format_name;
use crate::format::{count_text, count_with_noun, micros_text, short_digest};
use crate::sentence::exact as words;
use crate::tables::exact as tables;
use punctual_bundle::exact::{ExactCall, ExactDifference, ExactDocument, ExplainedExactSample};
use punctual_core::Nanos;
use serde::Serialize;
use std::collections::HashMap;

const SHOWN_CALLS: usize = 6;
/// Functions and source lines of a sample that are shown.
const MORE: usize = 10;
/// The width of a drawing, the height of a row, the minimum width of a box and of a box with a
/// name.
const WIDTH: f64 = 1_000.0;
const ROW: f64 = 14.0;
const MIN_DRAWN_WIDTH: f64 = 0.4;
const LEAST_NAMED: f64 = 24.0;
const LETTER: f64 = 5.6;
/// The maximum number of rows and boxes of a drawing: the shortest are omitted.
const ROWS: u32 = 40;
const BOXES: usize = 1_200;
/// Colours of boxes (`k0` … in report.css).
const LOOKS: u32 = 8;

/// The input of the templates.
#[derive(Clone, Debug, Serialize)]
pub struct ExactSection {
    /// The label of the bundle; empty if there is only one.
    label: String,
    intro: String,
    samples: Vec<ExactSampleView>,
    /// The comparison with another run: the heading, and its tables.
    against: String,
    differences: Vec<Table>,
    sections: Vec<Table>,
}

#[derive(Clone, Debug, Serialize)]
struct ExactSampleView {
    title: String,
    mostly: String,
    parts: Table,
    more: String,
    lines: String,
    drawings: Vec<CallsDrawing>,
    open: bool,
}

/// Nested calls, from left to right by instruction.
#[derive(Clone, Debug, Serialize)]
struct CallsDrawing {
    title: String,
    height: f64,
    boxes: Vec<DrawnCall>,
}

#[derive(Clone, Debug, Serialize)]
struct DrawnCall {
    x: f64,
    y: f64,
    width: f64,
    look: u32,
    text: String,
    label_text: String,
}

impl ExactSection {
    /// The section of a bundle's document.
    pub fn from_document(document: &ExactDocument, label: String) -> ExactSection {
        let worst = document.worst.iter().take(SHOWN_CALLS).enumerate();
        let worst =
            worst.map(|(place, one)| view_sample(document, one, sample_title(one), place == 0));
        let ordinary = document.ordinary.iter().map(|one| {
            let title = format!("an ordinary sample: {} µs", micros_text(Nanos(one.latency_ns)));
            view_sample(document, one, title, false)
        });
        ExactSection {
            label,
            intro: format!(
                "The run was replayed with every one of its {} seen from outside (kernel {}). The \
                 replay took the same samples: digest {}. {} virtual ns an instruction.",
                count_with_noun(document.instructions, "instruction"),
                format_name(&document.kernel),
                short_digest(&document.digest),
                document.ns_per_instruction
            ),
            samples: worst.chain(ordinary).collect(),
            against: document
                .difference
                .as_ref()
                .map(words::format_compared_run)
                .unwrap_or_default(),
            differences: document.difference.iter().flat_map(difference_tables).collect(),
            sections: tables::section_kinds(document.sections.by_kind())
                .map(|(disabled, sections)| {
                    tables::section_table(disabled, sections, document.ns_per_instruction).into()
                })
                .collect(),
        }
    }
}

fn difference_tables(of: &ExactDifference) -> Vec<Table> {
    of.pairs.iter().flat_map(tables::difference_tables).map(Table::from).collect()
}

fn sample_title(sample: &ExplainedExactSample) -> String {
    let series_suffix = match sample.series.is_empty() {
        true => String::new(),
        false => format!(": {}", format_name(&format!("{}/{}", sample.phase, sample.series))),
    };
    format!("latency {} µs{series_suffix}", micros_text(Nanos(sample.latency_ns)))
}

fn view_sample(
    document: &ExactDocument,
    one: &ExplainedExactSample,
    title: String,
    open: bool,
) -> ExactSampleView {
    let longer_functions: Vec<String> = one
        .more
        .iter()
        .take(MORE)
        .map(|more| {
            let difference = more.here.saturating_sub(more.there);
            format!("{} +{}", format_name(&more.function), count_text(difference))
        })
        .collect();
    let mut drawings = vec![draw_calls(one, "all calls".to_owned(), 0, one.instructions)];
    drawings.extend(one.parts.iter().filter(|_| one.parts.len() > 1).map(|part| {
        let title = format!(
            "{}: {}",
            words::part_title(&part.kind),
            count_with_noun(part.instructions, "instruction")
        );
        draw_calls(one, title, part.begin, part.begin.saturating_add(part.instructions))
    }));
    drawings.retain(|drawing| !drawing.boxes.is_empty());
    ExactSampleView {
        title,
        mostly: words::main_delay(one).map_or(String::new(), |most| {
            format!("{}: {}", most.words, format_name(most.who.as_deref().unwrap_or_default()))
        }),
        parts: tables::part_table(document, one).into(),
        more: longer_functions.join(", "),
        lines: words::format_lines(one, MORE),
        drawings,
        open,
    }
}

/// Draws the calls between two instructions.
fn draw_calls(sample: &ExplainedExactSample, title: String, from: u64, to: u64) -> CallsDrawing {
    let span = to.saturating_sub(from).max(1) as f64;
    let place = |at: u64| at.clamp(from, to).saturating_sub(from) as f64 / span * WIDTH;
    let mut calls: Vec<&ExactCall> = sample
        .calls
        .iter()
        .filter(|call| call.depth < ROWS && place(call.end) - place(call.begin) >= MIN_DRAWN_WIDTH)
        .collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.end.saturating_sub(call.begin)));
    calls.truncate(BOXES);
    let mut looks: HashMap<&str, u32> = HashMap::new();
    let boxes: Vec<DrawnCall> = calls
        .into_iter()
        .map(|call| {
            let width = place(call.end) - place(call.begin);
            let next = looks.len() as u32 % LOOKS;
            let look = *looks.entry(&call.function).or_insert(next);
            let letters = ((width - 4.0) / LETTER).max(0.0) as usize;
            let text = match width >= LEAST_NAMED {
                true => format_name(&call.function).chars().take(letters).collect(),
                false => String::new(),
            };
            DrawnCall {
                x: round_to_hundredths(place(call.begin)),
                y: f64::from(call.depth) * ROW,
                width: round_to_hundredths(width),
                look,
                text,
                label_text: format!(
                    "{}: {}, for {}",
                    format_name(&call.function),
                    count_with_noun(call.end.saturating_sub(call.begin), "instruction"),
                    format_name(&call.context)
                ),
            }
        })
        .collect();
    let height = boxes.iter().fold(0.0_f64, |most, call| most.max(call.y)) + ROW;
    CallsDrawing { title, height, boxes }
}

fn round_to_hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
