//! The metadata of CTF 2 (CTF2-SPEC-2.0): a sequence of JSON objects, each behind a record
//! separator. Drafts of it, whose names differ in places, are read as well.

use super::metadata_error;
use super::types::{
    ArrayLength, CtfClock, CtfType, EventType, Integer, Metadata, Path, StreamType, Structure,
};
use super::types::{MOST_ALIGN, MOST_DEPTH};
use crate::TraceError;
use crate::bytes::ByteOrder;
use serde_json::{Deserializer, Map, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// Limits for hostile files.
const MOST_FRAGMENTS: usize = 1 << 16;
const MOST_VALUES: usize = 1 << 10;
const MOST_CASES: usize = 1 << 16;

const SEPARATOR: char = '\x1e';
/// A byte of a text or of unknown content.
const BYTE: Integer = Integer {
    size: 8,
    align: 8,
    signed: false,
    order: None,
    text: false,
    clock: false,
    role: None,
};

type Read<T> = Result<T, String>;
type Object = Map<String, Value>;

/// Whether a text is metadata of this version.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start_matches(|c: char| c == SEPARATOR || c.is_whitespace()).starts_with('{')
}

pub(super) fn read(text: &str) -> Result<Metadata, TraceError> {
    // JSON strings contain no unescaped control characters.
    let text = text.replace(SEPARATOR, " ");
    let mut reader = Reader::default();
    for (number, fragment) in Deserializer::from_str(&text).into_iter::<Object>().enumerate() {
        let fragment =
            fragment.map_err(|why| metadata_error(why.line() as u32, &why.to_string()))?;
        let kind = get_text(&fragment, "type").unwrap_or("without a type").escape_debug();
        let read = match number < MOST_FRAGMENTS {
            true => reader.read_fragment(&fragment),
            false => Err("it has too many".to_owned()),
        };
        read.map_err(|why| metadata_error(0, &format!("fragment {number} ({kind}): {why}")))?;
    }
    Ok(reader.metadata)
}

struct Reader {
    metadata: Metadata,
    /// Names of field classes.
    known: HashMap<String, CtfType>,
}

impl Default for Reader {
    fn default() -> Reader {
        let metadata = Metadata { states_roles: true, ..Metadata::default() };
        Reader { metadata, known: HashMap::new() }
    }
}

impl Reader {
    fn read_fragment(&mut self, of: &Object) -> Read<()> {
        let part = |name: &str| of.get(name).map(|class| self.read_class(class)).transpose();
        match get_text(of, "type") {
            Some("preamble") if of.get("version") != Some(&Value::from(2)) => {
                return Err("of a version that is not read".to_owned());
            }
            Some("field-class-alias") => {
                let name = get_text(of, "name").ok_or("it has no name")?.to_owned();
                let class = part("field-class")?.ok_or("it has no class of fields")?;
                self.known.insert(name, class);
            }
            Some("trace-class") => {
                self.metadata.packet_header = part("packet-header-field-class")?;
                let values = of.get("environment").and_then(Value::as_object);
                for (key, value) in values.into_iter().flatten().take(MOST_VALUES) {
                    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    self.metadata.environment.insert(key.clone(), value);
                }
            }
            Some("clock-class") => {
                let name =
                    get_text(of, "name").or(get_text(of, "id")).unwrap_or_default().to_owned();
                let frequency = of.get("frequency").and_then(Value::as_u64);
                let frequency =
                    frequency.filter(|ticks| *ticks > 0).ok_or("it has no frequency")?;
                self.metadata.clock.get_or_insert(CtfClock { name, frequency });
            }
            Some("data-stream-class") => {
                let stream = StreamType {
                    packet_context: part("packet-context-field-class")?,
                    event_header: part("event-record-header-field-class")?,
                    event_context: part("event-record-common-context-field-class")?,
                };
                self.metadata.streams.insert(get_number(of, "id", 0)?, stream);
            }
            Some("event-record-class") => {
                let event = EventType {
                    name: get_text(of, "name").unwrap_or_default().to_owned(),
                    id: get_number(of, "id", 0)?,
                    stream: get_number(of, "data-stream-class-id", 0)?,
                    context: part("specific-context-field-class")?,
                    fields: part("payload-field-class")?,
                };
                self.metadata.events.push(event);
            }
            _ => {}
        }
        Ok(())
    }

