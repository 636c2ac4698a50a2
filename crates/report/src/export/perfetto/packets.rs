//! Packets of the trace, and names that are written once and then referred to by number.

use super::MONOTONIC;
use super::wire::MessageWriter;
use std::collections::HashMap;
use std::io::{self, Write};

/// Track events share a sequence, because interned numbers are valid within one.
const TRACK_EVENTS: u64 = 1;
const OTHERS: u64 = 2;
/// sequence_flags: interned numbers are reset.
const STATE_CLEARED: u64 = 1;
/// sequence_flags: this packet needs earlier ones.
const NEEDS_STATE: u64 = 2;
/// Names beyond this many are written in full each time: untrusted names cannot exhaust memory.
const MAX_INTERNED: usize = 100_000;

pub struct PacketWriter<'w> {
    out: &'w mut dyn Write,
    packet: MessageWriter,
    frame: MessageWriter,
    begun: bool,
    names: HashMap<String, u64>,
    details: HashMap<&'static str, u64>,
}

/// How a name is written: by number, or in full.
#[derive(Clone, Copy)]
pub enum NameField<'n> {
    /// Its number; and whether this packet must define it.
    Number(u64, bool),
    Text(&'n str),
}

impl<'w> PacketWriter<'w> {
    pub fn new(out: &'w mut dyn Write) -> PacketWriter<'w> {
        PacketWriter {
            out,
            packet: MessageWriter::default(),
            frame: MessageWriter::default(),
            begun: false,
            names: HashMap::new(),
            details: HashMap::new(),
        }
    }

    /// A packet outside of the sequence.
    pub(crate) fn write_packet(
        &mut self,
        write: impl FnOnce(&mut MessageWriter),
    ) -> io::Result<()> {
        self.packet.clear();
        self.packet.write_uint(10, OTHERS);
        write(&mut self.packet);
        self.flush()
    }

    /// A packet of the sequence of track events.
    pub(crate) fn track_packet(
        &mut self,
        write: impl FnOnce(&mut MessageWriter),
    ) -> io::Result<()> {
        if !self.begun {
            self.begun = true;
            self.packet.clear();
            self.packet.write_uint(10, TRACK_EVENTS).write_uint(13, STATE_CLEARED);
            // All timestamps of this sequence use this clock.
            self.packet.write_message(59, |defaults| {
                defaults.write_uint(58, MONOTONIC);
            });
            self.flush()?;
        }
        self.packet.clear();
        self.packet.write_uint(10, TRACK_EVENTS).write_uint(13, NEEDS_STATE);
        write(&mut self.packet);
        self.flush()
    }

    /// How to write the name of an event.
    pub fn intern_name<'n>(&mut self, name: &'n str) -> NameField<'n> {
        if let Some(number) = self.names.get(name) {
            return NameField::Number(*number, false);
        }
        if self.names.len() >= MAX_INTERNED {
            return NameField::Text(name);
        }
        let number = self.names.len() as u64 + 1;
        self.names.insert(name.to_owned(), number);
        NameField::Number(number, true)
    }

    /// The number of a detail's name, and whether it is new.
    pub(crate) fn intern_detail(&mut self, name: &'static str) -> (u64, bool) {
        let next = self.details.len() as u64 + 1;
        let number = *self.details.entry(name).or_insert(next);
        (number, number == next)
    }

    /// A trace is a message whose packets are field 1.
    fn flush(&mut self) -> io::Result<()> {
        self.frame.clear();
        self.frame.write_delimited(1, self.packet.as_bytes());
        self.out.write_all(self.frame.as_bytes())
    }
}
