//! One ring: its points so far, and the reading of more.

use crate::file::{Access, comm_at, u32_at, u64_at};
use crate::reading::RingReading;
use punctual_core::event::{Event, EventKind, PointKind, Tid};
use punctual_testpoint::layout::{
    COUNT_SHIFT, ID_MASK, KIND_BEGIN, KIND_END, KIND_MASK, KIND_POINT, MARGIN, Ring, SLOTS_AT, Slot,
};
use std::io;
use std::mem::offset_of;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const SLOT_BYTES: usize = size_of::<Slot>();
/// Slots that are read at once.
const CHUNK: u64 = 8_192;
/// The time after which a half-written point of a living thread is given up: its thread may be
/// preempted there, or have left it by longjmp(3).
const CLAIM_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum position of a ring: 22 years of 100 million points per second.
const FARTHEST: u64 = 1 << 56;

/// The header of a ring at one moment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RingState {
    pub state: u32,
    pub generation: u32,
    pub tid: u32,
    pub slots: u32,
    pub comm: String,
    pub head: u64,
    pub dropped: u64,
    pub limit: u64,
    pub read: u64,
    pub reported: u64,
}

impl RingState {
    pub fn read(file: &impl Access, at: u64) -> io::Result<RingState> {
        let mut header = [0; size_of::<Ring>()];
        file.read(at, &mut header)?;
        Ok(RingState {
            state: u32_at(&header, offset_of!(Ring, state)),
            generation: u32_at(&header, offset_of!(Ring, generation)),
            tid: u32_at(&header, offset_of!(Ring, tid)),
            slots: u32_at(&header, offset_of!(Ring, slots)),
            comm: comm_at(&header, offset_of!(Ring, comm)),
            head: u64_at(&header, offset_of!(Ring, head)),
            dropped: u64_at(&header, offset_of!(Ring, dropped)),
            limit: u64_at(&header, offset_of!(Ring, limit)),
            read: u64_at(&header, offset_of!(Ring, read)),
            reported: u64_at(&header, offset_of!(Ring, reported)),
        })
    }
}

/// The treatment of incomplete points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Torn {
    /// Their writer may be about to complete them: try again later.
    Wait,
    Count,
}

/// The state of a slot.
enum SlotState {
    Point(Event),
    /// Not (or not yet) completely written.
    Incomplete,
    /// Completely written, but invalid.
    Malformed,
}

/// The read position of a ring.
#[derive(Debug)]
pub struct RingReader {
    /// Its offset in the file.
    at: u64,
    slots: u64,
    /// The generation of the ring, which identifies its thread.
    pub generation: u32,
    /// The source with that thread's counts.
    pub source: usize,
    pub position: u64,
    /// Earlier drops, which are not reported.
    dropped_before: u64,
    /// The position at which reading waits, and since when.
    waits: Option<(u64, Instant)>,
}

impl RingReader {
    pub fn new(
        at: u64,
        state: &RingState,
        slots: u32,
        source: usize,
        position: u64,
        dropped_before: u64,
    ) -> RingReader {
        RingReader {
            at,
            slots: u64::from(slots),
            generation: state.generation,
            source,
            position,
            dropped_before,
            waits: None,
        }
    }

    /// Passes everything up to `state.head` to `reading`, and with `claim` publishes the read
    /// position to the writer. Returns whether all of it could be read; or why this ring is given
    /// up.
    pub fn drain_ring(
        &mut self,
        file: &impl Access,
        state: &RingState,
        torn: Torn,
        claim: bool,
        reading: &mut RingReading,
    ) -> Result<bool, String> {
        if u64::from(state.slots) != self.slots
            || state.head < self.position
            || state.head > FARTHEST
        {
            return Err(format!(
                "its ring claims {} points of {} slots after {} were read",
                state.head, state.slots, self.position
            ));
        }
        let dropped = state.dropped.saturating_sub(self.dropped_before).min(FARTHEST);
        let source = reading.source_mut(self.source);
        source.dropped = source.dropped.max(dropped);
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue() && self.position < state.head {
            flow =
                self.read_chunk(file, state, torn, reading).map_err(|error| error.to_string())?;
            if claim {
                self.publish_limit(file, state).map_err(|error| error.to_string())?;
            }
        }
        if claim && state.dropped != state.reported {
            self.publish_limit(file, state).map_err(|error| error.to_string())?;
        }
        Ok(flow.break_value().unwrap_or(true))
    }

