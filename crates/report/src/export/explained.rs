//! Explained samples as a Perfetto trace: the events around them, and above those of its thread the
//! causes of each sample.

use super::{ExportError, RecordingInput, perfetto};
use crate::marks::{Detail, Extent, Lane, Mark, SLOTS};
use crate::sentence::explain::{title, who};
use punctual_bundle::Timebase;
use punctual_core::{Event, MonotonicNs, Names, Tid};
use punctual_explain::explain::Explanation;
use punctual_explain::{Explained, Explanations};
use std::collections::HashMap;
use std::io::Write;

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
        .flat_map(|sample| causes(&sample.explanation, slots.free(sample), &all.names))
        .collect();
    let input = RecordingInput { recorded: &all.recorded, names: &all.names, release, timebase };
    Ok(perfetto::write_with(input, events.into_iter().copied(), &marks, out)?)
}

/// The end of the last span in each lane of each thread.
#[derive(Default)]
struct LaneEnds(HashMap<Tid, Vec<MonotonicNs>>);

impl LaneEnds {
    /// A lane in which nothing overlaps this sample; samples come in the order of their beginnings.
    fn free(&mut self, sample: &Explained) -> u8 {
        let late = sample.explanation.interval;
        let taken = self.0.entry(late.tid).or_default();
        let slot = taken.iter().position(|until| *until <= late.due).unwrap_or(taken.len());
        match taken.get_mut(slot) {
            Some(until) => *until = late.woke,
            None => taken.push(late.woke),
        }
        slot.min(usize::from(SLOTS) - 1) as u8
    }
}

/// The parts of one sample, each named by its cause and the culprit.
fn causes<'a>(explanation: &Explanation, slot: u8, names: &'a Names) -> Vec<Mark<'a>> {
    let lane = Lane::Causes(explanation.interval.tid, slot);
    let mark = |part: &punctual_explain::explain::Part| {
        let who = who(part.cause, part.prio, names);
        let name = if who.is_empty() {
            title(part.cause).to_owned()
        } else {
            format!("{}: {who}", title(part.cause))
        };
        let mut details = vec![("evidence (events)", Detail::Number(part.evidence.len() as i64))];
        details.extend(part.cpu.map(|cpu| ("CPU", Detail::Number(cpu.into()))));
        Mark::new(lane, name, Extent::Span(part.from, part.to)).with(details)
    };
    explanation.parts.iter().map(mark).collect()
}
