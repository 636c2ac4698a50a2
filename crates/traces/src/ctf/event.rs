//! Converts the fields of an event to the values that its meaning needs.

use super::bits::CtfValue;
use super::layout::{NamedStructure, PacketStep};
use super::names::{EventMeaning, identify_event};
use super::types::Metadata;
use crate::decoder::{Decoder, Head};
use crate::meaning::{FieldEncoding, Meaning, SLOTS, Values, to_tid};
use crate::task_state::StateBits;
use punctual_core::MAX_RT_PRIO;
use punctual_core::event::Tid;
use std::collections::{HashMap, VecDeque};

/// The events of one id.
#[derive(Debug)]
pub(super) struct CtfEvent {
    pub(super) context: PacketStep,
    pub(super) fields: PacketStep,
    known: EventMeaning,
    /// Its index in the decoder; `None` beyond the limit.
    place: Option<usize>,
    slots: [Option<u32>; SLOTS],
    /// lttng-modules shifts priorities by MAX_RT_PRIO: real-time ones are negative.
    prio_from: i64,
    /// For a system call, two arguments or the result.
    call: [Option<u32>; 2],
    tid: Option<u32>,
    pub(super) cpu: Option<u32>,
    /// A task, its process and its name.
    task: [Option<u32>; 3],
}

/// The state of the machine while its events are read.
#[derive(Debug)]
pub(super) struct CtfMachine {
    state: StateBits,
    /// The running task of each CPU.
    pub(super) running: HashMap<u16, Tid>,
    /// The current call of a task, if an exit does not name it.
    entered: HashMap<Tid, u32>,
}

/// Limits for hostile files.
const MOST_TASKS: usize = 1 << 20;
const MOST_CPUS: usize = 1 << 14;

impl CtfEvent {
    /// `seen` are its own fields, its context, and that of all events of its stream.
    pub(super) fn new(
        name: &str,
        context: PacketStep,
        fields: PacketStep,
        seen: [&NamedStructure; 3],
        metadata: &Metadata,
        decoder: &mut Decoder,
    ) -> CtfEvent {
        let of_lttng = metadata.environment.get("tracer_name").is_none_or(|name| name != "perf");
        let [own, ..] = seen;
        let (system, shown, known) = identify_event(name);
        let place = decoder.intern_tracepoint(system.as_deref(), &shown);
        let place_of = |name: &str| match own.get(name) {
            Some(NamedStructure::Number(place, _) | NamedStructure::Text(place)) => Some(*place),
            _ => None,
        };
        let mut slots = [None; SLOTS];
        if let EventMeaning::Meaning(meaning) = known {
            for (slot, of) in slots.iter_mut().zip(meaning.slots()) {
                // In LTTng, `pid` is the process if `tid` exists, too.
                let (threads, others): (Vec<&str>, Vec<&str>) =
                    of.names.split('|').partition(|name| name.ends_with("tid"));
                let element = |name: &str| {
                    let (name, place) = name.strip_suffix(']')?.split_once('[')?;
                    own.get(name)?.number_place(place)
                };
                *slot = threads
                    .into_iter()
                    .chain(others)
                    .find_map(|name| place_of(name).or_else(|| element(name)));
            }
        }
        let numbers = own.named_fields().iter().filter_map(|(_, seen)| match seen {
            NamedStructure::Number(place, _) => Some(*place),
            _ => None,
        });
        let mut numbers = numbers.fuse();
        let ids = ["tid", "common_pid", "perf_tid"];
        let by_context = seen[1..].iter().find_map(|seen| seen.number_place("tid"));
        let task = match known {
            EventMeaning::Task => [place_of("tid"), place_of("pid"), place_of("name")],
            EventMeaning::Meaning(Meaning::Fork) if of_lttng => {
                [place_of("child_tid"), place_of("child_pid"), None]
            }
            _ => [None; 3],
        };
        CtfEvent {
            context,
            fields,
            place,
            slots,
            prio_from: if of_lttng { MAX_RT_PRIO.into() } else { 0 },
            call: match known {
                EventMeaning::Call(_) => [numbers.next(), numbers.next()],
                EventMeaning::ExitOfAny => [own.number_place("ret"), None],
                _ => [None; 2],
            },
            tid: by_context.or_else(|| ids[1..].iter().find_map(|name| own.number_place(name))),
            cpu: own.number_place("perf_cpu"),
            task,
            known,
        }
    }

