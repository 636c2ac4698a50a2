//! The events of one CPU in a packet: FtraceEventBundle.

use super::compact::{Compact, CompactRow};
use super::descriptor::{Described, parse_descriptor};
use super::messages::{KnownMessage, message};
use super::wire::{Fields, WireValue};
use crate::decoder::{Decoder, Head};
use crate::meaning::{FieldEncoding, Meaning, SLOTS, Values, to_tid};
use crate::task_state::StateBits;
use punctual_core::event::{Event, Tid};
use std::collections::{BTreeMap, VecDeque};

#[derive(Default, Debug)]
pub(super) struct FtraceBundleReader {
    state: StateBits,
    messages: BTreeMap<u32, Option<KnownMessage>>,
    described: BTreeMap<u32, Described>,
    cpus: BTreeMap<u16, CompactCpu>,
}

/// The running task of a CPU, which columns omit.
#[derive(Clone, Copy, Default, Debug)]
struct CompactCpu {
    running: Option<(i64, i64)>,
    /// Packets are missing before its next bundle.
    dropped: bool,
}

/// The maximum number of CPUs.
const MOST_CPUS: usize = 1 << 14;
/// More message numbers than the newest Perfetto has.
const MOST_MESSAGES: usize = 1 << 12;

/// A bundle's statements about itself.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct BundleStatements {
    pub(super) cpu: u16,
    pub(super) clock: u64,
    pub(super) instants: Option<(i64, i64)>,
    lost: bool,
    damaged: bool,
}

