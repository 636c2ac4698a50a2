//! perf.data, as a file or from the pipe of `perf record -o -`.

mod attr;
mod head;
mod packed;
mod records;
mod switches;
mod window;

use crate::bytes::ByteOrder;
use crate::dat::lines_of_tasks;
use crate::decoder::{Decoder, Head};
use crate::input::{Input, Sequential};
use crate::reader::{FileStatements, Format, FormatReader};
use crate::rounds::PerfRounds;
use crate::{ReadAt, TraceError};
use attr::RecordLayout;
use head::PerfHead;
use punctual_core::event::{Event, Tid};
use records::{PerfRecord, Records, kind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read;
use switches::Switches;

/// Whether a file has the first bytes of this format.
pub(crate) const FORMAT: Format = Format {
    word: "perf.data",
    recognizes: |head| head::detect_order(head).is_some(),
    open: |input| {
        Ok(Box::new(match input {
            Input::File(file) => PerfReader::open(file)?,
            Input::Pipe(pipe) => PerfReader::open_stream(pipe)?,
        }))
    },
};

pub(crate) struct PerfReader {
    head: PerfHead,
    records: Records,
    rounds: PerfRounds,
    decoder: Decoder,
    read: VecDeque<Event>,
    /// Events of each CPU that perf reports as lost at the end.
    lost: BTreeMap<u16, u64>,
    /// CPUs whose events are currently throttled.
    throttled: BTreeSet<u16>,
    prepared: bool,
    /// Of a file without tracepoints.
    switches: Option<Switches>,
}

/// The number of events between two checks of the output.
const EVENTS_PER_CHECK: usize = 1024;
/// The maximum number of CPUs.
const MOST_CPUS: usize = 1 << 14;

impl PerfReader {
    fn open(file: Box<dyn ReadAt>) -> Result<PerfReader, TraceError> {
        let (head, data) = PerfHead::read(&*file)?;
        let records = Box::new(Sequential { file, at: data.at }.take(data.size));
        let mut reader = PerfReader::with_records(head, records);
        if reader.head.formats.is_some() {
            reader.prepare_decoder()?;
            Ok(reader)
        } else if reader.head.attrs.is_empty() {
            reader.read_prologue()
        } else if reader.head.attrs.iter().any(RecordLayout::shows_switches) {
            (reader.switches, reader.prepared) = (Some(Switches::default()), true);
            Ok(reader)
        } else {
            Err(without_tracepoints())
        }
    }

    /// Reads a pipe from its first byte.
    fn open_stream(mut stream: Box<dyn Read>) -> Result<PerfReader, TraceError> {
        let mut bytes = [0; head::PIPE_HEAD as usize];
        stream.read_exact(&mut bytes)?;
        let order = head::detect_order(&bytes).unwrap_or_default();
        if order.unsigned_at(&bytes, 8, 8) != Some(head::PIPE_HEAD) {
            return Err(TraceError::NotStreamable(crate::TraceFormat::PerfData));
        }
        PerfReader::with_records(PerfHead::new(order), stream).read_prologue()
    }

    /// Reads up to the first sample, which follows a pipe's statements about itself.
    fn read_prologue(mut self) -> Result<PerfReader, TraceError> {
        while !self.prepared && self.read_record()? {}
        if !self.prepared {
            self.prepare_decoder()?;
        }
        Ok(self)
    }

    fn with_records(head: PerfHead, records: Box<dyn Read>) -> PerfReader {
        PerfReader {
            records: Records::new(records, head.order),
            head,
            rounds: PerfRounds::default(),
            decoder: Decoder::default(),
            read: VecDeque::new(),
            lost: BTreeMap::new(),
            throttled: BTreeSet::new(),
            prepared: false,
            switches: None,
        }
    }

    fn clock_id(&self) -> Option<i32> {
        self.head.attrs.iter().find(|attr| attr.is_tracepoint()).and_then(|attr| attr.clock_id())
    }

    /// Passes the state before the first sample to the decoder.
    fn prepare_decoder(&mut self) -> Result<(), TraceError> {
        self.prepared = true;
        let formats = self.head.formats.as_mut().ok_or_else(without_tracepoints)?;
        if let Some(arch) = &self.head.arch {
            self.decoder.calls.set_machine(arch);
        }
        for (tid, name) in lines_of_tasks(&self.head.comms) {
            self.decoder.set_comm(tid, name);
        }
        for attr in self.head.attrs.iter().filter(|attr| attr.is_tracepoint()) {
            let layout =
                u16::try_from(attr.config).ok().and_then(|id| formats.layouts.get_mut(&id));
            if let Some(layout) = layout {
                layout.mark_enabled(&mut self.decoder);
            }
        }
        Ok(())
    }
}

/// Takes one record after the other.
impl PerfReader {
    fn read_record(&mut self) -> Result<bool, TraceError> {
        let order = self.head.order;
        match self.records.next().map_err(head::unreadable_error)? {
            None => {
                self.rounds.complete_all();
                return Ok(false);
            }
            Some(PerfRecord::RoundEnds) => self.rounds.on_round_end(),
            Some(PerfRecord::RoundComplete) => self.rounds.on_round_complete(),
            Some(PerfRecord::TracingData(bytes)) => self.head.tracing_data(&bytes)?,
            Some(PerfRecord::Of(kind, record)) => {
                let payload = record.get(8..).unwrap_or_default();
                match kind {
                    kind::ATTR => self.head.add_of_record(payload),
                    kind::FEATURE => {
                        let feature = order.unsigned_at(payload, 0, 8).unwrap_or(0);
                        self.head.read_feature(feature, payload.get(8..).unwrap_or_default());
                    }
                    kind::SAMPLE => {
                        if !self.prepared {
                            let record = record.to_owned();
                            self.prepare_decoder()?;
                            decode_sample(
                                &mut self.head,
                                &mut self.decoder,
                                &record,
                                &mut self.read,
                            );
                        } else {
                            decode_sample(
                                &mut self.head,
                                &mut self.decoder,
                                record,
                                &mut self.read,
                            );
                        }
                        self.rounds.add_events(&mut self.read);
                    }
                    kind::ID_INDEX => self.head.id_index(payload),
                    kind::COMM | kind::FORK => decode_task(kind, payload, order, &mut self.decoder),
                    kind::LOST | kind::LOST_SAMPLES | kind::THROTTLE | kind::UNTHROTTLE => {
                        decode_loss(
                            kind,
                            record,
                            &self.head,
                            &mut self.decoder,
                            (&mut self.lost, &mut self.throttled),
                            &mut self.read,
                        );
                        self.rounds.add_events(&mut self.read);
                    }
                    kind::SWITCH | kind::SWITCH_CPU_WIDE if self.switches.is_some() => {
                        let attr = self.head.find_attr(|attr| attr.id_of_other(record, order));
                        if let Some((switches, attr)) = self.switches.as_mut().zip(attr) {
                            switches.add_switch(record, attr, order, &mut self.decoder);
                        }
                    }
                    kind if kind::is_known(kind) => {}
                    _ => self.decoder.unreadable += 1,
                }
            }
        }
        Ok(true)
    }

    fn report_losses(&mut self) {
        if let Some(mut switches) = self.switches.take() {
            switches.add_moments(&mut self.decoder);
        }
        for (cpu, lost) in &self.lost {
            self.decoder.lost_at_least(*cpu, *lost);
        }
        for cpu in std::mem::take(&mut self.throttled) {
            self.decoder.lost_outside(cpu, None);
        }
        if self.records.cut_off || self.head.cut_off {
            self.decoder.cut_off("the perf.data ends within a record or a part of its end");
        }
    }
}

fn decode_sample(
    head: &mut PerfHead,
    decoder: &mut Decoder,
    record: &[u8],
    out: &mut VecDeque<Event>,
) {
    let order = head.order;
    let Some(attr) = head.find_attr(|attr| attr.id_of_sample(record, order)).copied() else {
        return;
    };
    if !attr.is_tracepoint() {
        return;
    }
    let Some(sample) = attr.read_sample(record, order) else {
        decoder.unreadable += 1;
        return;
    };
    let raw = &record[sample.raw.0..sample.raw.1];
    let id = order.unsigned_at(raw, 0, 2).map(|id| id as u16);
    let layouts = head.formats.as_mut().map(|formats| &mut formats.layouts);
    // The thread is in the record itself: perf's number is that of its own PID namespace.
    let place = Head { at: sample.at, cpu: sample.cpu, ..Head::default() };
    match layouts.zip(id).and_then(|(layouts, id)| layouts.get_mut(&id)) {
        Some(layout) => layout.decode_record(raw, order, place, decoder, out),
        None => decoder.unreadable += 1,
    }
}

/// Reads a name, or the process of a new thread.
fn decode_task(kind: u32, payload: &[u8], order: ByteOrder, decoder: &mut Decoder) {
    let number = |at| order.unsigned_at(payload, at, 4).map(|number| number as u32);
    let (Some(process), Some(second), third) = (number(0), number(4), number(8)) else { return };
    match (kind, third) {
        (kind::FORK, Some(tid)) => decoder.set_process(Tid(tid), process),
        (kind::COMM, _) => {
            decoder.set_process(Tid(second), process);
            let name = payload.get(8..).unwrap_or_default();
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
            decoder.set_comm(Tid(second), &name[..end]);
        }
        _ => {}
    }
}

fn decode_loss(
    kind: u32,
    record: &[u8],
    head: &PerfHead,
    decoder: &mut Decoder,
    (in_all, throttled): (&mut BTreeMap<u16, u64>, &mut BTreeSet<u16>),
    out: &mut VecDeque<Event>,
) {
    let order = head.order;
    let Some(attr) = head.find_attr(|attr| attr.id_of_other(record, order)) else { return };
    let place = attr.read_place(record, order);
    let cpu = place.cpu.unwrap_or(0);
    match (kind, place.at) {
        (kind::LOST, at) => match (order.unsigned_at(record, 16, 8), at) {
            (Some(count), Some(at)) => decoder.on_loss(cpu, at, Some(count), out),
            (count, _) => decoder.lost_outside(cpu, count),
        },
        // perf states at the end the total loss of each event, including losses reported by the
        // kernel. The CPU of these records is 0.
        (kind::LOST_SAMPLES, _) if attr.is_tracepoint() && in_all.len() < MOST_CPUS => {
            let of_id = attr.id_of_other(record, order).and_then(|id| head.cpu_of(id));
            let sum = in_all.entry(of_id.unwrap_or(cpu)).or_default();
            *sum = sum.saturating_add(order.unsigned_at(record, 8, 8).unwrap_or(0));
        }
        (kind::THROTTLE, _) if throttled.len() < MOST_CPUS => {
            throttled.insert(cpu);
        }
        (kind::UNTHROTTLE, Some(at)) => {
            throttled.remove(&cpu);
            decoder.on_loss(cpu, at, None, out);
        }
        _ => {}
    }
}

fn without_tracepoints() -> TraceError {
    TraceError::Unsupported(
        "this perf.data holds no tracepoints: record as `punctual recipe perf` prints it"
            .to_owned(),
    )
}

impl FormatReader for PerfReader {
    fn fill_events(&mut self, out: &mut VecDeque<Event>) -> Result<bool, TraceError> {
        while !self.rounds.emit_complete(EVENTS_PER_CHECK, out) && out.len() < EVENTS_PER_CHECK {
            if !self.read_record()? && !self.rounds.emit_complete(EVENTS_PER_CHECK, out) {
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
        let clock = match self.clock_id() {
            None => "perf".to_owned(),
            Some(number) => libc_clock::clock_name(number),
        };
        FileStatements {
            producer: Some(match &self.head.version {
                Some(version) => format!("perf {version}"),
                None => "perf".to_owned(),
            }),
            kernel: self.head.release.clone(),
            machine: self.head.arch.clone(),
            clock: Some(clock),
            resolution: None,
            states_enabled: true,
            findings: Vec::new(),
        }
    }

    fn clock_distance(&self) -> Option<i64> {
        (self.clock_id() == Some(libc_clock::MONOTONIC)).then_some(0)
    }
}

/// Clocks of clock_gettime(2).
mod libc_clock {
    pub(super) const MONOTONIC: i32 = 1;

    pub(super) fn clock_name(number: i32) -> String {
        match number {
            0 => "realtime".to_owned(),
            MONOTONIC => "monotonic".to_owned(),
            4 => "monotonic-raw".to_owned(),
            7 => "boottime".to_owned(),
            11 => "tai".to_owned(),
            _ => format!("clock {number}"),
        }
    }
}
