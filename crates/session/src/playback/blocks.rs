//! The blocks of a recording as events, by the decoders of their recorders.

use punctual_bundle::RecordingReader;
use punctual_bundle::recording::{BlockPlace, Encoding};
use punctual_core::event::{Event, EventKind, RecordedSource, Tid};
use punctual_core::merge::Batches;
use punctual_core::{Finding, MonotonicNs, Nanos, Severity};
use punctual_record::wire;

/// The instants in a block's header are of its first and last record, which may be slightly out of
/// order.
const SLACK: Nanos = Nanos::from_millis(20);

/// An event source for each source of the recording.
pub(crate) fn block_sources(
    recording: &RecordingReader,
    from: MonotonicNs,
    to: MonotonicNs,
) -> impl Iterator<Item = Box<dyn Batches + '_>> {
    recording.sources.iter().map(move |(number, blocks)| {
        let source = recording.document.recorded.sources.get(*number as usize);
        let blocks = blocks.blocks.as_slice();
        let reader = RecordedBlocks { source, blocks, payload: Vec::new(), before: None, from, to };
        Box::new(reader) as Box<dyn Batches + '_>
    })
}

/// The finding about parts of a recording without a decoder.
pub(crate) fn unknown_encoding_finding(recording: &RecordingReader) -> Option<Finding> {
    let unknown: Vec<String> = recording
        .encodings()
        .iter()
        .filter(|encoding| !is_known(**encoding))
        .map(|encoding| encoding.0.to_string())
        .collect();
    let message = "parts of the recording cannot be read by this version of punctual";
    let finding =
        || Finding::new("recording-encoding-unknown", Severity::Bad, "recording", message);
    let evidence = || format!("encoding {}", unknown.join(", "));
    (!unknown.is_empty()).then(|| {
        finding().with_evidence(evidence()).with_remedy("read it with the version that recorded it")
    })
}

struct RecordedBlocks<'b> {
    source: Option<&'b RecordedSource>,
    blocks: &'b [BlockPlace],
    payload: Vec<u8>,
    /// The end of the block before: its last instant, and its source's count by then.
    before: Option<(MonotonicNs, u64)>,
    from: MonotonicNs,
    to: MonotonicNs,
}

impl RecordedBlocks<'_> {
    /// A mark instead of an unreadable block.
    fn lost_block_event(&self, place: &BlockPlace) -> Event {
        let what = EventKind::Lost { count: place.block.count.into(), since: place.block.first };
        Event { at: place.block.last, cpu: self.cpu(), tid: Tid(0), what }
    }

    fn cpu(&self) -> u16 {
        self.source.and_then(|source| source.cpu).unwrap_or(Event::NO_CPU)
    }

    /// A mark if blocks of this source are missing before this one. Its own losses are in its
    /// records.
    fn missing_blocks_event(&mut self, place: &BlockPlace) -> Option<Event> {
        let block = &place.block;
        let end = (block.last, block.before.saturating_add(block.count.into()));
        let (since, given) = self.before.replace(end).unwrap_or((block.first, block.before));
        let count = block.before.saturating_sub(given);
        (count > 0).then_some(Event {
            at: block.first,
            cpu: self.cpu(),
            tid: Tid(0),
            what: EventKind::Lost { count, since },
        })
    }
}

impl Batches for RecordedBlocks<'_> {
    fn next_batch(&mut self, events: &mut Vec<Event>) -> bool {
        let Some((place, rest)) = self.blocks.split_first() else { return false };
        self.blocks = rest;
        let gap = self.missing_blocks_event(place);
        if place.block.first <= self.to + SLACK && place.block.last + SLACK >= self.from {
            events.extend(gap);
            let decoded = place.read_into(&mut self.payload).is_ok()
                && decode_payload(place.block.encoding, &self.payload, events);
            if !decoded {
                events.push(self.lost_block_event(place));
            }
            if self.from > MonotonicNs(i64::MIN) || self.to < MonotonicNs(i64::MAX) {
                events.retain(|event| (self.from..=self.to).contains(&event.at));
            }
        }
        !rest.is_empty()
    }
}

/// Whether [`decode_payload`] knows the encoding.
fn is_known(encoding: Encoding) -> bool {
    decode_payload(encoding, &[], &mut Vec::new())
}

/// Appends the events of a payload; `false` without a decoder of the encoding.
fn decode_payload(encoding: Encoding, payload: &[u8], events: &mut Vec<Event>) -> bool {
    match encoding {
        Encoding::KERNEL | Encoding::POINTS => {
            events.extend(wire::decode(payload).filter_map(Result::ok))
        }
        _ => return false,
    }
    true
}
