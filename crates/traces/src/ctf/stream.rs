//! The files of one stream: packet after packet, event after event.

use super::bits::{Bits, CtfValue, ReadStop};
use super::class::{Classes, StreamClass};
use super::event::CtfMachine;
use super::layout::PacketStep;
use crate::ReadAt;
use crate::bytes::until_nul;
use crate::decoder::{Decoder, Head};
use punctual_core::Event;
use std::collections::VecDeque;
use std::io;

/// The number of bytes read at once.
const WINDOW: usize = 1 << 16;
/// The maximum size of an event.
const MOST_WINDOW: usize = 1 << 26;
/// The first bytes of a packet (CTF 1.8, 5.1).
const MAGIC: u32 = 0xc1fc_1fc1;

/// A stream being read.
pub(super) struct CtfStream {
    /// From the current one on: LTTng begins a new file at the configured size.
    files: VecDeque<Box<dyn ReadAt>>,
    size: u64,
    /// The bounds of the current packet in its file.
    packet: (u64, u64),
    /// The size of the packet's content in bits.
    content: u64,
    window: Vec<u8>,
    /// The first byte of the window in the packet.
    window_from: u64,
    /// The next bit of the packet, and the start of the current event.
    at: u64,
    event_from: u64,
    values: Vec<CtfValue>,
    /// The number of its class in the metadata.
    pub(super) class: u64,
    clock: u64,
    last: i64,
    began: i64,
    ended: Option<i64>,
    /// When the previous packet ended.
    before: Option<i64>,
    cpu: Option<u16>,
    discarded: u64,
    stated: Option<u64>,
    sequence: Option<i64>,
    next: NextItem,
    is_open: bool,
    /// The instant from which the packet is unreadable.
    spoiled: Option<i64>,
    pub(super) cut_off: bool,
    pub(super) unreadable: u64,
}

/// The next item.
#[derive(Clone, Copy, Debug)]
enum NextItem {
    Event(u64),
    Lost { since: i64, count: Option<u64> },
}

impl CtfStream {
    pub(super) fn new(files: VecDeque<Box<dyn ReadAt>>, classes: &Classes) -> CtfStream {
        CtfStream {
            files,
            size: 0,
            packet: (0, 0),
            content: 0,
            window: Vec::new(),
            window_from: 0,
            at: 0,
            event_from: 0,
            values: vec![CtfValue::None; classes.places],
            class: 0,
            clock: 0,
            last: i64::MIN,
            began: 0,
            ended: None,
            before: None,
            cpu: None,
            discarded: 0,
            stated: None,
            sequence: None,
            next: NextItem::Event(0),
            is_open: false,
            spoiled: None,
            cut_off: false,
            unreadable: 0,
        }
    }

    pub(super) fn into_files(self) -> VecDeque<Box<dyn ReadAt>> {
        self.files
    }

    /// The identity of the stream that the first packet belongs to, and its start; `None` for files
    /// that are not part of a trace. Streams of one class are distinguished by instance or CPU.
    pub(super) fn read_identity(&mut self, classes: &Classes) -> io::Result<Option<(i64, i64)>> {
        if !self.begin_packet(classes)? {
            return Ok(None);
        }
        let instance = self.number_at(classes.instance).or(self.cpu.map(i64::from));
        Ok(Some((instance.unwrap_or(-1), self.began)))
    }

    fn number_at(&self, place: Option<u32>) -> Option<i64> {
        place.and_then(|place| self.values[place as usize].as_number())
    }

    /// Advances to the next item and returns its instant; `None` after the last.
    pub(super) fn advance(&mut self, classes: &Classes) -> io::Result<Option<i64>> {
        loop {
            if self.is_open && self.at < self.content {
                match self.event_header(classes)? {
                    Some(id) => {
                        self.next = NextItem::Event(id);
                        return Ok(Some(self.last));
                    }
                    None => self.spoil_packet(),
                }
            }
            if let Some(since) = self.spoiled.take() {
                self.next = NextItem::Lost { since, count: None };
                return Ok(Some(self.end_of_packet()));
            }
            if self.is_open {
                self.is_open = false;
                if let Some((since, count)) = self.lost_in_packet(classes) {
                    self.next = NextItem::Lost { since, count: Some(count) };
                    return Ok(Some(self.end_of_packet()));
                }
            }
            let (before, ended) = (self.sequence, self.end_of_packet());
            let had_packet = self.packet.1 > 0 || self.before.is_some();
            self.before = had_packet.then_some(ended);
            if !self.begin_packet(classes)? {
                return Ok(None);
            }
            if let (Some(before), Some(now)) = (before, self.sequence)
                && before.wrapping_add(1) != now
            {
                let since = self.before.unwrap_or(self.began).min(self.began);
                self.next = NextItem::Lost { since, count: None };
                return Ok(Some(self.began));
            }
        }
    }