    /// A class of fields, or the name of one.
    fn read_class(&self, value: &Value) -> Read<CtfType> {
        if let Value::String(name) = value {
            let known_class = self.known.get(name).cloned();
            return known_class.ok_or_else(|| format!("`{}` is not declared", name.escape_debug()));
        }
        let class_object = value.as_object().ok_or("a field class is not an object")?;
        let kind = get_text(class_object, "type").unwrap_or("without a type");
        let text = CtfType::Integer(Integer { text: true, ..BYTE });
        let encoding =
            get_text(class_object, "encoding").is_none_or(|encoding| encoding == "utf-8");
        if kind.ends_with("-string") && !encoding {
            return Err("a text is not in UTF-8".to_owned());
        }
        let class = match kind {
            "structure" => self.read_structure(class_object)?,
            "optional" => self.read_optional(class_object)?,
            "variant" => self.read_variant(class_object)?,
            "null-terminated-string" => CtfType::Text,
            "static-length-string" | "dynamic-length-string" => read_array(class_object, text)?,
            "static-length-blob" | "dynamic-length-blob" => {
                read_array(class_object, CtfType::Integer(BYTE))?
            }
            "static-length-array" | "dynamic-length-array" => {
                let element =
                    class_object.get("element-field-class").ok_or("an array has no elements")?;
                align_class(class_object, read_array(class_object, self.read_class(element)?)?)?
            }
            kind if kind.starts_with("variable-length-") => {
                let align = get_alignment(class_object, "alignment", 8)?;
                CtfType::Integer(Integer { size: 0, align, ..read_integer(class_object, kind) })
            }
            kind if kind.starts_with("fixed-length-") => read_fixed_length(class_object, kind)?,
            kind => return Err(format!("fields `{}` are not read", kind.escape_debug())),
        };
        match class.max_depth() <= MOST_DEPTH {
            true => Ok(class),
            false => Err("classes lie too deep within classes".to_owned()),
        }
    }

    fn read_structure(&self, of: &Object) -> Read<CtfType> {
        let members = of.get("member-classes").and_then(Value::as_array);
        let members = members.into_iter().flatten().map(|member| {
            let name = member.get("name").and_then(Value::as_str).ok_or("a field has no name")?;
            let class = member.get("field-class").ok_or("a field has no class")?;
            Ok((name.to_owned(), self.read_class(class)?))
        });
        let fields = members.collect::<Read<Vec<_>>>()?;
        let align = get_alignment(of, "minimum-alignment", 1)?;
        Ok(CtfType::Struct(Rc::new(Structure::new(align, fields))))
    }

    /// A field that is there if another one has certain values.
    fn read_optional(&self, of: &Object) -> Read<CtfType> {
        let class = self.read_class(of.get("field-class").ok_or("it has no class of fields")?)?;
        let ranges = match of.get("selector-field-ranges") {
            Some(ranges) => read_ranges(ranges)?,
            None => vec![(i64::MIN, -1), (1, i64::MAX)],
        };
        let nothing = CtfType::Struct(Rc::new(Structure::new(1, Vec::new())));
        let options = Structure::new(1, vec![(String::new(), class), (String::new(), nothing)]);
        let ranges = Rc::new(vec![ranges, vec![(i64::MIN, i64::MAX)]]);
        let tag = Some(read_path(of, "selector-field-location")?);
        Ok(CtfType::Variant { tag, options: Rc::new(options), ranges: Some(ranges) })
    }

    fn read_variant(&self, of: &Object) -> Read<CtfType> {
        let (mut fields, mut ranges) = (Vec::new(), Vec::new());
        for option in of.get("options").and_then(Value::as_array).into_iter().flatten() {
            let name = option.get("name").and_then(Value::as_str).unwrap_or_default();
            let class = option.get("field-class").ok_or("an option has no class")?;
            fields.push((name.to_owned(), self.read_class(class)?));
            ranges.push(read_ranges(option.get("selector-field-ranges").unwrap_or(&Value::Null))?);
        }
        let tag = Some(read_path(of, "selector-field-location")?);
        let options = Rc::new(Structure::new(1, fields));
        Ok(CtfType::Variant { tag, options, ranges: Some(Rc::new(ranges)) })
    }
}

fn get_text<'a>(of: &'a Object, key: &str) -> Option<&'a str> {
    of.get(key).and_then(Value::as_str)
}

fn get_number(of: &Object, key: &str, missing: u64) -> Read<u64> {
    let found = of.get(key).map_or(Some(missing), Value::as_u64);
    found.ok_or_else(|| format!("its `{key}` is not a number"))
}

fn get_alignment(of: &Object, key: &str, missing: u64) -> Read<u32> {
    let bits = get_number(of, key, missing)?;
    match bits.is_power_of_two() && bits <= MOST_ALIGN {
        true => Ok(bits as u32),
        false => Err("unsupported alignment".to_owned()),
    }
}

