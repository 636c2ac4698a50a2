//! Converts the fields of a binary record to the values that its meaning needs, by its format.

use crate::bytes::ByteOrder;
use crate::decoder::{Decoder, Head};
use crate::format::{FieldPosition, RecordFormat};
use crate::graph::{GraphCall, GraphLine};
use crate::meaning::{FieldEncoding, Meaning, SLOTS, Values, to_tid};
use crate::task_state::StateBits;
use punctual_core::event::{CpuContext, Event};
use std::collections::VecDeque;

/// A kind of record that a tracer writes by itself (kernel/trace/trace_entries.h), not a
/// tracepoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tracer {
    Function,
    Stack,
    GraphEntry,
    GraphExit,
    Timerlat,
    Hwlat,
}

impl Tracer {
    /// The kind, and the fields that are read.
    fn from_name(system: &str, name: &str) -> Option<(Tracer, &'static [&'static str])> {
        Some(match name {
            _ if system != "ftrace" => return None,
            "function" => (Tracer::Function, &["ip", "parent_ip"]),
            "kernel_stack" => (Tracer::Stack, &["size", "caller"]),
            "funcgraph_entry" => (Tracer::GraphEntry, &["func"]),
            "funcgraph_exit" => (Tracer::GraphExit, &["calltime", "rettime"]),
            "timerlat" => (Tracer::Timerlat, &["seqnum", "context", "timer_latency"]),
            "hwlat" => (Tracer::Hwlat, &["seqnum", "duration", "outer_duration"]),
            _ => return None,
        })
    }
}

/// Functions of a stack that are kept.
const FRAMES: usize = 64;

/// A tracepoint whose records are read.
#[derive(Debug)]
pub(crate) struct TracepointLayout {
    system: String,
    name: String,
    meaning: Option<Meaning>,
    tracer: Option<Tracer>,
    /// The bytes of the kernel's long.
    long: usize,
    fields: [Option<FieldPosition>; SLOTS],
    /// For a system call traced by name: its number, two arguments or the result.
    call: [Option<FieldPosition>; 3],
    pid: Option<FieldPosition>,
    /// The common flags and preemption depth, and the function named by the record.
    context: [Option<FieldPosition>; 2],
    site: Option<FieldPosition>,
    state: StateBits,
    /// The records of the wakeup tracers have the place of a state's letter, not its bit.
    counts_states: bool,
    /// Its index in the decoder, once a record was seen.
    place: Option<Option<usize>>,
}

impl TracepointLayout {
    pub(crate) fn new(system: &str, format: &RecordFormat, long: usize) -> TracepointLayout {
        let meaning = Meaning::from_tracepoint(Some(system), &format.name);
        let mut fields = [None; SLOTS];
        for (place, slot) in meaning.map_or(&[][..], Meaning::slots).iter().enumerate() {
            fields[place] = slot.names.split('|').find_map(|name| format.find_field(name));
        }
        let tracer = Tracer::from_name(system, &format.name);
        for (place, name) in tracer.map_or(&[][..], |(_, names)| names).iter().enumerate() {
            fields[place] = format.find_field(name);
        }
        let mut argument_fields = format.own_fields().filter(|(name, _)| !is_number_of_call(name));
        let number = ["__syscall_nr", "nr"].iter().find_map(|name| format.find_field(name));
        let call = [
            number,
            argument_fields.next().map(|(_, field)| field),
            argument_fields.next().map(|(_, field)| field),
        ];
        TracepointLayout {
            system: system.to_owned(),
            name: format.name.clone(),
            meaning,
            tracer: tracer.map(|(tracer, _)| tracer),
            long,
            fields,
            call,
            pid: format.find_field("common_pid"),
            context: ["common_flags", "common_preempt_count"].map(|name| format.find_field(name)),
            site: ["call_site", "caller_offs"].iter().find_map(|name| format.find_field(name)),
            state: match meaning {
                Some(Meaning::Switch) => StateBits::of_print_format(&format.print),
                _ => StateBits::default(),
            },
            counts_states: system == "ftrace",
            place: None,
        }
    }

    /// Adds the tracepoint as enabled, even without records.
    pub(crate) fn mark_enabled(&mut self, decoder: &mut Decoder) {
        let (system, name) = (&self.system, &self.name);
        self.place.get_or_insert_with(|| decoder.intern_tracepoint(Some(system), name));
    }