/// An event or a row, ordered by instant.
enum OrderedItem<'a> {
    Message(u32, &'a [u8], Option<Tid>),
    Switch(CompactRow<'a>),
    Waking(CompactRow<'a>),
}

impl BundleStatements {
    pub(super) fn from_bundle(bundle: &[u8]) -> BundleStatements {
        let (mut stated, mut ftrace, mut boot) = (BundleStatements::default(), None, None);
        let mut fields = Fields::from_bytes(bundle);
        for (number, value) in fields.by_ref() {
            let number_of = || value.as_number();
            match number {
                1 => stated.cpu = number_of().and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(0),
                3 => stated.lost = number_of().is_some_and(|lost| lost != 0),
                5 => stated.clock = number_of().unwrap_or(0),
                6 => ftrace = number_of().map(|at| at as i64),
                7 => boot = number_of().map(|at| at as i64),
                _ => {}
            }
        }
        stated.instants = ftrace.zip(boot);
        stated.damaged = fields.damaged;
        stated
    }
}

impl FtraceBundleReader {
    /// Packets are missing, possibly with events of any CPU.
    pub(super) fn mark_dropped(&mut self) {
        self.cpus.values_mut().for_each(|cpu| cpu.dropped = true);
    }

    /// Ends the input, with CPUs that had no further event.
    pub(super) fn report_losses(&mut self, decoder: &mut Decoder) {
        for (cpu, _) in self.cpus.iter().filter(|(_, cpu)| cpu.dropped) {
            decoder.lost_outside(*cpu, None);
        }
    }

    pub(super) fn decode_bundle(
        &mut self,
        bundle: &[u8],
        decoder: &mut Decoder,
        out: &mut VecDeque<Event>,
    ) {
        let stated = BundleStatements::from_bundle(bundle);
        decoder.unreadable += u64::from(stated.damaged);
        let mut compact = Compact::default();
        for (number, value) in Fields::from_bytes(bundle) {
            match number {
                4 => compact.add(value.as_bytes()),
                11 if self.described.len() < MOST_MESSAGES => {
                    self.described.extend(parse_descriptor(value.as_bytes(), decoder));
                }
                _ => {}
            }
        }
        let mut items = list_events(bundle, decoder);
        items.extend(compact.switch_rows().map(|row| (row.at, OrderedItem::Switch(row))));
        items.extend(compact.wakeup_rows().map(|row| (row.at, OrderedItem::Waking(row))));
        decoder.unreadable += compact.incomplete_rows();
        items.sort_by_key(|(at, _)| *at);
        let Some((first, _)) = items.first() else { return };
        let mut cpu = self.cpus.get(&stated.cpu).copied().unwrap_or_default();
        if stated.lost || std::mem::take(&mut cpu.dropped) {
            decoder.on_loss(stated.cpu, *first as i64, None, out);
            cpu.running = None;
        }
        for (at, item) in items {
            let head = Head { at: at as i64, cpu: stated.cpu, ..Head::default() };
            match item {
                OrderedItem::Message(number, message, task) => {
                    let head = Head { tid: task, ..head };
                    self.decode_message(number, message, head, &mut cpu, decoder, out);
                }
                OrderedItem::Switch(row) => self.decode_switch(row, head, &mut cpu, decoder, out),
                OrderedItem::Waking(row) => decode_waking(row, head, cpu, decoder, out),
            }
        }
        if self.cpus.contains_key(&stated.cpu) || self.cpus.len() < MOST_CPUS {
            self.cpus.insert(stated.cpu, cpu);
        }
    }

    fn decode_message(
        &mut self,
        number: u32,
        bytes: &[u8],
        head: Head,
        cpu: &mut CompactCpu,
        decoder: &mut Decoder,
        out: &mut VecDeque<Event>,
    ) {
        if number == GENERIC {
            return self.decode_generic(bytes, head, decoder, out);
        }
        if let Some(described) = self.described.get(&number).copied() {
            return match described.known {
                Some(known) => self.decode_known(known, bytes, head, cpu, decoder, out),
                None => decoder.count_record(described.place, head),
            };
        }
        if self.messages.len() >= MOST_MESSAGES && !self.messages.contains_key(&number) {
            decoder.unreadable += 1;
            return;
        }
        let found_message = *self.messages.entry(number).or_insert_with(|| {
            let message = message(number)?;
            message.known_message(decoder.intern_tracepoint(Some(message.system), message.name)?)
        });
        let Some(known) = found_message else {
            // Messages of other tracepoints have no name in the file.
            let name = format!("message {number}");
            if let Some(place) = decoder.intern_tracepoint(Some("perfetto"), &name) {
                decoder.count_record(place, head);
            }
            return;
        };
        self.decode_known(known, bytes, head, cpu, decoder, out);
    }

    /// A message with a meaning here.
    fn decode_known(
        &self,
        known: KnownMessage,
        bytes: &[u8],
        head: Head,
        cpu: &mut CompactCpu,
        decoder: &mut Decoder,
        out: &mut VecDeque<Event>,
    ) {
        let mut values = Values::default();
        let mut seen_counts = [0usize; SLOTS];
        let mut fields = Fields::from_bytes(bytes);
        for (field, value) in fields.by_ref() {
            for (slot, found) in known.slots.iter().enumerate() {
                let Some((_, element)) = found.filter(|(number, _)| *number == field) else {
                    continue;
                };
                if seen_counts[slot] == element {
                    self.put_value(known.meaning, slot, value, &mut values);
                }
                seen_counts[slot] += 1;
            }
        }
        decoder.unreadable += u64::from(fields.damaged);
        if known.meaning == Meaning::Switch {
            cpu.running = values.numbers[5].zip(values.numbers[6]);
        }
        decoder.decode_record(known.place, known.meaning, head, &values, out);
    }

    fn put_value<'a>(
        &self,
        meaning: Meaning,
        slot: usize,
        value: WireValue<'a>,
        values: &mut Values<'a>,
    ) {
        match meaning.slots()[slot].form {
            FieldEncoding::Comm | FieldEncoding::Text => values.texts[slot] = value.as_bytes(),
            FieldEncoding::State => {
                values.state = value.as_number().map(|bits| self.state.decode_state(bits as i64));
            }
            _ => values.numbers[slot] = value.as_number().map(|number| number as i64),
        }
    }

    /// A tracepoint without a message of its own: field names are stored with their values.
    fn decode_generic(
        &self,
        bytes: &[u8],
        head: Head,
        decoder: &mut Decoder,
        out: &mut VecDeque<Event>,
    ) {
        let mut name = None;
        let fields = || {
            Fields::from_bytes(bytes)
                .filter(|(number, _)| *number == 2)
                .map(|(_, value)| value.as_bytes())
        };
        for (number, value) in Fields::from_bytes(bytes) {
            if number == 1 {
                name = std::str::from_utf8(value.as_bytes()).ok();
            }
        }
        let Some(place) = name.and_then(|name| decoder.intern_tracepoint(None, name)) else {
            decoder.unreadable += 1;
            return;
        };
        let Some(meaning) = decoder.tracepoint_at(place).meaning else {
            return decoder.count_record(place, head);
        };
        let mut values = Values::default();
        for field in fields() {
            let (mut key, mut value) = (&[][..], None);
            for (number, found) in Fields::from_bytes(field) {
                match number {
                    1 => key = found.as_bytes(),
                    3..=5 => value = Some(found),
                    _ => {}
                }
            }
            let is_it = |names: &str| names.split('|').any(|name| name.as_bytes() == key);
            let slot = meaning.slots().iter().position(|slot| is_it(slot.names));
            if let (Some(slot), Some(value)) = (slot, value) {
                self.put_value(meaning, slot, value, &mut values);
            }
        }
        decoder.decode_record(place, meaning, head, &values, out);
    }

    fn decode_switch(
        &self,
        row: CompactRow<'_>,
        head: Head,
        cpu: &mut CompactCpu,
        decoder: &mut Decoder,
        out: &mut VecDeque<Event>,
    ) {
        if let Some(next) = to_tid(row.task) {
            decoder.set_comm(next, row.name);
        }
        let Some(place) = decoder.intern_tracepoint(Some("sched"), "sched_switch") else { return };
        let Some((prev, prio)) = cpu.running.replace((row.task, row.prio)) else {
            // The task left by the very first switch is not recorded.
            return decoder.count_record(place, head);
        };
        let mut values = Values::default();
        values.numbers[1] = Some(prev);
        values.numbers[2] = Some(prio);
        values.state = Some(self.state.decode_state(row.other));
        (values.numbers[5], values.numbers[6]) = (Some(row.task), Some(row.prio));
        values.texts[4] = row.name;
        decoder.decode_record(place, Meaning::Switch, head, &values, out);
    }
}

/// The columns omit the waker: it is the running task.
fn decode_waking(
    row: CompactRow<'_>,
    head: Head,
    cpu: CompactCpu,
    decoder: &mut Decoder,
    out: &mut VecDeque<Event>,
) {
    let Some(place) = decoder.intern_tracepoint(Some("sched"), "sched_waking") else { return };
    let head = Head { tid: cpu.running.and_then(|(running, _)| to_tid(running)), ..head };
    let mut values = Values::default();
    values.texts[0] = row.name;
    values.numbers[1] = Some(row.task);
    values.numbers[2] = Some(row.prio);
    values.numbers[3] = Some(row.other);
    decoder.decode_record(place, Meaning::Waking, head, &values, out);
}

const GENERIC: u32 = 327;

/// The events that a bundle holds as messages.
fn list_events<'a>(bundle: &'a [u8], decoder: &mut Decoder) -> Vec<(u64, OrderedItem<'a>)> {
    let mut items = Vec::new();
    for (number, event) in Fields::from_bytes(bundle) {
        if number != 2 {
            continue;
        }
        let (mut at, mut task, mut found) = (None, None, None);
        let mut fields = Fields::from_bytes(event.as_bytes());
        for (number, value) in fields.by_ref() {
            match (number, value) {
                (1, WireValue::Number(number)) => at = Some(number),
                (2, WireValue::Number(number)) => task = to_tid(number as u32 as i32 as i64),
                (3.., WireValue::Bytes(message)) => found = Some((number, message)),
                _ => {}
            }
        }
        match (at, found) {
            (Some(at), Some((number, message))) if !fields.damaged && at < 1 << 63 => {
                items.push((at, OrderedItem::Message(number, message, task)));
            }
            _ => decoder.unreadable += 1,
        }
    }
    items
}