    /// Takes an event: `text` returns the bytes of a text.
    pub(super) fn decode_event<'a>(
        &self,
        values: &[CtfValue],
        text: impl Fn(CtfValue) -> &'a [u8],
        mut head: Head,
        machine: &mut CtfMachine,
        decoder: &mut Decoder,
        out: &mut VecDeque<punctual_core::Event>,
    ) {
        let value =
            |place: Option<u32>| place.map_or(CtfValue::None, |place| values[place as usize]);
        let number = |place: Option<u32>| value(place).as_number();
        let Some(place) = self.place else {
            decoder.unreadable += 1;
            return;
        };
        head.tid = match self.tid {
            Some(_) => number(self.tid).and_then(to_tid),
            None => machine.running.get(&head.cpu).copied(),
        };
        if let Some(task) = number(self.task[0]).and_then(to_tid) {
            if let Some(process) = number(self.task[1]).and_then(to_tid) {
                decoder.set_process(task, process.0);
            }
            decoder.set_comm(task, text(value(self.task[2])));
        }
        match &self.known {
            EventMeaning::Meaning(meaning) => {
                let read = self.read_values(*meaning, &value, &text, machine);
                decoder.decode_record(place, *meaning, head, &read, out);
                if let (Meaning::Switch, Some(next)) = (meaning, read.numbers[5].and_then(to_tid)) {
                    machine.set_running(head.cpu, next);
                }
            }
            EventMeaning::Call(call) => {
                let mut read = Values::default();
                read.numbers[1] = number(self.call[0]);
                read.numbers[2] = number(self.call[1]);
                if let Some(tid) = head.tid.filter(|_| call.enter) {
                    let of_call = decoder.calls.number_of(&call.name);
                    machine.note_entry(tid, of_call);
                }
                decoder.take_call(place, None, &read, head, out);
            }
            EventMeaning::ExitOfAny => {
                let entered = head.tid.and_then(|tid| machine.entered.remove(&tid));
                let Some(entered) = entered else { return decoder.count_record(place, head) };
                let mut read = Values::default();
                read.numbers[0] = Some(entered.into());
                read.numbers[1] = number(self.call[0]);
                decoder.decode_record(place, Meaning::SyscallExit, head, &read, out);
            }
            EventMeaning::Task | EventMeaning::Other => decoder.count_record(place, head),
        }
    }

    fn read_values<'a>(
        &self,
        meaning: Meaning,
        value: &impl Fn(Option<u32>) -> CtfValue,
        text: &impl Fn(CtfValue) -> &'a [u8],
        machine: &CtfMachine,
    ) -> Values<'a> {
        let mut read = Values::default();
        for (slot, of) in meaning.slots().iter().enumerate() {
            let found = value(self.slots[slot]);
            let number = found.as_number();
            match of.form {
                // The flags of a request in lttng-modules: RWBS_FLAG_WRITE is the first.
                FieldEncoding::Text if number.is_some_and(|flags| flags & 1 != 0) => {
                    read.texts[slot] = b"W"
                }
                FieldEncoding::Comm | FieldEncoding::Text => read.texts[slot] = text(found),
                FieldEncoding::State => {
                    read.state = number.map(|bits| machine.state.decode_state(bits))
                }
                FieldEncoding::Number if of.names.ends_with("prio") => {
                    read.numbers[slot] = number.map(|prio| prio.saturating_add(self.prio_from));
                }
                FieldEncoding::Number | FieldEncoding::Pointer | FieldEncoding::Device => {
                    read.numbers[slot] = number
                }
            }
        }
        read
    }
}

impl CtfMachine {
    pub(super) fn new(state: StateBits) -> CtfMachine {
        CtfMachine { state, running: HashMap::new(), entered: HashMap::new() }
    }

    fn set_running(&mut self, cpu: u16, task: Tid) {
        if self.running.contains_key(&cpu) || self.running.len() < MOST_CPUS {
            self.running.insert(cpu, task);
        }
    }

    fn note_entry(&mut self, task: Tid, call: u32) {
        if self.entered.contains_key(&task) || self.entered.len() < MOST_TASKS {
            self.entered.insert(task, call);
        }
    }
}
