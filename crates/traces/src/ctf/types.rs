//! The declarations in the metadata of a trace.

use crate::bytes::ByteOrder;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A declared type of fields.
#[derive(Clone, Debug)]
pub(super) enum Type {
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
    Array(Rc<Type>, Length),
    /// A union, selected by the named value of another field.
    Variant {
        tag: Option<Vec<String>>,
        options: Rc<Structure>,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Integer {
    /// In bits: 1 to 64.
    pub(super) size: u32,
    pub(super) align: u32,
    pub(super) signed: bool,
    /// `None`: that of the trace.
    pub(super) order: Option<ByteOrder>,
    /// A character, if it is an element of an array.
    pub(super) text: bool,
    pub(super) clock: bool,
}

/// The fields of a structure, or the options of a variant.
#[derive(Clone, Debug, Default)]
pub(super) struct Structure {
    pub(super) align: u32,
    pub(super) fields: Vec<(String, Type)>,
    /// The maximum depth of types within it.
    pub(super) depth: u32,
}

impl Type {
    /// The maximum depth of types within it.
    pub(super) fn depth(&self) -> u32 {
        match self {
            Type::Struct(structure) | Type::Variant { options: structure, .. } => structure.depth,
            Type::Array(element, _) => element.depth() + 1,
            _ => 0,
        }
    }
}

/// The length of an array.
#[derive(Clone, Debug)]
pub(super) enum Length {
    Fixed(u64),
    /// The value of another field.
    Of(Vec<String>),
}

/// A stream: the headers of its packets and events.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamType {
    pub(super) packet_context: Option<Type>,
    pub(super) event_header: Option<Type>,
    pub(super) event_context: Option<Type>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct EventType {
    pub(super) name: String,
    pub(super) id: u64,
    pub(super) stream: u64,
    pub(super) context: Option<Type>,
    pub(super) fields: Option<Type>,
}

#[derive(Clone, Debug)]
pub(super) struct Clock {
    pub(super) name: String,
    pub(super) frequency: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Metadata {
    pub(super) order: ByteOrder,
    pub(super) packet_header: Option<Type>,
    pub(super) streams: BTreeMap<u64, StreamType>,
    pub(super) events: Vec<EventType>,
    pub(super) clock: Option<Clock>,
    /// The tracer's statements about itself and the machine.
    pub(super) environment: BTreeMap<String, String>,
}
