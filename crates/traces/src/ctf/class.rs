//! The classes of streams and events, as declared in the metadata.

use super::event::CtfEvent;
use super::layout::{Compiler, PacketStep};
use super::types::Metadata;
use crate::TraceError;
use crate::decoder::Decoder;
use std::collections::{BTreeMap, HashMap};

/// The layouts of a trace's packets and events.
#[derive(Debug)]
pub(super) struct Classes {
    pub(super) packet_header: PacketStep,
    pub(super) magic: Option<u32>,
    pub(super) stream_id: Option<u32>,
    pub(super) instance: Option<u32>,
    pub(super) streams: BTreeMap<u64, StreamClass>,
    pub(super) events: HashMap<(u64, u64), CtfEvent>,
    /// The number of values of the largest event.
    pub(super) places: usize,
    /// Ticks of the clock per second.
    pub(super) frequency: u64,
    /// Losses occur after the last event of a packet (lttng-modules, lib/ringbuffer: a buffer is
    /// ended when the next one is free); other tracers may lose before it.
    pub(super) loses_at_the_end: bool,
}

/// The parts of a stream, with the indices of their numbers.
#[derive(Debug)]
pub(super) struct StreamClass {
    pub(super) packet_context: PacketStep,
    pub(super) event_header: PacketStep,
    pub(super) event_context: PacketStep,
    /// The index of an event's first value.
    pub(super) header_from: usize,
    pub(super) begin: Option<u32>,
    pub(super) end: Option<u32>,
    pub(super) content_size: Option<u32>,
    pub(super) packet_size: Option<u32>,
    pub(super) discarded: Option<u32>,
    pub(super) sequence: Option<u32>,
    pub(super) cpu: Option<u32>,
    /// The indices of the event's id: that of the last part read counts.
    pub(super) ids: Vec<u32>,
    /// The clock values in the header of an event, with their size in bits.
    pub(super) clocks: Vec<(u32, u32)>,
}

impl Classes {
    pub(super) fn from_metadata(
        metadata: &Metadata,
        decoder: &mut Decoder,
    ) -> Result<Classes, TraceError> {
        let mut budget = 0;
        let mut of_trace = Compiler::new(metadata.order, metadata.states_roles);
        let header = metadata.packet_header.as_ref();
        let (packet_header, _) =
            of_trace.compile_part("trace.packet.header", header, &mut budget)?;
        let tracer = metadata.environment.get("tracer_name").map(String::as_str);
        let mut classes = Classes {
            packet_header,
            magic: of_trace.place_with_role("magic"),
            stream_id: of_trace.place_with_role("stream_id"),
            instance: of_trace.place_with_role("stream_instance_id"),
            streams: BTreeMap::new(),
            events: HashMap::new(),
            places: 0,
            frequency: metadata.clock.as_ref().map_or(1_000_000_000, |clock| clock.frequency),
            loses_at_the_end: tracer == Some("lttng-modules"),
        };
        let mut compilers = BTreeMap::new();
        for (id, stream) in &metadata.streams {
            let mut compiler = of_trace.clone();
            let context = stream.packet_context.as_ref();
            let (packet_context, _) =
                compiler.compile_part("stream.packet.context", context, &mut budget)?;
            let packet = compiler.clone();
            let (header_from, before) = (compiler.places as usize, compiler.clocks.len());
            let header = stream.event_header.as_ref();
            let (event_header, _) =
                compiler.compile_part("stream.event.header", header, &mut budget)?;
            let ids = compiler.places_with_role("id").collect();
            let clocks = compiler.clocks[before..].to_vec();
            let context = stream.event_context.as_ref();
            let (event_context, shared) =
                compiler.compile_part("stream.event.context", context, &mut budget)?;
            let class = StreamClass {
                packet_context,
                event_header,
                event_context,
                header_from,
                begin: packet.place_with_role("timestamp_begin"),
                end: packet.place_with_role("timestamp_end"),
                content_size: packet.place_with_role("content_size"),
                packet_size: packet.place_with_role("packet_size"),
                discarded: packet.place_with_role("events_discarded"),
                sequence: packet.place_with_role("packet_seq_num"),
                cpu: packet.place_with_role("cpu_id"),
                ids,
                clocks,
            };
            classes.places = classes.places.max(compiler.places as usize);
            classes.streams.insert(*id, class);
            compilers.insert(*id, (compiler, shared));
        }
        for event in &metadata.events {
            let Some((compiler, shared)) = compilers.get(&event.stream) else { continue };
            let mut compiler = compiler.clone();
            let (context, of_context) =
                compiler.compile_part("event.context", event.context.as_ref(), &mut budget)?;
            let (fields, of_fields) =
                compiler.compile_part("event.fields", event.fields.as_ref(), &mut budget)?;
            classes.places = classes.places.max(compiler.places as usize);
            let seen_structures = [&of_fields, &of_context, shared];
            let event_class =
                CtfEvent::new(&event.name, context, fields, seen_structures, metadata, decoder);
            classes.events.insert((event.stream, event.id), event_class);
        }
        Ok(classes)
    }

    /// An instant in nanoseconds.
    pub(super) fn to_nanoseconds(&self, ticks: u64) -> i64 {
        if self.frequency == 1_000_000_000 {
            return ticks as i64;
        }
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency);
        i64::try_from(nanoseconds).unwrap_or(i64::MAX)
    }
}
