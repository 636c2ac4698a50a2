//! Explained samples as a Perfetto trace: the events around them, and above those of its thread the
//! causes of each sample.

use super::folded::sanitize_frame;
use super::{ExportError, RecordingInput, perfetto};
use crate::marks::{Detail, Extent, Lane, Mark, SLOTS};
use crate::sentence::explain::{cause_title, format_culprit};
use punctual_bundle::Timebase;
use punctual_bundle::exact::{ExactCall, ExactDocument, ExplainedExactSample};
use punctual_core::{Event, MonotonicNs, Names, Tid};
use punctual_explain::explain::Explanation;
use punctual_explain::{Explained, Explanations};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// Writes them. Events of overlapping windows are written once. `timebase` is the bundle's;
/// `release` is the kernel's, if known.
pub fn export_explained(
    all: &Explanations,
    timebase: Timebase,
    release: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let mut events: Vec<&Event> = all.samples.iter().flat_map(|sample| &sample.events).collect();
    events.sort_by_key(|event| (event.at, event.cpu));
    events.dedup();
    let mut latest: Vec<&Explained> = all.samples.iter().collect();
    latest.sort_by_key(|sample| sample.explanation.interval.due);
    let mut slots = LaneEnds::default();
    let marks: Vec<Mark<'_>> = latest
        .iter()
        .flat_map(|sample| {
            mark_causes(&sample.explanation, slots.find_free_lane(sample), &all.names)
        })
        .collect();
    let input = RecordingInput { recorded: &all.recorded, names: &all.names, release, timebase };
    Ok(perfetto::write_with(input, events.into_iter().copied(), &marks, out)?)
}

/// The end of the last span in each lane of each thread.
#[derive(Default)]
struct LaneEnds(HashMap<Tid, Vec<MonotonicNs>>);

impl LaneEnds {
    /// A lane in which nothing overlaps this sample; samples come in the order of their beginnings.
    fn find_free_lane(&mut self, sample: &Explained) -> u8 {
        let late = sample.explanation.interval;
        let lane_ends = self.0.entry(late.tid).or_default();
        let slot = lane_ends.iter().position(|until| *until <= late.due).unwrap_or(lane_ends.len());
        match lane_ends.get_mut(slot) {
            Some(until) => *until = late.woke,
            None => lane_ends.push(late.woke),
        }
        slot.min(usize::from(SLOTS) - 1) as u8
    }
}

/// The parts of one sample, each named by its cause and the culprit.
fn mark_causes<'a>(explanation: &Explanation, slot: u8, names: &'a Names) -> Vec<Mark<'a>> {
    let lane = Lane::Causes(explanation.interval.tid, slot);
    let mark = |part: &punctual_explain::explain::Part| {
        let who = format_culprit(part.cause, part.prio, names);
        let name = if who.is_empty() {
            cause_title(part.cause).to_owned()
        } else {
            format!("{}: {who}", cause_title(part.cause))
        };
        let mut details = vec![("evidence (events)", Detail::Number(part.evidence.len() as i64))];
        details.extend(part.cpu.map(|cpu| ("CPU", Detail::Number(cpu.into()))));
        Mark::new(lane, name, Extent::Span(part.from, part.to)).with_details(details)
    };
    explanation.parts.iter().map(mark).collect()
}

// Folded stacks, one line per stack with its instructions, as flame graphs take them
// (github.com/brendangregg/FlameGraph, speedscope).

/// Writes the calls of all samples: the sample, the task or interrupt, its functions from the
/// outermost, and their own instructions.
pub fn exact_folded(document: &ExactDocument, out: &mut dyn Write) -> io::Result<()> {
    for (place, sample) in document.worst.iter().enumerate() {
        let name = match sample.series.is_empty() {
            true => format!("sample {}", place + 1),
            false => format!("{}/{} {}", sample.phase, sample.series, place + 1),
        };
        for (stack, own) in sum_stacks(sample) {
            writeln!(out, "{};{stack} {own}", sanitize_frame(&name))?;
        }
    }
    Ok(())
}

/// The self instructions of each stack.
fn sum_stacks(sample: &ExplainedExactSample) -> BTreeMap<String, u64> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    let mut open: Vec<(&ExactCall, u64)> = Vec::new();
    let mut close = |open: &mut Vec<(&ExactCall, u64)>| {
        let names: Vec<String> =
            open.iter().map(|(call, _)| sanitize_frame(&call.function)).collect();
        if let Some((call, inside)) = open.pop() {
            let own_instructions = (call.end - call.begin.min(call.end)).saturating_sub(inside);
            if own_instructions > 0 {
                *stacks.entry(names.join(";")).or_default() += own_instructions;
            }
            if let Some((_, outer)) = open.last_mut() {
                *outer += call.end - call.begin.min(call.end);
            }
        }
    };
    for call in &sample.calls {
        while open.last().is_some_and(|(other, _)| other.end <= call.begin) {
            close(&mut open);
        }
        open.push((call, 0));
    }
    while !open.is_empty() {
        close(&mut open);
    }
    stacks
}
