//! The protobuf traces of Perfetto: packets, of which those with kernel events are read.

mod bundle;
mod compact;
mod descriptor;
mod messages;
mod packets;
mod wire;

use crate::TraceError;
use crate::decoder::Decoder;
use crate::reader::{FileStatements, Format, FormatReader};
use crate::rounds::PerfRounds;
use bundle::{BundleStatements, FtraceBundleReader};
use packets::PacketReader;
use punctual_core::event::{Event, Tid};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read;
use wire::Fields;

/// Whether a file has the first bytes of this format.
pub(crate) const FORMAT: Format = Format {
    word: "Perfetto",
    recognizes: packets::looks_like_packets,
    open: |input| Ok(Box::new(PerfettoReader::open(input.in_sequence())?)),
};

pub(crate) struct PerfettoReader {
    packets: PacketReader,
    bundles: FtraceBundleReader,
    rounds: PerfRounds,
    decoder: Decoder,
    read: VecDeque<Event>,
    /// The clock of ftrace (an FtraceClock), after the first bundle.
    clock: Option<u64>,
    /// The offset of the ftrace clock from CLOCK_BOOTTIME, and of that from CLOCK_MONOTONIC.
    from_boot: Option<i64>,
    boot_ahead: Option<i64>,
    /// Known writers of packets: the first packet of each states that some may be missing.
    writers: BTreeSet<u64>,
    /// The losses of each CPU when recording began, and those since.
    lost: BTreeMap<u16, (u64, u64)>,
    kernel: Option<String>,
    machine: Option<String>,
    version: Option<String>,
}

/// Limits for hostile files.
const MOST_WRITERS: usize = 1 << 16;
const MOST_CPUS: usize = 1 << 14;
const MOST_TEXT: usize = 1 << 12;
/// The number of events between two checks of the output.
const EVENTS_PER_CHECK: usize = 1024;
/// Clocks are read one after the other: readings this near are of the same clock.
const ONE_CLOCK: i64 = 10_000;

mod field {
    pub(super) const EVENTS: u32 = 1;
    pub(super) const PROCESSES: u32 = 2;
    pub(super) const CLOCKS: u32 = 6;
    pub(super) const WRITER: u32 = 10;
    pub(super) const STATISTICS: u32 = 34;
    pub(super) const BUFFERS: u32 = 35;
    pub(super) const DROPPED: u32 = 42;
    pub(super) const SYSTEM: u32 = 45;
}

impl PerfettoReader {
    /// Reads up to the first events, which follow a trace's statements about its clocks.
    fn open(from: Box<dyn Read>) -> Result<PerfettoReader, TraceError> {
        let mut reader = PerfettoReader {
            packets: PacketReader::new(from),
            bundles: FtraceBundleReader::default(),
            rounds: PerfRounds::default(),
            decoder: Decoder::default(),
            read: VecDeque::new(),
            clock: None,
            from_boot: None,
            boot_ahead: None,
            writers: BTreeSet::new(),
            lost: BTreeMap::new(),
            kernel: None,
            machine: None,
            version: None,
        };
        while reader.clock.is_none() && reader.read_packet()? {}
        if reader.clock.is_none() {
            return Err(TraceError::Unsupported(
                "this trace of Perfetto has no events of the kernel: record the data source \
                 linux.ftrace, as `punctual recipe perfetto` prints it"
                    .to_owned(),
            ));
        }
        Ok(reader)
    }

    fn read_packet(&mut self) -> Result<bool, TraceError> {
        let Some(packet) = self.packets.next()? else {
            self.rounds.complete_all();
            return Ok(false);
        };
        let mut fields = Fields::from_bytes(&packet);
        let (mut writer, mut dropped) = (0, false);
        let mut events = None;
        for (number, value) in fields.by_ref() {
            match number {
                field::EVENTS => events = Some(value.as_bytes()),
                field::PROCESSES => read_processes(value.as_bytes(), &mut self.decoder),
                field::CLOCKS => self.read_clocks(value.as_bytes()),
                field::WRITER => writer = value.as_number().unwrap_or(0),
                field::STATISTICS => self.read_statistics(value.as_bytes()),
                field::BUFFERS => self.read_buffer_losses(value.as_bytes()),
                field::DROPPED => dropped = value.as_number().is_some_and(|dropped| dropped != 0),
                field::SYSTEM => self.read_system(value.as_bytes()),
                _ => {}
            }
        }
        self.decoder.unreadable += u64::from(fields.damaged);
        let is_new = self.writers.len() < MOST_WRITERS && self.writers.insert(writer);
        if let Some(events) = events {
            let stated = BundleStatements::from_bundle(events);
            if self.clock.is_none() {
                self.clock = Some(stated.clock);
                self.from_boot = stated.instants.map(|(ftrace, boot)| ftrace.wrapping_sub(boot));
            }
            if dropped && !is_new {
                self.bundles.mark_dropped();
            }
            self.bundles.decode_bundle(events, &mut self.decoder, &mut self.read);
            self.rounds.add_events(&mut self.read);
        }
        Ok(true)
    }

    fn read_clocks(&mut self, snapshot: &[u8]) {
        let (mut boot, mut monotonic) = (None, None);
        for (number, clock) in Fields::from_bytes(snapshot) {
            if number != 1 {
                continue;
            }
            let number = |of: u32| {
                let found = Fields::from_bytes(clock.as_bytes()).find(|(field, _)| *field == of);
                found.and_then(|(_, value)| value.as_number())
            };
            let at = number(2).and_then(|at| i64::try_from(at).ok());
            match number(1) {
                Some(3) => monotonic = at,
                Some(6) => boot = at,
                _ => {}
            }
        }
        // A later one would include time in suspend.
        if let (None, Some(boot), Some(monotonic)) = (self.boot_ahead, boot, monotonic) {
            self.boot_ahead = Some(boot - monotonic);
        }
    }

