//! The blocks of the metadata: trace, environment, clock, streams, events.

use super::parse::{Attribute, AttributeValue, Parser, byte_order};
use super::types::{CtfClock, EventType, Metadata, StreamType};
use crate::TraceError;

/// Limits for hostile files.
const MOST_EVENTS: usize = 1 << 16;
const MOST_STREAMS: usize = 1 << 12;
const MOST_VALUES: usize = 1 << 10;

type CtfAttributes = Vec<(String, Attribute)>;

pub(super) fn read(text: &str) -> Result<Metadata, TraceError> {
    let mut parser = Parser::new(text)?;
    let mut metadata = Metadata::default();
    while !parser.is_at_end() {
        if parser.skip_sign(";") || parser.read_declaration()? {
            continue;
        }
        let kind = parser.read_name()?;
        parser.expect_sign("{")?;
        let attributes = parser.read_block()?;
        parser.expect_sign(";")?;
        match kind.as_str() {
            "trace" => read_trace(attributes, &mut metadata),
            "env" => read_environment(attributes, &mut metadata),
            "clock" => read_clock(attributes, &mut metadata),
            "stream" if metadata.streams.len() < MOST_STREAMS => {
                read_stream(attributes, &mut metadata)
            }
            "event" if metadata.events.len() < MOST_EVENTS => read_event(attributes, &mut metadata),
            "stream" | "event" => return parser.error_here("it has too many streams or events"),
            _ => {}
        }
    }
    Ok(metadata)
}

fn read_trace(attributes: CtfAttributes, metadata: &mut Metadata) {
    for (key, attribute) in attributes {
        match (key.as_str(), attribute) {
            ("byte_order", Attribute::Value(value)) => {
                metadata.order = byte_order(&value).unwrap_or_default();
            }
            ("packet.header", Attribute::Type(header)) => metadata.packet_header = Some(header),
            _ => {}
        }
    }
}

fn read_environment(attributes: CtfAttributes, metadata: &mut Metadata) {
    for (key, attribute) in attributes.into_iter().take(MOST_VALUES) {
        let value = match attribute {
            Attribute::Value(AttributeValue::Text(text)) => text,
            Attribute::Value(AttributeValue::Number(number)) => number.to_string(),
            Attribute::Type(_) => continue,
        };
        metadata.environment.insert(key, value);
    }
}

/// The first clock; kernel tracers have only one.
fn read_clock(attributes: CtfAttributes, metadata: &mut Metadata) {
    let mut clock = CtfClock { name: String::new(), frequency: 1_000_000_000 };
    for (key, attribute) in attributes {
        match (key.as_str(), attribute) {
            ("name", Attribute::Value(AttributeValue::Text(name))) => clock.name = name,
            ("freq", Attribute::Value(AttributeValue::Number(ticks))) if ticks > 0 => {
                clock.frequency = ticks as u64;
            }
            _ => {}
        }
    }
    metadata.clock.get_or_insert(clock);
}

fn read_stream(attributes: CtfAttributes, metadata: &mut Metadata) {
    let (mut id, mut stream) = (0, StreamType::default());
    for (key, attribute) in attributes {
        match (key.as_str(), attribute) {
            ("id", Attribute::Value(AttributeValue::Number(number))) => id = number as u64,
            ("packet.context", Attribute::Type(found)) => stream.packet_context = Some(found),
            ("event.header", Attribute::Type(found)) => stream.event_header = Some(found),
            ("event.context", Attribute::Type(found)) => stream.event_context = Some(found),
            _ => {}
        }
    }
    metadata.streams.insert(id, stream);
}

fn read_event(attributes: CtfAttributes, metadata: &mut Metadata) {
    let mut event = EventType::default();
    for (key, attribute) in attributes {
        match (key.as_str(), attribute) {
            ("name", Attribute::Value(AttributeValue::Text(name))) => event.name = name,
            ("id", Attribute::Value(AttributeValue::Number(number))) => event.id = number as u64,
            ("stream_id", Attribute::Value(AttributeValue::Number(number))) => {
                event.stream = number as u64
            }
            ("context", Attribute::Type(found)) => event.context = Some(found),
            ("fields", Attribute::Type(found)) => event.fields = Some(found),
            _ => {}
        }
    }
    metadata.events.push(event);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::ByteOrder;
    use proptest::prelude::*;

    #[test]
    fn declarations_are_read_as_their_scopes_have_them() {
        let text = "typealias integer { size = 5; align = 1; } := unsigned five;\n\
                    trace { byte_order = be; packet.header := struct { unsigned five a; }; };\n\
                    env { domain = \"kernel\"; tracer_major = 2; };\n\
                    clock { name = monotonic; freq = 1000; };\n\
                    stream { struct own { integer { size = 8; } x; } align(64); id = 3;\n\
                    event.header := struct own; };\n\
                    event { name = a; id = 7; stream_id = 3; fields := struct {\n\
                    enum : unsigned five { A, \"B\" = 4 ... 6, C, } _t;\n\
                    variant <_t> { string A; } v;\n\
                    integer { size = 8; encoding = UTF8; } _name[16]; } align(8); };";
        let metadata = read(text).unwrap();
        assert_eq!(metadata.order, ByteOrder::Big);
        assert_eq!(metadata.environment["tracer_major"], "2");
        assert_eq!(metadata.clock.unwrap().frequency, 1_000);
        let (id, stream) = metadata.streams.first_key_value().unwrap();
        assert_eq!(*id, 3);
        assert!(format!("{:?}", stream.event_header).contains("align: 64"));
        let event = format!("{:?}", metadata.events);
        assert!(event.contains("(\"C\", 7, 7)") && event.contains("Fixed(16)"), "{event}");
        let outside = read(&format!("{text} event {{ fields := struct own; }};")).unwrap_err();
        assert!(outside.to_string().contains("`struct own` is not declared"), "{outside}");
    }

    proptest! {
        #[test]
        fn no_text_panics(
            words in proptest::collection::vec(
                prop::sample::select(vec![
                    "struct", "integer", "{", "}", "size = 8;", ";", "x", "enum", ":", "<", ">",
                    "variant", "event", "fields :=", "align(8)", "[", "]", "3", "typealias", ":=",
                    "*", "string", "floating_point", "=", "...", "\"a\"", ",", "-",
                ]),
                0..40,
            ),
        ) {
            let _ = read(&words.join(" "));
        }
    }
}