    fn end_of_packet(&self) -> i64 {
        self.ended.unwrap_or(self.last).max(self.last).max(self.began)
    }

    /// The number of events discarded by the tracer, and since when.
    fn lost_in_packet(&mut self, classes: &Classes) -> Option<(i64, u64)> {
        let stated = self.stated?;
        let lost = stated.saturating_sub(self.discarded);
        self.discarded = stated;
        let since = match classes.loses_at_the_end {
            true => self.last.max(self.began),
            false => self.before.unwrap_or(self.began).min(self.began),
        };
        (lost > 0).then_some((since, lost))
    }

    /// Takes the item found by [`CtfStream::advance`].
    pub(super) fn decode_item(
        &mut self,
        at: i64,
        classes: &Classes,
        machine: &mut CtfMachine,
        decoder: &mut Decoder,
        out: &mut VecDeque<Event>,
    ) -> io::Result<()> {
        let cpu = self.cpu.unwrap_or(0);
        let id = match self.next {
            NextItem::Lost { since, count } => {
                machine.running.remove(&cpu);
                decoder.lost_between(cpu, since, at, count, out);
                return Ok(());
            }
            NextItem::Event(id) => id,
        };
        let class = classes.streams.get(&self.class);
        let (Some(class), Some(event)) = (class, classes.events.get(&(self.class, id))) else {
            self.spoil_packet();
            return Ok(());
        };
        for layout in [&class.event_context, &event.context, &event.fields] {
            if !self.read(layout)? {
                self.spoil_packet();
                return Ok(());
            }
        }
        // Of events without any bits the packet would hold an endless number.
        if self.at <= self.event_from {
            self.spoil_packet();
            return Ok(());
        }
        let cpu = self.number_at(event.cpu).and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(cpu);
        let head = Head { at, cpu, ..Head::default() };
        event.decode_event(
            &self.values,
            |value| self.text_bytes(value),
            head,
            machine,
            decoder,
            out,
        );
        Ok(())
    }

    /// Marks the rest of the packet as unreadable, with an unknown number of events.
    fn spoil_packet(&mut self) {
        self.unreadable += 1;
        self.at = self.content;
        self.spoiled = Some(self.last.max(self.began));
    }

    /// Reads the id of an event and its instant, which becomes the last.
    fn event_header(&mut self, classes: &Classes) -> io::Result<Option<u64>> {
        let Some(class) = classes.streams.get(&self.class) else { return Ok(None) };
        self.event_from = self.at;
        self.values[class.header_from..].fill(CtfValue::None);
        if !self.read(&class.event_header)? {
            return Ok(None);
        }
        let ids = class.ids.iter().rev();
        let id = ids.filter_map(|place| self.number_at(Some(*place))).next().unwrap_or(0) as u64;
        for (place, size) in &class.clocks {
            if let Some(ticks) = self.number_at(Some(*place)) {
                self.update_clock(ticks as u64, *size);
            }
        }
        self.last = classes.to_nanoseconds(self.clock);
        Ok(Some(id))
    }

    /// Updates the clock from its lowest bits; lower ones than before mean an overflow.
    fn update_clock(&mut self, ticks: u64, size: u32) {
        if size >= 64 {
            self.clock = ticks;
            return;
        }
        let mask = (1u64 << size) - 1;
        let elapsed_ticks = ticks.wrapping_sub(self.clock) & mask;
        self.clock = self.clock.wrapping_add(elapsed_ticks);
    }