    /// Reads each CPU's losses until recording began, or until it ended.
    fn read_statistics(&mut self, message: &[u8]) {
        let phase = Fields::from_bytes(message).find(|(number, _)| *number == 1);
        let at_end = phase.and_then(|(_, phase)| phase.as_number()) == Some(2);
        for (number, value) in Fields::from_bytes(message) {
            if number != 2 {
                continue;
            }
            let (mut cpu, mut lost) = (0, 0u64);
            for (number, value) in Fields::from_bytes(value.as_bytes()) {
                let count = value.as_number().unwrap_or(0);
                match number {
                    1 => cpu = count,
                    3 | 8 => lost = lost.saturating_add(count),
                    _ => {}
                }
            }
            let Ok(cpu) = u16::try_from(cpu) else { continue };
            if self.lost.contains_key(&cpu) || self.lost.len() < MOST_CPUS {
                let entry = self.lost.entry(cpu).or_default();
                *(if at_end { &mut entry.1 } else { &mut entry.0 }) = lost;
            }
        }
    }

    /// Losses of Perfetto's own buffers: TraceStats, the newest of which has all. Overwritten
    /// chunks are older than the trace, or a later packet reports them.
    fn read_buffer_losses(&mut self, message: &[u8]) {
        let mut lost = 0u64;
        for (number, value) in Fields::from_bytes(message) {
            let of_buffer = Fields::from_bytes(value.as_bytes());
            // chunks_discarded and trace_writer_packet_loss of each, chunks_discarded of all.
            let counts = of_buffer.filter(|(field, _)| number == 1 && [18, 19].contains(field));
            let counts = counts.chain((number == 8).then_some((number, value)));
            lost =
                counts.filter_map(|(_, count)| count.as_number()).fold(lost, u64::saturating_add);
        }
        self.decoder.lost_anywhere = self.decoder.lost_anywhere.max(lost);
    }

    fn read_system(&mut self, message: &[u8]) {
        let text = |bytes: &[u8]| {
            Some(String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_TEXT)]).into_owned())
        };
        for (number, value) in Fields::from_bytes(message) {
            match number {
                1 => {
                    for (number, value) in Fields::from_bytes(value.as_bytes()) {
                        match number {
                            3 => self.kernel = text(value.as_bytes()),
                            4 => self.machine = text(value.as_bytes()),
                            _ => {}
                        }
                    }
                }
                4 => self.version = text(value.as_bytes()),
                _ => {}
            }
        }
        if let Some(machine) = &self.machine {
            self.decoder.calls.set_machine(machine);
        }
    }

    fn report_losses(&mut self) {
        for (cpu, (before, after)) in &self.lost {
            self.decoder.lost_at_least(*cpu, after.saturating_sub(*before));
        }
        self.bundles.report_losses(&mut self.decoder);
        self.decoder.unreadable += std::mem::take(&mut self.packets.damaged);
        if self.packets.cut_off {
            self.decoder.cut_off("the file ends within a packet, or what follows is none");
        }
    }
}

/// Reads names and processes of threads.
fn read_processes(tree: &[u8], decoder: &mut Decoder) {
    for (number, thread) in Fields::from_bytes(tree) {
        if number != 2 {
            continue;
        }
        let (mut tid, mut process, mut name) = (None, None, &[][..]);
        for (number, value) in Fields::from_bytes(thread.as_bytes()) {
            let id = value.as_number().and_then(|id| u32::try_from(id).ok());
            match number {
                1 => tid = id,
                2 => name = value.as_bytes(),
                3 => process = id,
                _ => {}
            }
        }
        let Some(tid) = tid.map(Tid) else { continue };
        decoder.set_comm(tid, name);
        if let Some(process) = process {
            decoder.set_process(tid, process);
        }
    }
}

impl FormatReader for PerfettoReader {
    fn fill_events(&mut self, out: &mut VecDeque<Event>) -> Result<bool, TraceError> {
        while !self.rounds.emit_complete(EVENTS_PER_CHECK, out) && out.len() < EVENTS_PER_CHECK {
            if !self.read_packet()? && !self.rounds.emit_complete(EVENTS_PER_CHECK, out) {
                self.report_losses();
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    fn decoder_mut(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    fn file_statements(&self) -> FileStatements {
        let clock = match self.clock {
            None => None,
            Some(0) => Some("boot"),
            Some(2) => Some("global"),
            Some(3) => Some("local"),
            Some(4) => Some("mono_raw"),
            Some(_) => Some("unknown"),
        };
        FileStatements {
            producer: Some(self.version.clone().unwrap_or_else(|| "Perfetto".to_owned())),
            kernel: self.kernel.clone(),
            machine: self.machine.clone(),
            clock: clock.map(str::to_owned),
            ..FileStatements::default()
        }
    }

    fn clock_distance(&self) -> Option<i64> {
        let from_boot = match self.clock {
            Some(0) => 0,
            _ => self.from_boot?,
        };
        let distance = self.boot_ahead?.checked_add(from_boot)?;
        Some(if distance.abs() < ONE_CLOCK { 0 } else { distance })
    }
}
