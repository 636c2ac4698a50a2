//! Tracepoints without a message of their own that describe themselves, as in Perfetto 49 and later
//! with `denser_generic_event_encoding`: the number and the type of each message are in the first
//! bundles that use it.

use super::messages::KnownMessage;
use super::wire::Fields;
use crate::decoder::Decoder;
use crate::meaning::{Meaning, SLOTS};

#[derive(Clone, Copy, Debug)]
pub(super) struct Described {
    /// Its index in the decoder.
    pub(super) place: usize,
    /// Its meaning, if any.
    pub(super) known: Option<KnownMessage>,
}

/// The first number of such messages (src/traced/probes/ftrace/proto_translation_table.h).
pub(super) const FIRST: u32 = 1 << 16;

/// Reads a GenericEventDescriptor: the message's number and description.
pub(super) fn parse_descriptor(bytes: &[u8], decoder: &mut Decoder) -> Option<(u32, Described)> {
    let (mut number, mut group, mut event) = (None, None, &[][..]);
    for (field, value) in Fields::from_bytes(bytes) {
        match field {
            1 => number = value.as_number().and_then(|number| u32::try_from(number).ok()),
            2 => event = value.as_bytes(),
            3 => group = std::str::from_utf8(value.as_bytes()).ok(),
            _ => {}
        }
    }
    let number = number.filter(|number| *number >= FIRST)?;
    let name = Fields::from_bytes(event).find(|(field, _)| *field == 1)?.1;
    let name = std::str::from_utf8(name.as_bytes()).ok()?;
    let place = decoder.intern_tracepoint(group, name)?;
    let known_message = decoder.tracepoint_at(place).meaning.map(|meaning| KnownMessage {
        meaning,
        place,
        slots: slot_fields(meaning, event),
    });
    Some((number, Described { place, known: known_message }))
}

/// The field number for each slot of the meaning, by the fields of a DescriptorProto.
fn slot_fields(meaning: Meaning, event: &[u8]) -> [Option<(u32, usize)>; SLOTS] {
    let number = |name: &str| {
        let (name, element) = match name.split_once('[') {
            Some((name, element)) => (name, element.trim_end_matches(']').parse().ok()?),
            None => (name, 0),
        };
        let mut fields = Fields::from_bytes(event).filter(|(field, _)| *field == 2);
        fields.find_map(|(_, field)| {
            let find_value = |wanted| {
                Fields::from_bytes(field.as_bytes())
                    .find(|(number, _)| *number == wanted)
                    .map(|(_, of)| of)
            };
            let is_it = find_value(1)?.as_bytes() == name.as_bytes();
            let number = u32::try_from(find_value(3)?.as_number()?).ok()?;
            is_it.then_some((number, element))
        })
    };
    let mut slots = [None; SLOTS];
    for (slot, of) in slots.iter_mut().zip(meaning.slots()) {
        *slot = of.names.split('|').find_map(number);
    }
    slots
}