    fn begin_packet(&mut self, classes: &Classes) -> io::Result<bool> {
        loop {
            self.packet.0 = self.packet.1;
            if self.size == 0
                && let Some(file) = self.files.front()
            {
                self.size = file.size()?;
            }
            if self.packet.0 < self.size {
                break;
            }
            if self.files.len() <= 1 {
                return Ok(false);
            }
            self.files.pop_front();
            (self.size, self.packet) = (0, (0, 0));
        }
        (self.at, self.event_from, self.window_from) = (0, 0, 0);
        self.window.clear();
        let rest = self.size - self.packet.0;
        self.content = rest.saturating_mul(8);
        self.values.fill(CtfValue::None);
        let begun = self.read(&classes.packet_header)?;
        let magic = self.number_at(classes.magic).is_none_or(|magic| magic as u32 == MAGIC);
        self.class = self
            .number_at(classes.stream_id)
            .unwrap_or_else(|| classes.streams.first_key_value().map_or(0, |(id, _)| *id as i64))
            as u64;
        let class = classes.streams.get(&self.class);
        let Some(class) = class.filter(|_| begun && magic) else { return Ok(self.ends_here()) };
        if !self.read(&class.packet_context)? {
            return Ok(self.ends_here());
        }
        Ok(self.packet_of(class, rest, classes))
    }

    /// Reads the packet's own fields.
    fn packet_of(&mut self, class: &StreamClass, rest: u64, classes: &Classes) -> bool {
        let unsigned = |place| self.number_at(place).map(|number| number as u64);
        let rest_bits = rest.saturating_mul(8);
        let size =
            unsigned(class.packet_size).or(unsigned(class.content_size)).unwrap_or(rest_bits);
        let content = unsigned(class.content_size).unwrap_or(size);
        if size == 0 || size % 8 != 0 || size < self.at || content > size {
            return self.ends_here();
        }
        let instant = |place| unsigned(place).map(|ticks| (ticks, classes.to_nanoseconds(ticks)));
        let (begin, end) = (instant(class.begin), instant(class.end));
        let (stated, sequence) = (unsigned(class.discarded), self.number_at(class.sequence));
        let cpu = self.number_at(class.cpu).and_then(|cpu| u16::try_from(cpu).ok());
        (self.cut_off, self.content) = (self.cut_off || size > rest_bits, content.min(rest_bits));
        self.packet.1 = self.packet.0 + (size / 8).min(rest);
        if let Some((ticks, at)) = begin {
            (self.clock, self.began) = (ticks, at);
        } else {
            self.began = self.last.max(0);
        }
        self.last = self.began;
        self.ended = end.map(|(_, at)| at);
        (self.stated, self.sequence, self.cpu) = (stated, sequence, cpu);
        self.is_open = true;
        true
    }

    /// Ends the file, as no further packet follows.
    fn ends_here(&mut self) -> bool {
        self.cut_off = true;
        self.packet.1 = self.size;
        self.files.truncate(1);
        false
    }

    /// Reads by a layout; `false` if it exceeds the packet.
    fn read(&mut self, layout: &PacketStep) -> io::Result<bool> {
        loop {
            let (bytes, from) = (&self.window[..], self.window_from * 8);
            let mut bits = Bits { bytes, from, at: self.at, end: self.content };
            match bits.read(layout, &mut self.values) {
                Ok(()) => {
                    self.at = bits.at;
                    return Ok(true);
                }
                Err(ReadStop::Further) if self.load_more()? => {}
                Err(_) => return Ok(false),
            }
        }
    }

    /// Loads more bytes from the current event on; `false` at the end.
    fn load_more(&mut self) -> io::Result<bool> {
        let from = self.event_from / 8;
        let rest = self.content.div_ceil(8).saturating_sub(from);
        let wanted = match from == self.window_from && !self.window.is_empty() {
            true => self.window.len().saturating_mul(2).min(MOST_WINDOW),
            false => WINDOW,
        };
        let wanted = wanted.min(usize::try_from(rest).unwrap_or(usize::MAX));
        let had = self.window_from.saturating_add(self.window.len() as u64);
        let Some(file) = self.files.front() else { return Ok(false) };
        self.window.resize(wanted, 0);
        let read = file.read_at(self.packet.0 + from, &mut self.window)?;
        self.window.truncate(read);
        self.window_from = from;
        Ok(from + read as u64 > had || had == 0 && read > 0)
    }

    fn text_bytes(&self, value: CtfValue) -> &[u8] {
        let CtfValue::Text(from, to) = value else { return &[] };
        let at = |byte: u64| usize::try_from(byte.saturating_sub(self.window_from)).ok();
        let bytes = at(from).zip(at(to)).and_then(|(from, to)| self.window.get(from..to));
        until_nul(bytes.unwrap_or_default())
    }
}