    /// Takes a record; without a thread in `head`, that of the record's common fields is used.
    pub(crate) fn decode_record(
        &mut self,
        record: &[u8],
        order: ByteOrder,
        mut head: Head,
        decoder: &mut Decoder,
        out: &mut VecDeque<Event>,
    ) {
        let (system, name) = (&self.system, &self.name);
        let place = self.place.get_or_insert_with(|| decoder.intern_tracepoint(Some(system), name));
        let Some(place) = *place else {
            decoder.unreadable += 1;
            return;
        };
        if head.tid.is_none() {
            head.tid = self.pid.and_then(|pid| pid.read_number(record, order)).and_then(to_tid);
        }
        let byte =
            |field: Option<FieldPosition>| field.and_then(|field| field.read_number(record, order));
        if let [Some(flags), count] = self.context.map(byte) {
            let count = count.unwrap_or_default();
            head.context = Some(CpuContext::of_record(flags as u8, count as u8));
            head.site = byte(self.site).unwrap_or_default() as u64;
        }
        if let Some(tracer) = self.tracer {
            return self.take_of_tracer(tracer, place, (record, order), head, decoder, out);
        }
        let Some(meaning) = self.meaning else {
            if decoder.tracepoint_at(place).call.is_some() {
                self.take_call(place, record, order, head, decoder, out);
            } else {
                decoder.pass_with_context(place, head, out);
            }
            return;
        };
        let mut values = Values::default();
        for (slot, (form, field)) in
            meaning.slots().iter().map(|slot| slot.form).zip(&self.fields).enumerate()
        {
            let Some(field) = field else { continue };
            match form {
                FieldEncoding::Comm | FieldEncoding::Text => {
                    values.texts[slot] = field.read_text(record, order)
                }
                FieldEncoding::State => {
                    let bits =
                        field.read_number(record, order).map(|bits| match self.counts_states {
                            true => 1i64.checked_shl(bits as u32).unwrap_or(0) >> 1,
                            false => bits,
                        });
                    values.state = bits.map(|bits| self.state.decode_state(bits));
                }
                FieldEncoding::Number | FieldEncoding::Pointer | FieldEncoding::Device => {
                    values.numbers[slot] = field.read_number(record, order);
                }
            }
        }
        decoder.decode_record(place, meaning, head, &values, out);
    }

    /// Whether its records have addresses of functions, whose names are needed with them.
    pub(crate) fn names_functions(&self) -> bool {
        self.tracer.is_some_and(|tracer| !matches!(tracer, Tracer::Timerlat | Tracer::Hwlat))
    }

    fn take_of_tracer(
        &self,
        tracer: Tracer,
        place: usize,
        (record, order): (&[u8], ByteOrder),
        head: Head,
        decoder: &mut Decoder,
        out: &mut VecDeque<Event>,
    ) {
        let number = |slot: usize| self.fields[slot].and_then(|of| of.read_number(record, order));
        let (first, second) = (number(0).unwrap_or(0), number(1).unwrap_or(0));
        let task = head.tid.map(|tid| ("", tid.0));
        let call = GraphLine {
            at: Some(head.at),
            cpu: head.cpu,
            task,
            took: None,
            what: GraphCall::Other,
        };
        match tracer {
            Tracer::Function => {
                let called = decoder.function_at(first as u64);
                let site = format!("{called} ‹ {}", decoder.function_at(second as u64));
                let site = decoder.intern_name(site.as_bytes()).unwrap_or_default() as u64;
                return decoder.on_function_line(place, Head { site, ..head }, out);
            }
            Tracer::Stack => {
                let from = self.fields[1].map_or(record.len(), |field| field.offset);
                let addresses = record.get(from..).unwrap_or_default().chunks_exact(self.long);
                let count = usize::try_from(first).unwrap_or(0).min(FRAMES);
                let frames: Vec<Vec<u8>> = addresses
                    .take(count)
                    .map(|address| decoder.function_at(order.read_unsigned(address)).into_bytes())
                    .collect();
                decoder.on_stack(&frames, head, out);
            }
            Tracer::GraphEntry => {
                let name = decoder.function_at(first as u64);
                decoder.graph.on_line(&GraphLine { what: GraphCall::Enter(&name), ..call });
            }
            Tracer::GraphExit => {
                let took = second.checked_sub(first).filter(|took| *took >= 0);
                let at = took.and_then(|took| head.at.checked_sub(took));
                decoder.graph.on_line(&GraphLine { at, took, what: GraphCall::Leave, ..call });
            }
            Tracer::Timerlat => {
                let context = if second == 1 { "thread" } else { "irq" };
                let took = number(2).unwrap_or(-1);
                let text = format!("#{first} context {context} timer_latency {took} ns");
                decoder.marks.line_of_tracer(head, text.as_bytes());
            }
            Tracer::Hwlat => {
                let outer = number(2).unwrap_or(0);
                let text = format!("#{first} inner/outer(us): {second}/{outer}");
                decoder.marks.line_of_tracer(head, text.as_bytes());
            }
        }
        decoder.count_record(place, head);
    }

    fn take_call(
        &self,
        place: usize,
        record: &[u8],
        order: ByteOrder,
        head: Head,
        decoder: &mut Decoder,
        out: &mut VecDeque<Event>,
    ) {
        let number =
            |field: Option<FieldPosition>| field.and_then(|field| field.read_number(record, order));
        let mut values = Values::default();
        values.numbers[1] = number(self.call[1]);
        values.numbers[2] = number(self.call[2]);
        let call = number(self.call[0]).and_then(|number| u32::try_from(number).ok());
        decoder.take_call(place, call, &values, head, out);
    }
}

/// System calls traced by name have the number as a field beside their arguments.
fn is_number_of_call(name: &str) -> bool {
    matches!(name, "__syscall_nr" | "nr")
}