/// The properties that all numbers share.
fn read_integer(of: &Object, kind: &str) -> Integer {
    let roles = of.get("roles").and_then(Value::as_array).into_iter().flatten();
    let roles: Vec<&str> = roles.filter_map(Value::as_str).collect();
    Integer {
        signed: kind.contains("-signed-"),
        order: match get_text(of, "byte-order") {
            Some("big-endian") => Some(ByteOrder::Big),
            _ => Some(ByteOrder::Little),
        },
        clock: roles.contains(&"default-clock-timestamp"),
        role: roles.iter().find_map(|role| named_role(role)),
        ..BYTE
    }
}

/// The name that CTF 1.8 gives to a role. Only a packet's clock value is the one that it begins at.
fn named_role(role: &str) -> Option<&'static str> {
    Some(match role {
        "packet-magic-number" => "magic",
        "data-stream-class-id" => "stream_id",
        "data-stream-id" => "stream_instance_id",
        "packet-content-length" => "content_size",
        "packet-total-length" => "packet_size",
        "default-clock-timestamp" => "timestamp_begin",
        "packet-end-default-clock-timestamp" => "timestamp_end",
        "discarded-event-record-counter-snapshot" => "events_discarded",
        "packet-sequence-number" => "packet_seq_num",
        "event-record-class-id" => "id",
        _ => return None,
    })
}

fn read_fixed_length(of: &Object, kind: &str) -> Read<CtfType> {
    let (size, align) = (get_number(of, "length", 0)?, get_alignment(of, "alignment", 1)?);
    let integer = read_integer(of, kind);
    let usual = match integer.order {
        Some(ByteOrder::Big) => "last-to-first",
        _ => "first-to-last",
    };
    if get_text(of, "bit-order").is_some_and(|order| order != usual) {
        return Err("a number has the bits of its bytes in an order that is not read".to_owned());
    }
    match (kind, size) {
        ("fixed-length-floating-point-number" | "fixed-length-bit-array", 65..=0xffff) => {
            Ok(CtfType::Float { size: size as u32, align })
        }
        ("fixed-length-floating-point-number", 1..=64) => {
            Ok(CtfType::Float { size: size as u32, align })
        }
        (_, 1..=64) => Ok(CtfType::Integer(Integer { size: size as u32, align, ..integer })),
        _ => Err("unsupported size".to_owned()),
    }
}

fn read_array(of: &Object, element: CtfType) -> Read<CtfType> {
    let length = match of.contains_key("length-field-location") {
        true => ArrayLength::Of(read_path(of, "length-field-location")?),
        false => ArrayLength::Fixed(get_number(of, "length", 0)?),
    };
    Ok(CtfType::Array(Rc::new(element), length))
}

/// A class with an alignment of its own.
fn align_class(of: &Object, class: CtfType) -> Read<CtfType> {
    Ok(match get_alignment(of, "minimum-alignment", 1)? {
        1 => class,
        align => CtfType::Struct(Rc::new(Structure::new(align, vec![(String::new(), class)]))),
    })
}

/// The location of another field: from a part of the packet, or upwards from where it is.
fn read_path(of: &Object, key: &str) -> Read<Path> {
    let wrong = || format!("its `{key}` is not a location");
    let location = of.get(key).ok_or_else(wrong)?;
    let elements = location.as_array().or_else(|| location.get("path")?.as_array());
    let elements = elements.ok_or_else(wrong)?;
    let (origin, elements) = match location.get("origin") {
        Some(origin) => (Some(origin), &elements[..]),
        // In drafts, the first element.
        None if location.is_array() => (elements.first(), elements.get(1..).unwrap_or_default()),
        None => (None, &elements[..]),
    };
    let up = elements.iter().take_while(|element| element.is_null()).count();
    let names = elements[up..].iter().map(|name| name.as_str().map(str::to_owned));
    let names = names.collect::<Option<Vec<String>>>().ok_or_else(wrong)?;
    Ok(match origin.map(|origin| origin.as_str().unwrap_or_default()) {
        None => Path::Upwards(up, names),
        Some(origin) => Path::From(
            match origin {
                "packet-header" => "trace.packet.header",
                "packet-context" => "stream.packet.context",
                "event-record-header" => "stream.event.header",
                "event-record-common-context" => "stream.event.context",
                "event-record-specific-context" => "event.context",
                "event-record-payload" => "event.fields",
                _ => return Err(wrong()),
            },
            names,
        ),
    })
}

fn read_ranges(value: &Value) -> Read<Vec<(i64, i64)>> {
    let end = |value: &Value| value.as_i64().or(value.as_u64().map(|number| number as i64));
    let range = |value: &Value| Some((end(value.get(0)?)?, end(value.get(1)?)?));
    let ranges = value.as_array().into_iter().flatten().take(MOST_CASES).map(range);
    ranges.collect::<Option<Vec<_>>>().ok_or_else(|| "a range is none".to_owned())
}
