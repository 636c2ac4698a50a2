//! The declarations in the metadata of a trace.

use crate::bytes::ByteOrder;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A declared type of fields.
#[derive(Clone, Debug)]
pub(super) enum CtfType {
    Integer(Integer),
    /// An integer with named values: name, first and last value.
    Enum(Integer, Rc<Vec<(String, i64, i64)>>),
    /// The size and alignment in bits. Its value is not used.
    Float {
        size: u32,
        align: u32,
    },
    /// Characters up to a NUL.
    Text,
    Struct(Rc<Structure>),
    Array(Rc<CtfType>, ArrayLength),
    /// A union, selected by the named value of another field.
    Variant {
        tag: Option<Path>,
        options: Rc<Structure>,
        /// The values that select each option; `None`: those with its name.
        ranges: Option<Rc<Vec<Ranges>>>,
    },
}

/// Values that select an option.
pub(super) type Ranges = Vec<(i64, i64)>;

/// Where a field is that others depend on.
#[derive(Clone, Debug)]
pub(super) enum Path {
    /// From a part such as `stream.event.header`, or from the innermost structure that has its
    /// first name.
    Names(Vec<String>),
    /// From a part.
    From(&'static str, Vec<String>),
    /// From the structure so many levels above that of the field.
    Upwards(usize, Vec<String>),
}

/// The maximum depth of types within types.
pub(super) const MOST_DEPTH: u32 = 32;
/// The maximum alignment in bits: that of pages.
pub(super) const MOST_ALIGN: u64 = 8 << 12;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Integer {
    /// In bits: 1 to 64; 0: as many groups of seven as it needs (LEB128).
    pub(super) size: u32,
    pub(super) align: u32,
    pub(super) signed: bool,
    /// `None`: that of the trace.
    pub(super) order: Option<ByteOrder>,
    /// A character, if it is an element of an array.
    pub(super) text: bool,
    pub(super) clock: bool,
    /// Its role, if the metadata states one: the name that CTF 1.8 has for it.
    pub(super) role: Option<&'static str>,
}

/// The fields of a structure, or the options of a variant.
#[derive(Clone, Debug, Default)]
pub(super) struct Structure {
    pub(super) align: u32,
    pub(super) fields: Vec<(String, CtfType)>,
    /// The maximum depth of types within it.
    pub(super) depth: u32,
}

impl Structure {
    pub(super) fn new(align: u32, fields: Vec<(String, CtfType)>) -> Structure {
        let depth = 1 + fields.iter().map(|(_, field)| field.max_depth()).max().unwrap_or(0);
        Structure { align, fields, depth }
    }
}

impl CtfType {
    /// The maximum depth of types within it.
    pub(super) fn max_depth(&self) -> u32 {
        match self {
            CtfType::Struct(structure) | CtfType::Variant { options: structure, .. } => {
                structure.depth
            }
            CtfType::Array(element, _) => element.max_depth() + 1,
            _ => 0,
        }
    }
}

/// The length of an array.
#[derive(Clone, Debug)]
pub(super) enum ArrayLength {
    Fixed(u64),
    /// The value of another field.
    Of(Path),
}

/// A stream: the headers of its packets and events.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamType {
    pub(super) packet_context: Option<CtfType>,
    pub(super) event_header: Option<CtfType>,
    pub(super) event_context: Option<CtfType>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct EventType {
    pub(super) name: String,
    pub(super) id: u64,
    pub(super) stream: u64,
    pub(super) context: Option<CtfType>,
    pub(super) fields: Option<CtfType>,
}

#[derive(Clone, Debug)]
pub(super) struct CtfClock {
    pub(super) name: String,
    pub(super) frequency: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Metadata {
    pub(super) order: ByteOrder,
    pub(super) packet_header: Option<CtfType>,
    pub(super) streams: BTreeMap<u64, StreamType>,
    pub(super) events: Vec<EventType>,
    pub(super) clock: Option<CtfClock>,
    /// The tracer's statements about itself and the machine.
    pub(super) environment: BTreeMap<String, String>,
    /// Fields have their roles by what the metadata states, not by their names.
    pub(super) states_roles: bool,
}