    /// Publishes to the writer how far it may write.
    pub(crate) fn publish_limit(&self, file: &impl Access, state: &RingState) -> io::Result<()> {
        let mut bytes = [0; 24];
        let limit = self.position.min(FARTHEST) + self.slots - MARGIN;
        for (place, number) in bytes.chunks_exact_mut(8).zip([limit, self.position, state.dropped])
        {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        file.write(self.at + offset_of!(Ring, limit) as u64, &bytes)
    }

    /// Reads a part and passes it on. Breaks at an incomplete point, or when it is another
    /// process's turn, with whether nothing is left to be read later.
    fn read_chunk(
        &mut self,
        file: &impl Access,
        state: &RingState,
        torn: Torn,
        reading: &mut RingReading,
    ) -> io::Result<ControlFlow<bool>> {
        self.skip_overwritten(state.head.saturating_sub(self.slots), reading);
        // An overwriting ring is read at once, so that points overwritten meanwhile are missing at
        // the beginning and not in between.
        let slot_limit = if state.limit == u64::MAX { self.slots } else { CHUNK };
        let count = slot_limit.min(state.head - self.position);
        if reading.budget < count {
            return Ok(ControlFlow::Break(false));
        }
        reading.budget -= count;
        let first = self.position;
        let mut bytes = std::mem::take(&mut reading.buffer);
        let fetched = self.fetch_slots(file, count, &mut bytes, reading);
        let flow = fetched.map(|()| {
            let unread = bytes
                .chunks_exact(SLOT_BYTES)
                .take(count as usize)
                .skip((self.position - first) as usize);
            self.decode_slots(file, unread, state, torn, reading)
        });
        reading.buffer = bytes;
        flow
    }

    /// Reads `count` slots into `bytes`, and counts those that were overwritten meanwhile.
    fn fetch_slots(
        &mut self,
        file: &impl Access,
        count: u64,
        bytes: &mut Vec<u8>,
        reading: &mut RingReading,
    ) -> io::Result<()> {
        let size = count as usize * SLOT_BYTES;
        if bytes.len() < size {
            bytes.resize(size, 0);
        }
        let index = self.position & (self.slots - 1);
        let (before_end, from_begin) =
            bytes[..size].split_at_mut(count.min(self.slots - index) as usize * SLOT_BYTES);
        file.read(self.at + SLOTS_AT + index * SLOT_BYTES as u64, before_end)?;
        file.read(self.at + SLOTS_AT, from_begin)?;
        // The writer advances its head before it touches a slot.
        let mut head = [0; 8];
        file.read(self.at + offset_of!(Ring, head) as u64, &mut head)?;
        let overwritten = u64::from_ne_bytes(head).saturating_sub(self.slots);
        self.skip_overwritten(overwritten.min(self.position + count), reading);
        Ok(())
    }

    /// Passes on complete points, up to the first incomplete one.
    fn decode_slots<'b>(
        &mut self,
        file: &impl Access,
        slots: impl Iterator<Item = &'b [u8]>,
        state: &RingState,
        torn: Torn,
        reading: &mut RingReading,
    ) -> ControlFlow<bool> {
        let mut flow = ControlFlow::Continue(());
        let mut events = std::mem::take(&mut reading.events);
        for slot in slots {
            match self.decode_slot(file, slot, reading) {
                SlotState::Point(event) => events.push(event),
                SlotState::Malformed => reading.source_mut(self.source).torn += 1,
                SlotState::Incomplete if torn == Torn::Count || self.given_up(state) => {
                    reading.source_mut(self.source).torn += 1
                }
                SlotState::Incomplete => {
                    // A later reading of a flight recorder would find a gap: its last points are
                    // left.
                    flow = ControlFlow::Break(state.limit == u64::MAX);
                    break;
                }
            }
            self.position += 1;
            if events.len() == CHUNK as usize {
                self.pass_on(&mut events, reading);
            }
        }
        self.pass_on(&mut events, reading);
        reading.events = events;
        flow
    }

    fn pass_on(&self, events: &mut Vec<Event>, reading: &mut RingReading) {
        if !events.is_empty() {
            reading.source_mut(self.source).recorded += events.len() as u64;
            reading.all.count += events.len() as u64;
            (reading.sink)(self.source, events);
            events.clear();
        }
    }

    /// Counts the points before this position as overwritten.
    fn skip_overwritten(&mut self, to: u64, reading: &mut RingReading) {
        if to > self.position {
            let source = reading.source_mut(self.source);
            source.overwritten = source.overwritten.saturating_add(to - self.position);
            self.position = to;
        }
    }

    #[inline]
    fn decode_slot(&self, file: &impl Access, slot: &[u8], reading: &mut RingReading) -> SlotState {
        let word = u64_at(slot, 8);
        if (word >> 32) as u32 != (self.position + 1) as u32 {
            return SlotState::Incomplete;
        }
        let bits = word as u32;
        let kind = match bits & KIND_MASK {
            KIND_POINT => PointKind::Point,
            KIND_BEGIN => PointKind::Begin,
            KIND_END => PointKind::End,
            _ => return SlotState::Malformed,
        };
        let count = (bits >> COUNT_SHIFT) as u8;
        let (Some(at), Some(point), 0..=2) =
            (reading.instant_at(u64_at(slot, 0)), reading.point_of(file, bits & ID_MASK), count)
        else {
            return SlotState::Malformed;
        };
        let value = |place: u8| {
            if place < count { u64_at(slot, 16 + 8 * usize::from(place)) as i64 } else { 0 }
        };
        let what = EventKind::Point { point, kind, count, values: [value(0), value(1)] };
        let source = reading.source_mut(self.source);
        let (cpu, tid) = match source.cpu {
            Some(_) if count == 2 => return SlotState::Malformed,
            Some(cpu) => (cpu, u64_at(slot, 24) as u32),
            None => (Event::NO_CPU, source.tid),
        };
        SlotState::Point(Event { at, cpu, tid: Tid(tid), what })
    }

    /// Whether the incomplete point here will stay so: it was seen long ago, or the number of later
    /// points shows that its writer left it.
    fn given_up(&mut self, state: &RingState) -> bool {
        if state.limit == u64::MAX {
            return state.head - self.position > MARGIN;
        }
        match self.waits {
            Some((position, since)) if position == self.position => {
                since.elapsed() >= CLAIM_TIMEOUT
            }
            _ => {
                self.waits = Some((self.position, Instant::now()));
                false
            }
        }
    }
}
