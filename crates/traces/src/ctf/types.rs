//! What the metadata of a trace declares.

use crate::bytes::ByteOrder;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A type of fields, as it is declared.
#[derive(Clone, Debug)]
pub(super) enum Type {
    Integer(Integer),
    /// An integer some of whose values have names: name, first and last value.
    Enum(Integer, Rc<Vec<(String, i64, i64)>>),
    /// Bits, and to which bits it is aligned. Its value is of no interest.
    Float {
        size: u32,
        align: u32,
    },
    /// Characters up to a NUL.
    Text,
    Struct(Rc<Structure>),
    Array(Rc<Type>, Length),
    /// One of these, by the name of the value of another field.
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
    /// A character, where it is an element of an array.
    pub(super) text: bool,
    pub(super) clock: bool,
}

/// The fields of a structure, or the options of a variant.
#[derive(Clone, Debug, Default)]
pub(super) struct Structure {
    pub(super) align: u32,
    pub(super) fields: Vec<(String, Type)>,
    /// How deep types lie within it.
    pub(super) depth: u32,
}

impl Type {
    /// How deep types lie within it.
    pub(super) fn depth(&self) -> u32 {
        match self {
            Type::Struct(structure) | Type::Variant { options: structure, .. } => structure.depth,
            Type::Array(element, _) => element.depth() + 1,
            _ => 0,
        }
    }
}

/// How many elements an array has.
#[derive(Clone, Debug)]
pub(super) enum Length {
    Fixed(u64),
    /// As many as another field says.
    Of(Vec<String>),
}

/// A stream: what its packets and events begin with.
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

/// All that a metadata declares.
#[derive(Clone, Debug, Default)]
pub(super) struct Metadata {
    pub(super) order: ByteOrder,
    pub(super) packet_header: Option<Type>,
    pub(super) streams: BTreeMap<u64, StreamType>,
    pub(super) events: Vec<EventType>,
    pub(super) clock: Option<Clock>,
    /// What the tracer says of itself and the machine.
    pub(super) environment: BTreeMap<String, String>,
}
