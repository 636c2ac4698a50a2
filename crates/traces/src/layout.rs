//! Converts the fields of a binary record to the values that its meaning needs, by its format.

use crate::bytes::ByteOrder;
use crate::decoder::{Decoder, Head};
use crate::format::{Field, Format};
use crate::meaning::{Form, Meaning, SLOTS, Values, tid};
use crate::task_state::StateBits;
use punctual_core::event::{CpuContext, Event};
use std::collections::VecDeque;

/// A tracepoint whose records are read.
#[derive(Debug)]
pub(crate) struct Layout {
    system: String,
    name: String,
    meaning: Option<Meaning>,
    fields: [Option<Field>; SLOTS],
    /// For a system call traced by name: its number, two arguments or the result.
    call: [Option<Field>; 3],
    pid: Option<Field>,
    /// The common flags and preemption depth, and the function named by the record.
    context: [Option<Field>; 2],
    site: Option<Field>,
    state: StateBits,
    /// Its index in the decoder, once a record was seen.
    place: Option<Option<usize>>,
}

impl Layout {
    pub(crate) fn new(system: &str, format: &Format) -> Layout {
        let meaning = Meaning::of(Some(system), &format.name);
        let mut fields = [None; SLOTS];
        for (place, slot) in meaning.map_or(&[][..], Meaning::slots).iter().enumerate() {
            fields[place] = slot.names.split('|').find_map(|name| format.field(name));
        }
        let mut own = format.own_fields().filter(|(name, _)| !is_number_of_call(name));
        let number = ["__syscall_nr", "nr"].iter().find_map(|name| format.field(name));
        let call = [number, own.next().map(|(_, field)| field), own.next().map(|(_, field)| field)];
        Layout {
            system: system.to_owned(),
            name: format.name.clone(),
            meaning,
            fields,
            call,
            pid: format.field("common_pid"),
            context: ["common_flags", "common_preempt_count"].map(|name| format.field(name)),
            site: ["call_site", "caller_offs"].iter().find_map(|name| format.field(name)),
            state: match meaning {
                Some(Meaning::Switch) => StateBits::of_print_format(&format.print),
                _ => StateBits::default(),
            },
            place: None,
        }
    }

    /// Adds the tracepoint as enabled, even without records.
    pub(crate) fn was_on(&mut self, decoder: &mut Decoder) {
        let (system, name) = (&self.system, &self.name);
        self.place.get_or_insert_with(|| decoder.tracepoint(Some(system), name));
    }

    /// Takes a record; without a thread in `head`, that of the record's common fields is used.
    pub(crate) fn take(
        &mut self,
        record: &[u8],
        order: ByteOrder,
        mut head: Head,
        decoder: &mut Decoder,
        out: &mut VecDeque<Event>,
    ) {
        let (system, name) = (&self.system, &self.name);
        let place = self.place.get_or_insert_with(|| decoder.tracepoint(Some(system), name));
        let Some(place) = *place else {
            decoder.unreadable += 1;
            return;
        };
        if head.tid.is_none() {
            head.tid = self.pid.and_then(|pid| pid.number(record, order)).and_then(tid);
        }
        let byte = |field: Option<Field>| field.and_then(|field| field.number(record, order));
        if let [Some(flags), count] = self.context.map(byte) {
            let count = count.unwrap_or_default();
            head.context = Some(CpuContext::of_record(flags as u8, count as u8));
            head.site = byte(self.site).unwrap_or_default() as u64;
        }
        let Some(meaning) = self.meaning else {
            if decoder.known(place).call.is_some() {
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
                Form::Comm | Form::Text => values.texts[slot] = field.text(record, order),
                Form::State => {
                    values.state = field.number(record, order).map(|bits| self.state.state(bits));
                }
                Form::Number | Form::Pointer | Form::Device => {
                    values.numbers[slot] = field.number(record, order);
                }
            }
        }
        decoder.take(place, meaning, head, &values, out);
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
        let number = |field: Option<Field>| field.and_then(|field| field.number(record, order));
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
